"""`run --runtime both`: the program on two runtimes, and the results of the one against those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from ethosu_sdk import npz, pte
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.evidence.verdict import Check, Tolerance, compare, different_bits
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record
from ethosu_sdk.steps.run import firmware, prebuilt
from ethosu_sdk.steps.run.execution import Execution, SecondOpinion
from ethosu_sdk.steps.run.job import RunJob
from ethosu_sdk.steps.run.options import RunOptions
from ethosu_sdk.steps.run.reference import exact
from ethosu_sdk.steps.shared.board import Choice

Array = npt.NDArray[Any]

OUTPUTS_NAME = "outputs-executorch.npz"
UART_NAME = "uart-executorch.log"
# The widest bound of a kernel against ExecuTorch's (docs/reference/kernels.md), for outputs in floating point of
# programs with kernels that compute in it; all else must be the same, bit for bit.
_BOUND = Tolerance(atol=4e-6, rtol=4e-6)
_EXACT = Tolerance()
# Where Arm's runner computes otherwise than ExecuTorch's reference, by the name of the operator without its overload.
# CMSIS-NN divides the sum of an average pool so; the reference quantises the mean as torch does.
_OTHERWISE = {
    "cortex_m::quantized_avg_pool2d": "Arm's runner rounds a half away from zero in {}; the reference, and the "
    "SDK's firmware, to even"
}


def choose(npu: str | None, options: RunOptions) -> Choice:
    """The board and simulator of the SDK's firmware. UsageError where Arm's runner has neither."""
    prebuilt.choose(npu, options)
    return firmware.choose(npu, options)


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Run `job` on the SDK's firmware and on Arm's runner; the latter's outputs go to the job's folder."""
    other_choice = prebuilt.choose(job.npu, job.options)
    request = prebuilt.prepare(replace(job, choice=other_choice))  # which refuses before anything is built
    own = firmware.execute(job, reporter)
    other = prebuilt.run(request, job.folder / UART_NAME, reporter)
    npz.write_npz(
        job.folder / OUTPUTS_NAME, {f"output{index}": array for index, array in enumerate(other.outputs)}
    )
    return replace(
        own,
        provenance_inputs=[*own.provenance_inputs, *other.provenance_inputs],
        tools=[*own.tools, *(row for row in other.tools if row not in own.tools)],
        second_opinion=_compare(own, other, may_round=not exact(job.plan), known=_known(job.plan)),
    )


def _known(plan: pte.ExecutionPlan) -> str:
    """Why outputs of the program may differ from those of Arm's runner; empty when nothing is known."""
    called = {name.partition(".")[0].removesuffix("_nhwc") for name in plan.called_operators()}
    return "; ".join(words.format(name) for name, words in _OTHERWISE.items() if name in called)


def _compare(own: Execution, other: Execution, *, may_round: bool, known: str) -> SecondOpinion:
    """`other` against the SDK's `own` execution. Floating-point outputs may differ a little where kernels round. A
    difference is told with the reason that is `known`."""
    pairs = list(zip(own.outputs, other.outputs, strict=True))
    bounds = [_BOUND if may_round and left.dtype.kind == "f" else _EXACT for left, _ in pairs]
    checks = [
        compare(f"output{index} is the same on both runtimes", left, right, bound)
        for index, ((left, right), bound) in enumerate(zip(pairs, bounds, strict=True))
    ]
    if known:
        checks = [row if row.passed else replace(row, detail=f"{row.detail}. {known}") for row in checks]
    part: Record = {
        "runtime": other.runtime,
        "outputs": [
            _row(index, *pair, bound) for index, (pair, bound) in enumerate(zip(pairs, bounds, strict=True))
        ],
        **({"npu": _npu_part(other.npu)} if other.npu is not None else {}),
    }
    return SecondOpinion(part, (other.done, *checks, *_npu_check(own.npu, other.npu)))


def _row(index: int, own: Array, other: Array, bound: Tolerance) -> Record:
    return {
        "index": index,
        "sha256": hashing.sha256_bytes(other.tobytes()),
        "file": OUTPUTS_NAME,
        "differing": int(different_bits(own, other).sum()),
        "atol": bound.atol,
        "rtol": bound.rtol,
    }


def _npu_part(npu: Record) -> Record:
    return {name: npu[name] for name in ("cycles", "counters") if name in npu}


def _npu_check(own: Record | None, other: Record | None) -> Sequence[Check]:
    """Whether the NPU counted the same; nothing without an NPU, or counters that mean something."""
    if own is None or other is None or "cycles" not in own or "cycles" not in other:
        return ()
    left, right = _figures(own), _figures(other)
    name = "the NPU counted the same on both runtimes"
    for figure in left:
        if figure in right and left[figure] != right[figure]:
            detail = f"{figure} is {left[figure]:,} on the SDK's firmware, {right[figure]:,} on ExecuTorch's runtime"
            return (Check(name, False, detail),)
    common = [f"{figure} {value:,}" for figure, value in left.items() if figure in right]
    return (Check(name, True, ", ".join(common)),)


def _figures(npu: Record) -> dict[str, int]:
    return {"cycles": npu["cycles"]["value"]} | {row["event"]: row["value"] for row in npu["counters"]}
