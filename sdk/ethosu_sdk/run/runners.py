"""The table of runners, what each refuses, the choice of one, and `--runtime both`, which compares two."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.output_comparison import Check, Tolerance, compare, different_bits
from ethosu_sdk.records.run import Npu, SecondOpinion, SecondOpinionNpu, SecondOpinionOutput
from ethosu_sdk.run import device, firmware, host, prebuilt
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.job import RunJob
from ethosu_sdk.run.options import BOTH, DEVICE, EXECUTORCH, FVP, HOST, OWN, RUNTIMES, SIMULATORS, RunOptions
from ethosu_sdk.run.reference import is_exact
from ethosu_sdk.simulate.program_board import AUTO, BoardAndSimulator

Array = npt.NDArray[Any]

# `--runtime both`: the program on two runtimes, and the results of the one against those of the other.

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


def choose_both(npu: str | None, options: RunOptions) -> BoardAndSimulator:
    """The board and simulator of the SDK's firmware. UsageError where Arm's runner has neither."""
    prebuilt.choose(npu, options)
    return firmware.choose(npu, options)


def execute_both(job: RunJob, reporter: Reporter) -> Execution:
    """Run `job` on the SDK's firmware and on Arm's runner; the latter's outputs go to the job's folder."""
    other_choice = prebuilt.choose(job.npu, job.options)
    request = prebuilt.prepare(replace(job, choice=other_choice))  # which refuses before anything is built
    own = firmware.execute(job, reporter)
    other = prebuilt.run(request, job.folder / UART_NAME, reporter)
    npz.write_npz(
        job.folder / OUTPUTS_NAME, {f"output{index}": array for index, array in enumerate(other.outputs)}
    )
    opinion, checks = _second_opinion(job.plan, own, other)
    return replace(
        own,
        provenance_inputs=[*own.provenance_inputs, *other.provenance_inputs],
        tools=[*own.tools, *(row for row in other.tools if row not in own.tools)],
        second_opinion=opinion,
        opinion_checks=checks,
    )


def _second_opinion(
    plan: ExecutionPlan, own: Execution, other: Execution
) -> tuple[SecondOpinion, list[Check]]:
    """`other` against the SDK's `own` execution. Floating-point outputs may differ a little where kernels round."""
    may_round = not is_exact(plan)
    called = {name.partition(".")[0].removesuffix("_nhwc") for name in plan.called_operators()}
    known = "; ".join(words.format(name) for name, words in _OTHERWISE.items() if name in called)
    checks, rows = [other.done], []
    for index, (left, right) in enumerate(zip(own.outputs, other.outputs, strict=True)):
        bound = _BOUND if may_round and left.dtype.kind == "f" else _EXACT
        check = compare(f"output{index} is the same on both runtimes", left, right, bound)
        if known and not check.passed:
            check = dataclasses.replace(check, detail=f"{check.detail}. {known}")
        checks.append(check)
        rows.append(
            SecondOpinionOutput(
                index=index,
                sha256=filesystem.sha256_bytes(right.tobytes()),
                file=OUTPUTS_NAME,
                differing=int(different_bits(left, right).sum()),
                atol=bound.atol,
                rtol=bound.rtol,
            )
        )
    npu = other.npu
    opinion = SecondOpinion(
        runtime=other.runtime,
        outputs=tuple(rows),
        npu=None if npu is None else SecondOpinionNpu(cycles=npu.cycles, counters=npu.counters),
    )
    return opinion, [*checks, *_npu_check(own.npu, npu)]


def _npu_check(own: Npu | None, other: Npu | None) -> Sequence[Check]:
    if own is None or other is None or own.cycles is None or other.cycles is None:
        return ()
    left, right = (
        {"cycles": int(cycles.value)} | {row.event: row.value for row in npu.counters}
        for npu, cycles in ((own, own.cycles), (other, other.cycles))
    )
    name = "the NPU counted the same on both runtimes"
    for figure in left:
        if figure in right and left[figure] != right[figure]:
            detail = f"{figure} is {left[figure]:,} on the SDK's firmware, {right[figure]:,} on ExecuTorch's runtime"
            return (Check(name, False, detail),)
    common = [f"{figure} {value:,}" for figure, value in left.items() if figure in right]
    return (Check(name, True, ", ".join(common)),)


# The table of runners, the options that each refuses, and the choice of a runner.

_DEFAULTS = RunOptions()
_QEMU = "qemu"
_OUT = "leave it out"


class Refusal(Struct, frozen=True):
    """A member of RunOptions that a runner does not have, and the error when it is given."""

    option: str
    message: str
    hint: str


class Runner(Struct, frozen=True):
    """A way to run a program, for the values of --runtime and --simulator that select it."""

    runtimes: Sequence[str]
    simulators: Sequence[str]
    choose: Callable[[str | None, RunOptions], BoardAndSimulator]
    execute: Callable[[RunJob, Reporter], Execution]
    refusals: Sequence[Refusal]

    def refusal(self, options: RunOptions) -> Refusal | None:
        changed = (
            row for row in self.refusals if getattr(options, row.option) != getattr(_DEFAULTS, row.option)
        )
        return next(changed, None)


def _no_simulated_time(reason: str) -> tuple[Refusal, ...]:
    return (
        Refusal("fast", f"--fast is for the FVP: {reason}", _OUT),
        Refusal("simulated_limit_s", f"--simulated-limit is for the FVP: {reason}", _OUT),
    )


