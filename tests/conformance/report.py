"""Turns the results of a full conformance run into docs/reference/npu-conformance.md.

Usage: python -m tests.conformance.report RESULTS.xml PAGE.md. RESULTS.xml is what pytest's --junitxml wrote. The page
names versions but no date and no machine: the same results give the same page.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

from ethosu_sdk.base.targets import target_names
from tests.conformance.comparison import SEEDS
from tests.conformance.models import GROUPS
from tests.conformance.tosa_operators import GRAPHS, NUMERIC

_PACKAGES = ("ethos-u-vela", "executorch", "torch", "torchao", "tosa-tools")
#: The title of the section that tests.conformance.tflite_report writes; the page keeps it.
TFLITE = "## Operators of TFLite"
_TOSA = "1.0"  # what Graph serialises, and the specification that ExecuTorch lowers for
_TITLES = {
    "convolutions": "convolutions, depthwise, linear",
    "weights": "weight formats: sparse, ternary, long zero runs",
    "pools": "pooling, reductions, argmax",
    "elementwise": "elementwise, activations, tables",
    "logic": "comparisons, selection, logic, bits",
    "movement": "transpose, reverse, slice, pad, concatenate",
    "resize": "nearest and bilinear resize",
    "indexed": "gather and scatter",
    "normalisation": "softmax, norms, cumulative sum",
    "networks": "blocks of networks, attention, cascades",
    "control": "branches and loops",
}


@dataclass(frozen=True)
class Result:
    """One test: its module's last name, its function, its parameters, and whether it passed."""

    module: str
    function: str
    parameters: str
    passed: bool


@dataclass
class Tally:
    """How many of some tests passed."""

    passed: int = 0
    total: int = 0

    def add(self, passed: bool) -> None:
        """Count one test."""
        self.passed += passed
        self.total += 1

    def __str__(self) -> str:
        if not self.total:
            return "-"
        return str(self.passed) if self.passed == self.total else f"**{self.passed} of {self.total}**"


def read(path: Path) -> list[Result]:
    """The tests of a JUnit XML file that ran. Skipped ones are left out."""
    found = []
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        name = re.fullmatch(r"(\w+)(?:\[(.*)\])?", case.attrib["name"])
        assert name, case.attrib["name"]
        passed = case.find("failure") is None and case.find("error") is None
        module = case.attrib["classname"].rpartition(".")[2]
        found.append(Result(module, name[1], name[2] or "", passed))
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table whose columns but the first are centred."""
    lines = [header, ["---", *[":-:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def per_target(results: Iterable[Result]) -> Mapping[str, Mapping[str, Tally]]:
    """Group → target → how many of its models are exact; ``mobilenet`` and ``mobilenet-size`` among the groups."""
    found: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
    for result in results:
        if result.module == "test_models" and result.function == "test_outputs_pieces_and_hazards":
            group, _, target = result.parameters.split("-", 2)
            found[group][target].add(result.passed)
        elif result.module == "test_mobilenet" and result.parameters:
            group = "mobilenet-size" if result.function.endswith("little_memory") else "mobilenet"
            found[group][result.parameters].add(result.passed)
    return found


def passed_of(results: Iterable[Result], module: str) -> Tally:
    """How many tests of a module passed."""
    tally = Tally()
    for result in results:
        if result.module == module:
            tally.add(result.passed)
    return tally


def versions() -> str:
    """The pinned tools, as installed."""
    return table(("package", "version"), [(name, metadata.version(name).split("+")[0]) for name in _PACKAGES])


def page(results: Sequence[Result]) -> str:
    """The whole page."""
    targets = target_names()
    found = per_target(results)
    rows = [
        (f"{_TITLES[group]} ({len(GROUPS[group])})", *(found[group][target] for target in targets))
        for group in GROUPS
    ]
    rows.append((f"ties and rounding ({len(GRAPHS)})", *(found[NUMERIC][target] for target in targets)))
    rows.append(("MobileNetV2 224x224", *(found["mobilenet"][target] for target in targets)))
    rows.append(("MobileNetV2, for little memory", *(found["mobilenet-size"][target] for target in targets)))
    tallies = [tally for row in found.values() for tally in row.values()]
    exact, total = sum(tally.passed for tally in tallies), sum(tally.total for tally in tallies)
    controls, random = passed_of(results, "test_controls"), passed_of(results, "test_random_graphs")
    short = [target.removeprefix("ethos-") for target in targets]
    return _PAGE.format(
        exact=exact,
        total=total,
        seeds=len(SEEDS),
        models=sum(map(len, GROUPS.values())),
        ties=len(GRAPHS),
        tosa=_TOSA,
        table=table(("models", *short), rows),
        controls=f"{controls.passed} of {controls.total}",
        random=f"{random.passed} of {random.total}",
        versions=versions(),
    )


_PAGE = """# Conformance of the NPU model

<!-- Generated by scripts/npu-conformance: do not edit. -->

The NPU model runs the command streams that Vela compiles. Arm's TOSA reference model runs the TOSA graphs that Vela
was given. Both get the same random bytes. **{exact} of {total}** pairs of a model and a configuration give the same
bytes in every output.

{table}

A number counts the models that ran and are bit-exact; "-" means that the NPU lacks their operators. {models} models
are PyTorch modules that ExecuTorch quantises and lowers, once for Ethos-U55 and U65 and once for Ethos-U85. {ties}
are hand-built TOSA graphs. They are scaled by powers of two, so that every odd value is a tie; the multipliers of
quantised models have 31 bits and almost never leave exactly one half. Each pair runs with {seeds} sets of inputs
over the whole range of their type. int32 inputs stay within the range for which TOSA {tosa} defines the result.

The suite also has:

- random layers: convolutions, depthwise convolutions and pools of random shapes, strides, dilations, paddings,
  scales, zero points and weights ({random} runs of 50 layers each without a difference, over all configurations);
- negative controls: {controls} deliberate faults in the model or the stream were detected (truncation, ties away
  from zero, single instead of double rounding, flipped kernels, a wrong zero point, bias or scale).

The oracle is the TOSA specification as implemented by Arm's reference model, not hardware. If Vela compiles
something wrongly, the model runs it wrongly, as it should. Lowering
[avoids](../internals/architecture.md#compiler-bugs-that-lowering-works-around) known defects of the compiler; the
suite checks that they show without this.

## Versions

{versions}

The TOSA version is {tosa}. `scripts/npu-conformance` runs the comparison again. The tests include a quick
set: each model on one configuration per generation of the command stream.
"""


def without_tflite(text: str) -> tuple[str, str]:
    """The page without its section on TFLite's operators, and that section."""
    before, title, after = text.partition(TFLITE)
    return before, title + after


def main() -> None:
    """Write the page."""
    results, place = read(Path(sys.argv[1])), Path(sys.argv[2])
    _, section = without_tflite(place.read_text(encoding="utf-8") if place.exists() else "")
    place.write_text(f"{page(results)}\n{section}" if section else page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
