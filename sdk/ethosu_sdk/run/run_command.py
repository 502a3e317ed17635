"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.base import filesystem, json_text, npz
from ethosu_sdk.base.errors import UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import Target, suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import compile_command, pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command, memory_advice, program_checks
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.program import feeds, output_comparison, pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.records import bundle, kinds, result_files, validation
from ethosu_sdk.run import (
    input_values,
    kept_state,
    reference,
    repeats,
    run_record,
    runners,
    sequences,
    time_line,
)
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.job import UART_NAME, RunJob, choose_memories
from ethosu_sdk.run.options import LAST_STEP, RunOptions
from ethosu_sdk.run.run_record import RunVerdict
from ethosu_sdk.run.runners import Runner
from ethosu_sdk.run.sequences import Array, StepsVerdict
from ethosu_sdk.run.time_line import CpuClock
from ethosu_sdk.simulate import program_board
from ethosu_sdk.simulate.program_board import BoardAndSimulator
from ethosu_sdk.simulate.simulators import choose_events

OUTPUTS_NAME = "outputs.npz"
CALLS = "calls"
_CALL_RESULTS = (kinds.RUN.file, OUTPUTS_NAME)
_CALL_FOLDER = re.compile(r"\d+-.*")
_RESULTS = (
    *(kinds.SCRIPT.file, kinds.RUN.file, OUTPUTS_NAME, UART_NAME),
    *(runners.OUTPUTS_NAME, runners.UART_NAME),
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
    runners.check_runner_options(options)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
    check_board(model, options, compile_options)
    path = program_file(model, compile_options, out_dir, reporter)
    program = pte.read(path, data_paths(model, options))
    options = replace(options, core=program_board.compiled_core_of(path, program))
    priced = options.priced or pricing_system.pricing_asked_for(path, program, compile_options)
    clock = time_line.cpu_clock(compile_options.system, options.cpu_clock_mhz, priced)
    if clock.was_asked_for(compile_options.system):
        options = replace(options, cpu_cycles=True)
    folder = result_files.folder_for_pte(path, program.target(), out_dir)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
        kept_state.check_is_no_result(options.save_state, folder, (*_RESULTS, bundle.MANIFEST_NAME))
    with contextlib.ExitStack() as stack:
        with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
            remove_results(folder)
            with memory_advice.advice_added(path, compiled_here=not model.endswith(".pte")):
                start = time.monotonic()
                runner, job = resolve_job(path, program, folder, options, (priced, clock), reporter)
                execution = runner.execute(job, reporter)
                saving = kept_state.saving(
                    job.kept, options.save_state, program, execution.state, len(execution.steps)
                )
                publish_state = stack.enter_context(saving)
                record = write_results(job, execution, judge_run(job, execution), start, reporter)
            add(*_RESULTS, *(execution.built or earlier_build(folder)))
        publish_state()  # last of all: it goes on only if its record is there
    reporter.show(run_record.run_summary(record, folder, build_command.data_lines(program)))
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
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
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
        runners.choose_runner(options, npu)


@dataclass(frozen=True)
class Machine:
    """What runs a program, where, and what is counted there: the timing of the memories and the PMU events."""

    runner: Runner
    choice: BoardAndSimulator
    memories: SystemConfig | None
    events: tuple[int, ...]


def machine(program: pte.Pte, priced: PricingSystem | None, options: RunOptions) -> Machine:
    """The machine that `options` ask for, whichever method runs on it. UsageError for what it or the NPU of `program`
    does not have, InputError for data files that do not fit."""
    program.check_data()
    runner, choice = runners.choose_runner(options, program.npu())
    if program.data_files:
        runners.refuse_data_files(options)
    memories = choose_memories(program.target(), priced, options.memory_timing)
    return Machine(runner, choice, memories, choose_events(program.npu(), options.events))


def program_file(model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter) -> Path:
    """The program of `model`, which is compiled where it must be."""
    if model.endswith(".pte"):
        return result_files.require_pte(Path(model))
    return compile_command.compile_model(model, options, out_dir, reporter.for_step(), reuse=True)


def resolve_job(
    path: Path,
    program: pte.Pte,
    folder: Path,
    options: RunOptions,
    pricing: tuple[PricingSystem | None, CpuClock],
    reporter: Reporter,
) -> tuple[Runner, RunJob]:
    """The job, and what runs it. Raises before anything is built for what cannot be run."""
    plan = _method(program, options.method)
    priced, clock = pricing
    found = machine(program, priced, options)
    input_values.check_program_memory(plan)
    program_checks.refuse_delegates(plan)
    program_checks.refuse_kernel_calls([plan])
    program_checks.refuse_lost_tables([plan])
    wanted = feeds.parse_feeds(options.feed)
    if not wanted and options.steps is not None:
        wanted = reference.declared_feeds(path, program, plan)
    samples = input_values.load_samples(options.inputs, path, plan, wanted, options.steps)
    kept = kept_state.load_state(
        program,
        plan,
        options.state,
        saves=options.save_state is not None,
        is_sequence=samples.is_sequence or samples.count > 1,
    )
    kept_state.check_steps(kept, samples.count)
    samples = samples.going_on(kept.steps)
    _check_growth(options, samples, plan)
    input_values.check_outputs_memory(plan, samples)
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: using {escape(samples.source)}")
    expected = None if options.expect is None else input_values.load_expected(options.expect, plan, samples)
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


def _check_growth(options: RunOptions, samples: input_values.Samples, plan: ExecutionPlan) -> None:
    """UsageError for a tolerance that grows where no step depends on the one before."""
    if options.growth and not (plan.is_stateful or samples.steps.feeds):
        raise UsageError(
            "--growth is for steps that depend on the one before: the program keeps no state, and nothing is fed",
            "leave --growth out, or give --atol and --rtol what every inference is allowed",
        )


def _method(program: pte.Pte, name: str | None) -> ExecutionPlan:
    """The method to run. UsageError for one that the program does not have."""
    if name is not None and name not in program.methods:
        raise UsageError(f"the program has no method '{name}'", suggestion(name, program.methods))
    return program.plan(name)


def judge_run(job: RunJob, execution: Execution) -> RunVerdict:
    """Everything that is checked of an execution, in the order of the record."""
    distance = reference.Reference()
    if job.expected is None:
        first = _first_sent(job, execution)
        distance = reference.compare_with_reference(
            job.path, job.program, job.plan, job.samples, execution.outputs, first
        )
    checks = [execution.done, *repeats.repeats_checks(execution.repeated), *execution.checks]
    steps = None
    if job.expected is not None:
        tolerance = output_comparison.Tolerance(job.options.atol, job.options.rtol)
        if job.samples.count > 1:
            steps = _judge_steps(job, execution, job.expected, tolerance)
            checks += steps.checks
        else:
            checks += output_comparison.compare_outputs(execution.outputs, job.expected, tolerance)
    checks += distance.checks
    if execution.second_opinion is not None:
        checks += execution.second_opinion.checks
    return RunVerdict(checks, distance, tuple(program_checks.hazard_warnings(job.plan)), steps)


def _first_sent(job: RunJob, execution: Execution) -> int:
    """The number of the first step whose outputs the board has sent."""
    return max(0, len(execution.steps) - 1) if job.options.outputs == LAST_STEP else 0


def _judge_steps(
    job: RunJob, execution: Execution, expected: Sequence[Array], tolerance: output_comparison.Tolerance
) -> StepsVerdict:
    first, tensors = _first_sent(job, execution), job.plan.output_tensors()
    unsent = []
    for step in range(first):
        wanted = input_values.crcs((row[step] for row in expected), tensors)
        pairs = zip(execution.steps[step].output_crcs, wanted, strict=True)
        unsent.append(tuple(found == due for found, due in pairs))
    return sequences.judge_steps(execution.outputs, expected, tolerance, job.options.growth, unsent)


def write_results(
    job: RunJob, execution: Execution, judged: RunVerdict, start: float, reporter: Reporter
) -> Record:
    """Write outputs and record; `start` is when the run began."""
    for sentence in judged.hazards:
        reporter.warn(escape(f"{sentence}. {program_checks.HAZARDS_HINT}"))
    arrays = {f"output{index}": array for index, array in enumerate(execution.outputs)}
    npz.write_npz(job.folder / OUTPUTS_NAME, arrays)
    record = run_record.make_run_record(job, execution, judged, OUTPUTS_NAME, time.monotonic() - start)
    validation.check_record(record, "the run result")
    json_text.write_json(job.folder / kinds.RUN.file, record)
    return record


def earlier_build(folder: Path) -> tuple[str, ...]:
    """The files of the firmware that an earlier command built in the folder. InputError if its record has changed."""
    path = folder / kinds.BUILD.file
    return build_command.files(bundle.read_raw_record(path)) if path.is_file() else ()


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
