"""The cells of the matrix: which zoo model, compiled how, is checked against what."""

from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.compile import zoo
from tests.conformance.targets import executorch_target

TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")  # one of each family
DELEGATES = "delegates"  # each delegate on the NPU model against the TOSA reference model
MEMORY = "memory"  # the firmware on QEMU against the host simulator and the independent chain
KINDS = (DELEGATES, MEMORY)
_QUANTISED = ("int8", "int16")
# Those with rows on the page. Decoders take an hour each: their own tests compare them.
MODELS = (*zoo.stateless(), "streaming_kws", "vad")


@dataclass(frozen=True)
class Cell:
    """One cell. `quantize` is as `compile` takes it, `memory_mode` one that goes with the target's default system
    configuration."""

    kind: str
    model: str
    target: str
    quantize: str
    memory_mode: str

    @property
    def program(self) -> str:
        """The name of the compiled program: cells of both kinds may share one."""
        return f"{self.model}-{self.target}-{self.quantize}-{self.memory_mode}"

    def __str__(self) -> str:
        return f"{self.kind}-{self.program}"

    @property
    def full_target(self) -> Target:
        """The target with its memory mode."""
        return parse_target(self.target, memory_mode=self.memory_mode)


def quantisations(model: str) -> tuple[str, ...]:
    """How a zoo model is compiled: int8 and int16, and as it is where the zoo does not quantise it."""
    own = zoo.entry(model).quantize
    return _QUANTISED if own in _QUANTISED else (own, *_QUANTISED)


def memory_modes(target: str) -> tuple[str, ...]:
    """The memory modes of the target's default system configuration."""
    default = parse_target(target)
    return default.family.system_configs[default.system_config]


def cells(kind: str, models: Sequence[str] = MODELS) -> tuple[Cell, ...]:
    """All cells of a kind, model by model."""
    if kind == DELEGATES:
        return tuple(
            Cell(kind, model, target, quantize, executorch_target(target).memory_mode)
            for model in models
            for target in TARGETS
            for quantize in quantisations(model)
        )
    return tuple(
        Cell(kind, model, target, zoo.entry(model).quantize, mode)
        for model in models
        for target in TARGETS
        for mode in memory_modes(target)
    )


def named(name: str) -> Cell:
    """The cell whose text is `name`."""
    return {str(cell): cell for kind in KINDS for cell in cells(kind, zoo.names())}[name]
