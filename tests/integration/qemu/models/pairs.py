"""Twenty pairs of a model of the conformance corpus and an NPU configuration, with every family and memory mode."""

from collections.abc import Container
from dataclasses import dataclass

from ethosu_sdk.base.targets import Target, parse_target
from tests.conformance.models import GROUPS
from tests.conformance.models.case import Case


@dataclass(frozen=True)
class Pair:
    """A model by its name in the corpus and the target that it is compiled for, with the defaults for None."""

    model: str
    target_name: str
    memory_mode: str | None = None
    system_config: str | None = None

    @property
    def name(self) -> str:
        """Unique, and fit for a file."""
        return "-".join((self.model, self.target_name, *([self.memory_mode] if self.memory_mode else [])))

    @property
    def target(self) -> Target:
        """The target with its configurations."""
        return parse_target(self.target_name, self.system_config, self.memory_mode)

    @property
    def profile(self) -> str:
        """The operators that ExecuTorch lowers for: Ethos-U65 has those of Ethos-U55."""
        return "u85" if self.target.npu == "ethos-u85" else "u55"

    @property
    def case(self) -> Case:
        """The model."""
        return next(cases[self.model] for cases in GROUPS.values() if self.model in cases)


PAIRS = (
    Pair("conv_3x3_same", "ethos-u55-32"),
    Pair("inverted_residual", "ethos-u55-64"),
    Pair("digits_cnn", "ethos-u55-128", "Sram_Only"),
    Pair("attention", "ethos-u55-256"),
    Pair("conv_3x3_same", "ethos-u65-256"),
    Pair("inverted_residual", "ethos-u65-512"),
    Pair("digits_cnn", "ethos-u65-512", "Shared_Sram"),
    Pair("attention", "ethos-u65-256", "Sram_Only", "Ethos_U65_Embedded"),
    Pair("arithmetic_int32", "ethos-u65-256", "Dedicated_Sram"),
    Pair("unet", "ethos-u65-512", "Dedicated_Sram_256KB"),
    Pair("conv_3x3_same", "ethos-u85-128", "Sram_Only"),
    Pair("inverted_residual", "ethos-u85-256", "Sram_Only"),
    Pair("digits_cnn", "ethos-u85-512", "Shared_Sram"),
    Pair("attention", "ethos-u85-1024", "Sram_Only"),
    Pair("unet", "ethos-u85-2048", "Dedicated_Sram_384KB"),
    Pair("arithmetic_int32", "ethos-u85-256", "Dedicated_Sram"),
    Pair("bilinear_x2", "ethos-u85-128", "Sram_Only"),
    Pair("embedding", "ethos-u85-512", "Sram_Only"),
    Pair("conv_3d", "ethos-u85-2048", "Sram_Only"),
    Pair("branches_int32", "ethos-u85-256", "Sram_Only"),
)
# Of these, Ethos-U65 and Ethos-U85 with each kind of memory mode, and fast scratch memory in use on both.
QUICK = tuple(PAIRS[index] for index in (2, 5, 6, 7, 11, 12, 14))


def by_model(names: Container[str]) -> list[list[Pair]]:
    """The pairs of these names, those of a model and a profile together."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in (pair for pair in PAIRS if pair.name in names):
        found.setdefault((pair.model, pair.profile), []).append(pair)
    return list(found.values())
