"""The firmware's kernels and the zoo against Arm's own build of ExecuTorch, and the page that tells of it.

``scripts/second-opinion`` runs every case of the kernels' tests on Arm's prebuilt runner and in our firmware, both on
QEMU's Cortex-M55, and writes docs/reference/second-opinion.md: each difference with its reason, which is looked for
in the values themselves. Exit code 7 when one has none.
"""

import argparse
import collections
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from campaigns.second_opinion import zoo
from ethosu_sdk.base import filesystem
from tests.integration.cli import COMMAND
from tests.kernels.cases.programs import Group, groups
from tests.kernels.interpreter.lowered import Lowered, by_case, lowered
from tests.kernels.interpreter.models import Array, Case
from tests.places import ROOT

PAGE = ROOT / "docs" / "reference" / "second-opinion.md"
_MISSING = re.compile(r"Missing operator: \[\d+\] (\S+)")
_FUSED, _SMALLEST, _FAR = 4e-6, float(numpy.finfo(numpy.float32).tiny), 2.0**40
_SCALAR = "has a tensor without dimensions as an input or output, which ends the runner"


@dataclass(frozen=True)
class Compared:
    """One case on both runtimes: elements that differ, the largest difference, and why; empty where nothing differs.

    `reason` is empty for what nothing explains.
    """

    name: str
    elements: int
    differing: int
    largest: float
    reason: str

    @property
    def unexplained(self) -> bool:
        """Whether it differs for no reason that is known."""
        return self.differing > 0 and not self.reason


Mask = NDArray[numpy.bool_]


def _fused(own: Array, arms: Array, _inputs: Sequence[Array]) -> Mask:
    if own.dtype.kind != "f":
        return numpy.zeros(own.shape, bool)
    with numpy.errstate(invalid="ignore", over="ignore"):
        left, right = own.astype(float), arms.astype(float)
        near = abs(left - right) <= _FUSED * (1 + abs(right))
    return numpy.asarray(near & numpy.isfinite(own) & numpy.isfinite(arms))


def _subnormal(own: Array, arms: Array, _inputs: Sequence[Array]) -> Mask:
    """Arm's is a zero, ours smaller than the smallest normal number."""
    return numpy.asarray((arms == 0) & (abs(own) < _SMALLEST) & (own.dtype.kind == "f"))


def _undefined(own: Array, _arms: Array, inputs: Sequence[Array]) -> Mask:
    """The number that became an integer does not fit its type."""
    if not inputs or own.dtype.kind not in "iu" or inputs[0].dtype.kind != "f" or inputs[0].size != own.size:
        return numpy.zeros(own.shape, bool)
    limits = numpy.iinfo(own.dtype)
    whole = numpy.trunc(inputs[0].astype(float))
    return numpy.asarray(~numpy.isfinite(inputs[0]) | (whole < limits.min) | (whole > limits.max))


def _far(own: Array, arms: Array, inputs: Sequence[Array]) -> Mask:
    """It fits none of 64 bits either, once it is scaled."""
    outside = _undefined(own, arms, inputs)
    return (
        outside & (~numpy.isfinite(inputs[0]) | (abs(inputs[0].astype(float)) >= _FAR))
        if outside.any()
        else outside
    )


def _limit(own: Array, arms: Array, inputs: Sequence[Array]) -> Mask:
    if not inputs or own.dtype.kind != "f" or inputs[0].shape != own.shape:
        return numpy.zeros(own.shape, bool)
    return numpy.asarray(numpy.isnan(own) & (arms == 0) & numpy.isneginf(inputs[0]))


# In the order in which they are tried, on the elements that differ alone; with the cases that each is for.
REASONS: dict[str, tuple[Callable[[Array, Array, Sequence[Array]], Mask], str]] = {
    "subnormal": (_subnormal, ""),
    "fused": (_fused, ""),
    "far": (_far, ""),
    "undefined": (_undefined, "to_"),
    "limit": (_limit, "gelu"),
}
WORDS = {
    "subnormal": "Arm's build computes four numbers at once with Helium, which gives 0 for results below 2^-126; "
    "ours computes them",
    "fused": "Arm's build lets GCC fuse a product and a sum into one instruction that rounds once, and its C library "
    "has another version (4·10^-6 + 4·10^-6·|x| is allowed); ours is built with `-ffp-contract=off`, for the same "
    "bits as on the host",
    "far": "a number that is not finite, or is 2^40 or more, does not fit 64 bits, at the latest after the division "
    "by the scale: C++ leaves the conversion undefined. Ours gives what ExecuTorch gives on x86-64",
    "limit": "ExecuTorch's portable kernel gives 0 at minus infinity; its optimised one, on the host, and ours "
    "multiply infinity by 0: NaN",
    "undefined": "a number that the integer's type does not hold: C++ leaves the conversion undefined. Ours gives "
    "what ExecuTorch gives on x86-64",
}


