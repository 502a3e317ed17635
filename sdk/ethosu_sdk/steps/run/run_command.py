"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk import feeds, npz, pte, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import UsageError, VerdictError
from ethosu_sdk.evidence import verdict
from ethosu_sdk.files import json_text, locks
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, locations, reading as results
from ethosu_sdk.simulators import choose_events
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.compile import compile_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.run import (
    inputs,
    memory,
    memory_timing,
    reference,
    repeats,
    run_record,
    runners,
    second_opinion,
)
from ethosu_sdk.steps.run.execution import Execution
from ethosu_sdk.steps.run.job import UART_NAME, RunJob
from ethosu_sdk.steps.run.options import LAST_STEP, RunOptions
from ethosu_sdk.steps.run.run_record import Verdict
from ethosu_sdk.steps.run.runners import Runner
from ethosu_sdk.steps.run.sequences import declared, judging, kept_state
from ethosu_sdk.steps.run.sequences.judging import Array, StepsVerdict
from ethosu_sdk.steps.shared import (
    compiled_core,
    delegates,
    hazards,
    kernel_calls,
    memory_advice,
    systems,
    time_line,
)
from ethosu_sdk.steps.shared.board import Choice
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.shared.time_line import CpuClock
from ethosu_sdk.targets import Target, suggestion

OUTPUTS_NAME = "outputs.npz"
CALLS = "calls"
_CALL_RESULTS = (kinds.RUN.file, OUTPUTS_NAME)
_CALL_FOLDER = re.compile(r"\d+-.*")
_RESULTS = (
    *(kinds.SCRIPT.file, kinds.RUN.file, OUTPUTS_NAME, UART_NAME),
    *(second_opinion.OUTPUTS_NAME, second_opinion.UART_NAME),
)


@dataclass(frozen=True)
class RunResult:
    """A run of the program `pte` with its `data` files, whose record and outputs are in `folder`."""

    folder: Path
    record: Record
    pte: Path
    data: tuple[Path, ...] = ()