_ON_QEMU = _no_simulated_time("QEMU does not simulate time")
_ON_FVP = (
    Refusal(
        "memory_timing",
        "the FVP has timing adapters of its own, which a firmware sets",
        "leave --memory-timing out",
    ),
)
_ON_HOST = (
    Refusal("board", "the host simulator has no board", "leave --board out"),
    Refusal("resident", "the host simulator has no firmware", "leave --resident out"),
    Refusal("data_memory", "the host simulator has no board's memory", "leave --data-memory out"),
    Refusal(
        "runtime",
        "--runtime chooses what runs on a board, but the host simulator has no board",
        "leave --runtime out: the host simulator runs ExecuTorch's own runtime",
    ),
    Refusal("split", "--split runs on the SDK's own firmware", "leave --simulator out"),
    *_no_simulated_time("the host simulator does not simulate time"),
)
_ON_DEVICE = (
    Refusal("data_memory", "--data-memory is for firmware that is built for a program", _OUT),
    Refusal("cpu_cycles", "--cpu-cycles is for QEMU: a device does not count executed blocks", _OUT),
    Refusal("cpu_clock_mhz", "--cpu-clock-mhz is for QEMU: a device does not count executed blocks", _OUT),
    Refusal(
        "memory_timing", "--memory-timing is for modelled cycles: a device has memories of its own", _OUT
    ),
    *_no_simulated_time("a device does not simulate time"),
)
_ON_PREBUILT = (
    Refusal("data_memory", "--data-memory is for the SDK's own firmware", "leave --data-memory out"),
    Refusal(
        "resident",
        "--resident is for the SDK's own firmware: Arm's runner is not built for a program",
        "leave --resident out",
    ),
    Refusal("split", "--split runs on the SDK's own firmware", "leave --runtime out"),
    Refusal("memory_timing", "--memory-timing is for the SDK's own firmware", "leave --runtime out"),
    *_no_simulated_time("Arm's runner runs on QEMU, which does not simulate time"),
)

# The table. Where several rows fit the options, the simulator that `choose` names decides.
RUNNERS = (
    Runner((OWN,), (AUTO, _QEMU), firmware.choose, firmware.execute, _ON_QEMU),
    Runner((OWN,), (AUTO, FVP), firmware.choose, firmware.execute, _ON_FVP),
    Runner((EXECUTORCH,), (AUTO, _QEMU, FVP), prebuilt.choose, prebuilt.execute, _ON_PREBUILT),
    Runner((BOTH,), (AUTO, _QEMU, FVP), choose_both, execute_both, _ON_PREBUILT),
    Runner((OWN,), (DEVICE,), device.choose, device.execute, _ON_DEVICE),
    Runner(RUNTIMES, (HOST,), host.choose, host.execute, _ON_HOST),
)


def check_runner_options(options: RunOptions) -> None:
    """UsageError for a --simulator or --runtime that does not exist, and for an option that no runner of both has."""
    for name, value, known in (
        ("simulator", options.simulator, (*SIMULATORS, DEVICE)),
        ("runtime", options.runtime, RUNTIMES),
    ):
        if value not in known:
            raise UsageError(f"unknown {name} '{value}'", suggestion(value, known))
    if options.simulator == DEVICE and options.device is None:
        raise UsageError("the run was on a device", "run it with --device")
    if not _fitting(options):
        raise UsageError(f"--runtime {options.runtime} runs on no device", "leave --runtime out")
    _refuse(_fitting(options), options)


def on_device(options: RunOptions) -> RunOptions:
    """`options`, where they name a device, as those of the runner for it: its firmware holds any program."""
    if options.device is None:
        return options
    if options.simulator not in (AUTO, DEVICE):
        raise UsageError(
            f"--simulator {options.simulator} runs on no device", "leave --simulator or --device out"
        )
    if options.script is not None:
        raise UsageError("--script runs on no device", "leave --device out")
    return dataclasses.replace(options, simulator=DEVICE, resident=True)


def refuse_data_files(options: RunOptions) -> None:
    """UsageError for a runner that takes a program without data files alone."""
    if options.resident:
        name = "resident" if options.device is None else "device"
        raise UsageError(f"--{name} takes no program with data files (.ptd)", f"leave --{name} out")
    if options.runtime != OWN:
        raise UsageError(
            f"--runtime {options.runtime} takes no program with data files (.ptd): Arm's runner has no room for them",
            "leave --runtime out, or use --simulator host",
        )


def choose_runner(options: RunOptions, npu: str | None) -> tuple[Runner, BoardAndSimulator]:
    """The runner for `npu` (None: no NPU), board and simulator. UsageError for what the runner does not have."""
    fitting = _fitting(options)
    choice = fitting[0].choose(npu, options)
    runner = next(row for row in fitting if choice.simulator in row.simulators)
    _refuse([runner], options)
    return runner, choice


def _fitting(options: RunOptions) -> list[Runner]:
    return [row for row in RUNNERS if options.runtime in row.runtimes and options.simulator in row.simulators]


def _refuse(rows: Sequence[Runner], options: RunOptions) -> None:
    refusals = [row.refusal(options) for row in rows]
    if refusals[0] is not None and all(refusals):
        raise UsageError(refusals[0].message, refusals[0].hint)