def compare(name: str, own: Sequence[Array], arms: Sequence[Array], inputs: Sequence[Array]) -> Compared:
    """A case's outputs on our firmware and on Arm's runner, which was given the same `inputs`."""
    elements = sum(array.size for array in own)
    found: list[str] = []
    differing, largest = 0, 0.0
    for left, right in zip(own, arms, strict=True):
        bits = _differing(left, right)
        if not bits.any():
            continue
        differing += int(bits.sum())
        with numpy.errstate(invalid="ignore", over="ignore"):
            gaps = abs(left[bits].astype(float) - right[bits].astype(float))
        largest = max(largest, float(numpy.nanmax(gaps, initial=0.0)))
        there = [row[bits] if row.shape == left.shape else row for row in inputs]
        found.append(_reason(name, left[bits], right[bits], there))
    reason = found[0] if len(set(found)) == 1 else ""
    return Compared(name, elements, differing, largest, reason)


def _reason(name: str, own: Array, arms: Array, inputs: Sequence[Array]) -> str:
    """One reason for all elements, or else several that together explain them."""
    found = {
        key: holds(own, arms, inputs) for key, (holds, cases) in REASONS.items() if name.startswith(cases)
    }
    for key, mask in found.items():
        if mask.all():
            return key
    if numpy.any(list(found.values()), axis=0).all():
        return ", ".join(key for key, mask in found.items() if mask.any())
    return ""


def _differing(left: Array, right: Array) -> Mask:
    assert (left.shape, left.dtype) == (right.shape, right.dtype)
    both_nan = numpy.isnan(left) & numpy.isnan(right)
    width = left.dtype.itemsize
    raw = [
        numpy.ascontiguousarray(row).reshape(-1).view(numpy.uint8).reshape(-1, width) for row in (left, right)
    ]
    return numpy.asarray((raw[0] != raw[1]).any(axis=1).reshape(left.shape) & ~both_nan)


def run_both(program: Lowered, folder: Path) -> list[Compared]:
    """Every case of `program` on both runtimes. AssertionError when one of them did not run it."""
    done = _run(program, folder, "both")
    assert done.returncode in (0, 7), done.stderr
    with (
        numpy.load(folder / "out" / "outputs.npz") as own,
        numpy.load(folder / "out" / "outputs-executorch.npz") as arms,
    ):
        count = len(program.expected)
        left, right = ([rows[f"output{i}"] for i in range(count)] for rows in (own, arms))
    pairs = by_case(program.cases, left, right)
    return [
        compare(name, *map(list, zip(*pairs[name], strict=True)), case.inputs)
        for name, case in program.cases.items()
    ]


