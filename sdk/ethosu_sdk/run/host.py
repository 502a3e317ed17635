"""`run --simulator host`: ExecuTorch's own runtime on this machine, Ethos-U delegates on the NPU model."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk.base import cache, filesystem, tools
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.program import execution_plan
from ethosu_sdk.program.feeds import Feed, Stepper
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import provenance
from ethosu_sdk.records.common import Simulator, Unavailable
from ethosu_sdk.records.run import Memory, Npu, Runtime
from ethosu_sdk.run import evidence, input_values, repeats
from ethosu_sdk.run.execution import Execution, instructions, npu_part
from ethosu_sdk.run.job import RunJob
from ethosu_sdk.run.options import EXECUTORCH, HOST, LAST_STEP, RunOptions
from ethosu_sdk.run.repeats import Repeated, RepeatPlan, changed_results
from ethosu_sdk.run.sequences import Choices, StepResult
from ethosu_sdk.simulate import simulation
from ethosu_sdk.simulate.program_board import BoardAndSimulator

_FIDELITY = (
    "functional: ExecuTorch's own runtime and kernels on this machine (for cortex_m:: the firmware's), "
    "NPU arithmetic is exact, NPU cycles modelled; no board, no firmware"
)
_NO_BOARD = "nothing runs on a board"
_PACKAGE = "executorch"


def choose(_npu: str | None, _options: RunOptions) -> BoardAndSimulator:
    """No board: this machine."""
    return BoardAndSimulator(HOST, HOST, _NO_BOARD)


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Run `job` on the host runtime. Raises ToolError without a compiler or the executorch package."""
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import errors
    from ethosu_sdk.simulate import host_runtime
    from ethosu_sdk.simulate.host_runtime import NpuModel

    options = job.options
    with reporter.stage("building the host runner (the first time only)"):
        runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
    model = NpuModel(job.memories)
    plan = RepeatPlan(job.samples.count, options.repeat, state=repeats.repeats_state(job, options.repeat))
    with (
        reporter.stage(f"running {counted(plan.inferences, 'inference')} on the host"),
        errors.until(time.monotonic() + options.timeout_s),
        contextlib.ExitStack() as stack,
    ):

        def start() -> host_runtime.HostRuntime:
            stack.close()
            opened = host_runtime.open_pte(
                runner,
                job.path,
                model,
                method=job.plan.name,
                timeout_s=options.timeout_s,
                data=[row.path for row in job.program.data_files],
            )
            runtime = stack.enter_context(opened)
            for row in job.kept.tensors:
                if row.initial:
                    runtime.write(*row.place[:2], row.initial)
            return runtime

        results = _run_all(start, model, job, plan)
    return _execution(job, plan, results, model, runner)


def execute_calls(calls: Sequence[HostCall], reporter: Reporter) -> list[Execution]:
    """Run the jobs of a script one after the other, with the methods of their program loaded once."""
    from ethosu_sdk.npu import errors
    from ethosu_sdk.simulate import host_runtime
    from ethosu_sdk.simulate.host_runtime import NpuModel

    first = calls[0].job
    with reporter.stage("building the host runner (the first time only)"):
        runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
    names = tuple(dict.fromkeys(call.job.plan.name for call in calls))
    shared = execution_plan.shares_state([first.program.plan(name) for name in first.program.methods])
    models = [NpuModel(call.job.memories) for call in calls]
    model = models[0]

    def delegate(call: Any) -> Any:
        return model(call)  # of the call that runs: each counts for itself

    found: list[Execution] = []
    with (
        reporter.stage(f"running {counted(len(calls), 'call')} on the host"),
        errors.until(time.monotonic() + first.options.timeout_s),
        host_runtime.open_pte(
            runner,
            first.path,
            delegate,
            method=names,
            shares_state=shared,
            timeout_s=first.options.timeout_s,
            data=[row.path for row in first.program.data_files],
        ) as runtime,
    ):
        last: tuple[npt.NDArray[Any], ...] = ()
        for call, model in zip(calls, models, strict=True):
            job, plan = call.begun(last), RepeatPlan(call.job.samples.count)
            results = _run_all(lambda: runtime, model, job, plan)
            last = results.outputs[-1]
            found.append(_execution(job, plan, results, model, runner))
    return found


class HostCall(Struct, frozen=True):
    """A call of a script. Inputs of its first step come from the outputs of the call before by `takes`."""

    job: RunJob
    takes: tuple[Feed, ...] = ()

    def begun(self, last: Sequence[npt.NDArray[Any]]) -> RunJob:
        samples = self.job.samples
        steps = evidence.with_taken(samples.steps, self.takes, last)
        kept = replace(self.job.kept, is_watched=False)
        return replace(self.job, samples=dataclasses.replace(samples, steps=steps), kept=kept)