def run(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> RunResult:
    """Run `model`, compiling and building what is missing or stale; the record that was written, and where.

    Raises VerdictError, after everything was written, when an expectation is not met.
    """
    runners.check(options)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
    check_board(model, options, compile_options)
    path = program_file(model, compile_options, out_dir, reporter)
    program = pte.read(path, data_paths(model, options))
    options = replace(options, core=compiled_core.of(path, program))
    priced = options.priced or systems.asked_for(path, program, compile_options)
    clock = time_line.cpu_clock(compile_options.system, options.cpu_clock_mhz, priced)
    if clock.was_asked_for(compile_options.system):
        options = replace(options, cpu_cycles=True)
    folder = locations.for_pte(path, program.target(), out_dir)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
        kept_state.check_is_no_result(options.save_state, folder, (*_RESULTS, bundle.MANIFEST_NAME))
    with contextlib.ExitStack() as stack:
        with locks.locked(folder), bundle.published(folder, "run") as add:
            remove_results(folder)
            with memory_advice.added(path, compiled_here=not model.endswith(".pte")):
                start = time.monotonic()
                runner, job = resolve(path, program, folder, options, (priced, clock), reporter)
                execution = runner.execute(job, reporter)
                saving = kept_state.saving(
                    job.kept, options.save_state, program, execution.state, len(execution.steps)
                )
                publish_state = stack.enter_context(saving)
                record = write(job, execution, judge(job, execution), start, reporter)
            add(*_RESULTS, *(execution.built or earlier_build(folder)))
        publish_state()  # last of all: it goes on only if its record is there
    reporter.show(run_record.summary(record, folder, build_command.data_lines(program)))
    reporter.emit(record)
    _raise_if_failed(record, folder)
    return RunResult(folder, record, path, tuple(row.path for row in program.data_files))


def remove_results(folder: Path) -> None:
    """Remove what an earlier run or script left: it must not be taken for this one's, should this one fail."""
    calls = [] if (folder / CALLS).is_symlink() else sorted((folder / CALLS).glob("*"))
    calls = [path for path in calls if _CALL_FOLDER.fullmatch(path.name) and not path.is_symlink()]
    for path in (folder, *calls):
        for name in _RESULTS if path == folder else _CALL_RESULTS:
            (path / name).unlink(missing_ok=True)
    for path in (*calls, folder / CALLS):
        with contextlib.suppress(OSError):  # the user has put something into it
            path.rmdir()


def keep_interrupted(folder: Path) -> None:
    """List what a run of the firmware left that was interrupted."""
    with locks.locked(folder), bundle.published(folder, "run") as add:
        add(UART_NAME, *earlier_build(folder))


def data_paths(model: str, options: RunOptions) -> tuple[Path, ...]:
    """The data files that were given. UsageError for a model that has none, as it is not compiled yet."""
    if options.data and not model.endswith(".pte"):
        raise UsageError("--data is for a program that is compiled already", "give the MODEL.pte")
    return options.data


def check_board(model: str, options: RunOptions, compile_options: CompileOptions) -> None:
    """UsageError, before anything is compiled, for a board that does not exist or lacks the target's NPU."""
    if options.board is not None and not model.endswith(".pte"):
        target = compile_command.target_of(compile_options)
        npu = target.npu if isinstance(target, Target) and compile_options.delegate else None
        runners.choose(options, npu)


@dataclass(frozen=True)
class Machine:
    """What runs a program, where, and what is counted there: the timing of the memories and the PMU events."""

    runner: Runner
    choice: Choice
    memories: SystemConfig | None
    events: tuple[int, ...]


def machine(program: pte.Pte, priced: Priced | None, options: RunOptions) -> Machine:
    """The machine that `options` ask for, whichever method runs on it. UsageError for what it or the NPU of `program`
    does not have, InputError for data files that do not fit."""
    program.check_data()
    runner, choice = runners.choose(options, program.npu())
    if program.data_files:
        runners.refuse_data_files(options)
    memories = memory_timing.choose(program.target(), priced, options.memory_timing)
    return Machine(runner, choice, memories, choose_events(program.npu(), options.events))


def program_file(model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter) -> Path:
    """The program of `model`, which is compiled where it must be."""
    if model.endswith(".pte"):
        return locations.require_pte(Path(model))
    return compile_command.compile_model(model, options, out_dir, reporter.for_step(), reuse=True)


def resolve(
    path: Path,
    program: pte.Pte,
    folder: Path,
    options: RunOptions,
    pricing: tuple[Priced | None, CpuClock],
    reporter: Reporter,
) -> tuple[Runner, RunJob]:
    """The job, and what runs it. Raises before anything is built for what cannot be run."""
    plan = _method(program, options.method)
    priced, clock = pricing
    found = machine(program, priced, options)
    memory.check_program(plan)
    delegates.check(plan)
    kernel_calls.refuse([plan])
    hazards.refuse_lost_tables([plan])
    wanted = feeds.parse(options.feed)
    if not wanted and options.steps is not None:
        wanted = declared.feeds(path, program, plan)
    samples = inputs.load(options.inputs, path, plan, wanted, options.steps)
    kept = kept_state.load(
        program,
        plan,
        options.state,
        saves=options.save_state is not None,
        is_sequence=samples.is_sequence or samples.count > 1,
    )
    kept_state.check_steps(kept, samples.count)
    samples = samples.going_on(kept.steps)
    _check_growth(options, samples, plan)
    memory.check_outputs(plan, samples)
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: using {escape(samples.source)}")
    expected = None if options.expect is None else inputs.load_expected(options.expect, plan, samples)
    return found.runner, RunJob(
        path=path,
        program=program,
        folder=folder,
        options=options,
        choice=found.choice,
        samples=samples,
        expected=expected,
        events=found.events,
        priced=priced,
        memories=found.memories,
        cpu_clock=clock,
        kept=kept,
    )


def _check_growth(options: RunOptions, samples: inputs.Samples, plan: pte.ExecutionPlan) -> None:
    """UsageError for a tolerance that grows where no step depends on the one before."""
    if options.growth and not (plan.is_stateful or samples.steps.feeds):
        raise UsageError(
            "--growth is for steps that depend on the one before: the program keeps no state, and nothing is fed",
            "leave --growth out, or give --atol and --rtol what every inference is allowed",
        )


def _method(program: pte.Pte, name: str | None) -> pte.ExecutionPlan:
    """The method to run. UsageError for one that the program does not have."""
    if name is not None and name not in program.methods:
        raise UsageError(f"the program has no method '{name}'", suggestion(name, program.methods))
    return program.plan(name)


def judge(job: RunJob, execution: Execution) -> Verdict:
    """Everything that is checked of an execution, in the order of the record."""
    distance = reference.Reference()
    if job.expected is None:
        first = _first_sent(job, execution)
        distance = reference.compare(job.path, job.program, job.plan, job.samples, execution.outputs, first)
    checks = [execution.done, *repeats.checks(execution.repeated), *execution.checks]
    steps = None
    if job.expected is not None:
        tolerance = verdict.Tolerance(job.options.atol, job.options.rtol)
        if job.samples.count > 1:
            steps = _judge_steps(job, execution, job.expected, tolerance)
            checks += steps.checks
        else:
            checks += verdict.compare_outputs(execution.outputs, job.expected, tolerance)
    checks += distance.checks
    if execution.second_opinion is not None:
        checks += execution.second_opinion.checks
    return Verdict(checks, distance, tuple(hazards.warnings(job.plan)), steps)


def _first_sent(job: RunJob, execution: Execution) -> int:
    """The number of the first step whose outputs the board has sent."""
    return max(0, len(execution.steps) - 1) if job.options.outputs == LAST_STEP else 0


def _judge_steps(
    job: RunJob, execution: Execution, expected: Sequence[Array], tolerance: verdict.Tolerance
) -> StepsVerdict:
    first, tensors = _first_sent(job, execution), job.plan.output_tensors()
    unsent = []
    for step in range(first):
        wanted = inputs.crcs((row[step] for row in expected), tensors)
        pairs = zip(execution.steps[step].output_crcs, wanted, strict=True)
        unsent.append(tuple(found == due for found, due in pairs))
    return judging.judge(execution.outputs, expected, tolerance, job.options.growth, unsent)


def write(job: RunJob, execution: Execution, judged: Verdict, start: float, reporter: Reporter) -> Record:
    """Write outputs and record; `start` is when the run began."""
    for sentence in judged.hazards:
        reporter.warn(escape(f"{sentence}. {hazards.HINT}"))
    arrays = {f"output{index}": array for index, array in enumerate(execution.outputs)}
    npz.write_npz(job.folder / OUTPUTS_NAME, arrays)
    record = run_record.make(job, execution, judged, OUTPUTS_NAME, time.monotonic() - start)
    schema.check(record, "the run result")
    json_text.write_json(job.folder / kinds.RUN.file, record)
    return record


def earlier_build(folder: Path) -> tuple[str, ...]:
    """The files of the firmware that an earlier command built in the folder. InputError if its record has changed."""
    path = folder / kinds.BUILD.file
    return build_command.files(results.read(path)) if path.is_file() else ()


def _raise_if_failed(record: Record, folder: Path) -> None:
    run = kinds.RUN.convert(record)
    if run.status == "pass":
        return
    failed = [row for row in run.verdict.checks if row.status == "fail"]
    raise VerdictError(
        "the outputs are not as expected:\n" + "\n".join(f"  {row.name}: {row.detail}" for row in failed),
        f"the outputs are in {folder / OUTPUTS_NAME}",
        recorded=True,
    )