def _run(program: Lowered, folder: Path, runtime: str) -> subprocess.CompletedProcess[str]:
    (folder / "kernels.pte").write_bytes(program.program)
    inputs = [array for case in program.cases.values() for array in case.inputs]
    numpy.savez(folder / "inputs.npz", **{f"input{i}": array for i, array in enumerate(inputs)})
    options = ("--inputs", "inputs.npz", "-o", "out", "--runtime", runtime, "-q")
    return subprocess.run(
        [COMMAND, "run", "kernels.pte", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def with_dimensions(group: Group) -> dict[str, Case]:
    """The cases whose tensors all have dimensions."""
    whole = lowered(group.cases, dim_order=group.dim_order, preserve=group.preserve)
    pairs = by_case(whole.cases, whole.expected, whole.expected)
    return {
        name: case
        for name, case in group.cases.items()
        if all(numpy.ndim(array) for array in case.inputs) and all(wanted.ndim for _, wanted in pairs[name])
    }


@dataclass(frozen=True)
class GroupResult:
    """What came of a group: compared cases, and those that Arm's runner cannot run with the reason."""

    compared: list[Compared]
    left_out: dict[str, str]


def run_group(group: Group, folder: Path) -> GroupResult:
    """All cases of `group` that Arm's runner can run."""
    able = with_dimensions(group)
    left_out = dict.fromkeys(group.cases.keys() - able.keys(), _SCALAR)
    program = lowered(able, dim_order=group.dim_order, preserve=group.preserve)
    _run(program, folder, "executorch")
    missing = set(
        _MISSING.findall((folder / "out" / "uart.log").read_text(encoding="utf-8", errors="replace"))
    )
    if missing:
        for name, case in able.items():
            called = lowered({name: case}, dim_order=group.dim_order, preserve=group.preserve).called
            if called & missing:
                left_out[name] = f"calls {', '.join(sorted(called & missing))}, which the runner lacks"
        able = {name: case for name, case in able.items() if name not in left_out}
        program = lowered(able, dim_order=group.dim_order, preserve=group.preserve)
    return GroupResult(run_both(program, folder), left_out)


def page(results: Mapping[str, GroupResult]) -> str:
    """The page's text."""
    every = [row for result in results.values() for row in result.compared]
    equal = sum(row.differing == 0 for row in every)
    left_out = {name: why for result in results.values() for name, why in result.left_out.items()}
    return "".join(
        [
            _HEAD.format(cases=len(every), equal=equal, left_out=len(left_out)),
            *_difference_rows(every),
            _LEFT_OUT,
            *_left_out_rows(left_out),
        ]
    )


_HEAD = """# Second opinion: Arm's own build of ExecuTorch

`scripts/second-opinion` runs the cases that test the [kernels](kernels.md) on the SDK's firmware and on Arm's
prebuilt runner (`mlia-ethos-u` 0.1.0, evaluation kit 25.12.0), on the same simulated Corstone-300, and writes this
page; see [the guide](../guide/second-opinion.md). {equal} of {cases} cases are equal bit for bit. The others
differ for the reasons below. {left_out} cases cannot run there. The zoo has [its own page](second-opinion-zoo.md).

Both runtimes use the SDK's NPU model. If their counters agree, the two drive the NPU in the same way; this does not
show that the model is right (see [fidelity](fidelity.md)).

## Kernels

The largest difference is that of the finite values, element by element. A case can have two reasons.

| Reason | Cases | Elements that differ | Largest | |
|---|--:|--:|--:|---|
"""
_LEFT_OUT = """
## What the runner cannot run

"""


def _difference_rows(every: Sequence[Compared]) -> Iterator[str]:
    differing = [row for row in every if row.differing]
    for key, words in WORDS.items():
        if rows := [row for row in differing if key in row.reason.split(", ")]:
            largest = f"{max(row.largest for row in rows):.2g}" if key in ("fused", "subnormal") else ""
            differ, elements = sum(row.differing for row in rows), sum(row.elements for row in rows)
            told = words.replace("|", "\\|")
            yield f"| {key} | {len(rows)} | {differ:,} of {elements:,} | {largest} | {told} |\n"
    for row in differing:
        if row.unexplained:
            yield f"| unexplained: `{row.name}` | 1 | {row.differing:,} of {row.elements:,} | {row.largest:.2g} | |\n"


def _left_out_rows(left_out: Mapping[str, str]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = collections.defaultdict(list)
    for name, why in left_out.items():
        by_reason[why].append(f"`{name}`")
    for why in sorted(by_reason):
        yield f"- {why}: {', '.join(sorted(by_reason[why]))}\n"


def main() -> int:
    """Run everything, or the parts that are named; a page is written when all of it was run."""
    # Arm's runner has older forms of cortex_m's operators.
    every = {name: group for name, group in groups().items() if not group.eager}
    parser = argparse.ArgumentParser(prog="scripts/second-opinion", description=__doc__)
    parser.add_argument(
        "--groups", default=",".join(every), help="groups of kernels' cases; fewer write no page"
    )
    parser.add_argument(
        "--models", default=",".join(zoo.MODELS), help="models of the zoo; fewer write no page"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-second-opinion-") as folder:
        models = _run_models(list(filter(None, chosen.models.split(","))), Path(folder))
        results = {
            name: run_group(every[name], filesystem.make_directory(Path(folder) / name))
            for name in filter(None, chosen.groups.split(","))
        }
    for name, result in results.items():
        print(f"{name}: {len(result.compared)} cases compared", flush=True)
    unexplained = [row for result in results.values() for row in result.compared if row.unexplained]
    for row in unexplained:
        print(f"{row.name}: {row.differing} of {row.elements} differ, by {row.largest:g}", file=sys.stderr)
    if results.keys() == every.keys():
        filesystem.write_bytes(PAGE, page(results).encode())
    if {name for name, _ in models} == set(zoo.MODELS):
        filesystem.write_bytes(zoo.PAGE, zoo.page(models).encode())
    return 7 if unexplained or any(map(zoo.differs, models.values())) else 0


def _run_models(names: Sequence[str], folder: Path) -> dict[zoo.Key, zoo.Outcome]:
    found = {}
    for name, target in zoo.rows(names):
        outcome = zoo.run(name, target, filesystem.make_directory(folder / f"{name}-{target}"))
        found[name, target] = outcome
        status = outcome.refusal if outcome.record is None else outcome.record["status"]
        print(f"{name} {target}: {status}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