def _execution(job: RunJob, plan: RepeatPlan, results: _Results, model: Any, runner: Path) -> Execution:
    plan, options = replace(plan, sets=len(results.outputs)), job.options  # a feed may have ended it
    npu, unavailable = _npu(job, model, results.calls[0])
    version = tools.package_version(_PACKAGE) or "unknown"
    spans = zip([0, *results.calls[:-1]], results.calls, strict=True)
    # By the call in its inference.
    counters = [dict(enumerate(model.calls[start:end])) for start, end in spans]
    return Execution(
        outputs=input_values.stacked(
            tuple(results.outputs[-1:] if options.outputs == LAST_STEP else results.outputs),
            job.samples.stacked,
        ),
        done=Check(
            "every inference ended", True, f"{counted(plan.inferences, 'inference')} ended without an error"
        ),
        runtime=Runtime(name=EXECUTORCH, version=version),
        simulator=Simulator(
            name=HOST, version=version, fidelity=_FIDELITY + simulation.cycles_band(job.npu, job.macs)
        ),
        provenance_inputs=[provenance.file_entry("host-runner", runner)],
        tools=[provenance.tool_entry(_PACKAGE, version)],
        npu=npu,
        memory=Memory(regions=(), pools=()),
        steps=_steps(job, results, model, plan.repeats),
        state=results.states[-1] if job.kept.is_saved else (),
        operators=instructions(job.plan, npu),
        unavailable=[Unavailable(path="/cpu/cycles", reason=_NO_BOARD), *unavailable],
        repeated=Repeated(plan, changed_results(plan, results.digests), changed_results(plan, counters)),
    )


class _Results(Struct):
    """Of all inferences: outputs of the first repeat of each set, digests and NPU calls of every one."""

    outputs: list[tuple[npt.NDArray[Any], ...]]
    digests: list[dict[int, object]]
    calls: list[int]  # up to the end of each inference
    choices: list[Choices]  # of each set
    states: list[list[bytes]]  # after each set, where the state is watched


def _run_all(start: Callable[[], Any], model: Any, job: RunJob, plan: RepeatPlan) -> _Results:
    """Run all inferences of `job`; `start` loads the program anew, with the state that it brings."""
    results, runtime, stepper = _Results([], [], [], [], []), start(), Stepper(job.samples.steps)
    while not stepper.is_over:
        values = stepper.inputs()
        for repeat in range(plan.repeats):
            if results.calls and plan.state == repeats.RESET:
                runtime = start()
            outputs = tuple(runtime.run(values, job.plan.name))
            if repeat == 0:
                results.outputs.append(outputs)
            results.digests.append(
                {i: (a.shape, filesystem.sha256_bytes(a.tobytes())) for i, a in enumerate(outputs)}
            )
            results.calls.append(len(model.calls))
        results.choices.append(stepper.take(dict(enumerate(outputs))))
        if job.kept.is_watched:
            results.states.append([runtime.read(*row.place) for row in job.kept.tensors])
        if job.options.on_step is not None:
            job.options.on_step(stepper.step - 1, results.choices[-1])
    return results


def _steps(job: RunJob, results: _Results, model: Any, each: int) -> list[StepResult]:
    from ethosu_sdk.simulate.host_runtime import event_totals

    starts, found = [0, *results.calls], []
    for step, choices in enumerate(results.choices):
        calls = model.calls[starts[step * each] : starts[step * each + 1]]
        crcs = tuple(f"{zlib.crc32(data):08x}" for data in results.states[step]) if results.states else ()
        outputs = input_values.crcs(results.outputs[step], job.plan.output_tensors())
        if job.target is None:
            found.append(StepResult(choices, crcs, output_crcs=outputs))
            continue
        counters = event_totals(job.target.npu, job.events, calls)
        found.append(StepResult(choices, crcs, sum(row.total_cycles for row in calls), counters, outputs))
    return found


def _npu(job: RunJob, model: Any, first_calls: int) -> tuple[Npu | None, list[Unavailable]]:
    from ethosu_sdk.npu.config import NpuConfig
    from ethosu_sdk.simulate.host_runtime import event_totals

    target, events = job.target, job.events
    if target is None:
        return None, [provenance.lacking_npu("/npu")]
    config = NpuConfig.for_target(target.npu, target.macs)
    first = model.calls[:first_calls]
    return npu_part(
        target.npu,
        events,
        identity=(config.id_word, config.config_word),
        delegate_calls=len(model.calls),
        cycles=sum(counters.total_cycles for counters in first),
        totals={event: (value, False) for event, value in event_totals(target.npu, events, first).items()},
    )
