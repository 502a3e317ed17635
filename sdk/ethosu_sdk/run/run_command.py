"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import UsageError, VerdictError
from ethosu_sdk.base.targets import Target, suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command, memory_fit, program_checks
from ethosu_sdk.program import feeds, output_comparison, pte
from ethosu_sdk.records import bundle, kinds, result_files, validation
from ethosu_sdk.records.run import Run
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
from ethosu_sdk.run.job import UART_NAME, RunJob, Setting, choose_memories
from ethosu_sdk.run.options import LAST_STEP, RunOptions
from ethosu_sdk.run.reference import CompileRecord
from ethosu_sdk.run.run_record import RunVerdict
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
    record: Run
    pte: Path
    data: tuple[Path, ...] = ()


def run(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> RunResult:
    """Run `model`, making what is missing. VerdictError, after everything was written, when it has not passed."""
    model = result_files.program_of(model)
    setting = resolve_setting(model, compile_options, options, out_dir, reporter)
    path, program, options = setting.path, setting.program, setting.options
    folder = result_files.folder_for_pte(path, setting.target, out_dir)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)  # again: what was compiled may lie there now
        names = (*_RESULTS, bundle.MANIFEST_NAME)
        if options.save_state.parent.resolve() == folder.resolve() and options.save_state.name in names:
            raise UsageError(
                f"--save-state: {options.save_state} is a file that the run itself writes",
                "choose another name",
            )
    with contextlib.ExitStack() as stack:
        with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
            remove_results(folder)
            with memory_fit.advice_added(path, compiled_here=not model.endswith(".pte")):
                start = time.monotonic()
                job = resolve_job(setting, folder, reporter)
                execution = job.execute(job, reporter)
                saving = kept_state.saving(
                    job.kept, options.save_state, program, execution.state, len(execution.steps)
                )
                publish_state = stack.enter_context(saving)
                verdict = judge_run(job, execution)
                record = write_results(job, execution, verdict, start, reporter)
            add(*_RESULTS, *(execution.built or earlier_build(folder)))
        publish_state()  # last of all: it goes on only if its record is there
    reporter.show(run_record.run_summary(record, folder, build_command.data_lines(program)))
    reporter.emit(record.to_json())
    _raise_if_failed(record, folder)
    return RunResult(folder, record, path, tuple(row.path for row in program.data_files))


def resolve_setting(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Setting:
    """What `options` ask for, whichever method runs; `model` is compiled where it must be. UsageError for what the
    machine or the NPU of the program does not have, before anything is compiled where that can be known, InputError
    for data files that do not fit."""
    runners.check_runner_options(options)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
    path = program_file(model, compile_options, options, out_dir, reporter)
    program = pte.read(path, options.data)
    program.check_data()
    compiled = CompileRecord(path, program.sha256)
    if program.target() is None and compiled.content is not None:
        options = replace(options, core=compiled.content.core)
    priced = options.priced or pricing_system.pricing_asked_for(path, program, compile_options)
    clock = time_line.cpu_clock(compile_options.system, options.cpu_clock_mhz, priced)
    if clock.was_asked_for(compile_options.system) and options.script is None:
        options = replace(options, cpu_cycles=True)
    runner, choice = runners.choose_runner(options, program.npu())
    if program.data_files:
        runners.refuse_data_files(options)
    return Setting(
        path=path,
        program=program,
        compiled=compiled,
        options=options,
        choice=choice,
        execute=runner.execute,
        events=choose_events(program.npu(), options.events),
        priced=priced,
        memories=choose_memories(program.target(), priced, options.memory_timing),
        cpu_clock=clock,
    )


def program_file(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Path:
    """The program of `model`, which is compiled where it must be. UsageError, before that, for a board that does not
    exist or lacks the target's NPU, and for data files of a model that is not compiled yet."""
    model = result_files.program_of(model)
    if model.endswith(".pte"):
        return result_files.require_pte(Path(model))
    # Here and not above: a run of a program does without the compiler.
    from ethosu_sdk.compile import compile_command

    if options.data:
        raise UsageError("--data is for a program that is compiled already", "give the MODEL.pte")
    if options.board is not None:
        target = compile_command.target_of(compile_options)
        npu = target.npu if isinstance(target, Target) and compile_options.delegate else None
        runners.choose_runner(options, npu)
    return compile_command.compile_model(model, compile_options, out_dir, reporter.for_step(), reuse=True)


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


def resolve_job(setting: Setting, folder: Path, reporter: Reporter) -> RunJob:
    """The run of the method that the options name. Raises before anything is built for what cannot be run."""
    program, options = setting.program, setting.options
    name = options.method
    if name is not None and name not in program.methods:
        raise UsageError(f"the program has no method '{name}'", suggestion(name, program.methods))
    plan = program.plan(name)
    input_values.check_program_memory(plan)
    program_checks.refuse_delegates(plan)
    program_checks.refuse_kernel_calls([plan])
    program_checks.refuse_lost_tables([plan])
    wanted = feeds.parse_feeds(options.feed)
    if not wanted and options.steps is not None:
        wanted = reference.declared_feeds(setting.compiled, plan.name)
    samples = input_values.load_samples(options.inputs, setting.path, plan, wanted, options.steps)
    kept = kept_state.load_state(
        program,
        plan,
        options.state,
        saves=options.save_state is not None,
        is_sequence=samples.is_sequence or samples.count > 1,
        steps=samples.count,
    )
    samples = samples.going_on(kept.steps)
    if options.growth and not (plan.is_stateful or samples.steps.feeds):
        raise UsageError(
            "--growth is for steps that depend on the one before: the program keeps no state, and nothing is fed",
            "leave --growth out, or give --atol and --rtol what every inference is allowed",
        )
    input_values.check_outputs_memory(plan, samples)
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: using {escape(samples.source)}")
    expected = None if options.expect is None else input_values.load_expected(options.expect, plan, samples)
    shared = structs.asdict(setting)
    return RunJob(**shared, folder=folder, plan=plan, samples=samples, expected=expected, kept=kept)


def judge_run(job: RunJob, execution: Execution) -> RunVerdict:
    """Everything that is checked of an execution, in the order of the record."""
    options, outputs = job.options, execution.outputs
    # The first step whose outputs the board has sent.
    first = max(0, len(execution.steps) - 1) if options.outputs == LAST_STEP else 0
    checks = [execution.done, *repeats.repeats_checks(execution.repeated), *execution.checks]
    distance, steps = reference.Reference(), None
    tolerance = output_comparison.Tolerance(options.atol, options.rtol)
    if job.expected is None:
        distance = reference.compare_with_reference(job.compiled, job.plan, job.samples, outputs, first)
    elif job.samples.count > 1:
        tensors, unsent = job.plan.output_tensors(), []
        for step in range(first):
            wanted = input_values.crcs((row[step] for row in job.expected), tensors)
            pairs = zip(execution.steps[step].output_crcs, wanted, strict=True)
            unsent.append(tuple(found == due for found, due in pairs))
        steps = sequences.judge_steps(outputs, job.expected, tolerance, options.growth, unsent)
        checks += steps.checks
    else:
        checks += output_comparison.compare_outputs(outputs, job.expected, tolerance)
    checks += [*distance.checks, *execution.opinion_checks]
    return RunVerdict(checks, distance, tuple(program_checks.hazard_warnings(job.plan)), steps)


def write_results(
    job: RunJob, execution: Execution, verdict: RunVerdict, start: float, reporter: Reporter
) -> Run:
    """Write outputs and record; `start` is when the run began."""
    for sentence in verdict.hazards:
        reporter.warn(escape(f"{sentence}. {program_checks.HAZARDS_HINT}"))
    arrays = {f"output{index}": array for index, array in enumerate(execution.outputs)}
    npz.write_npz(job.folder / OUTPUTS_NAME, arrays)
    record = run_record.make_run_record(job, execution, verdict, OUTPUTS_NAME, time.monotonic() - start)
    validation.write_record(job.folder / kinds.RUN.file, record, "the run result")
    return record


def earlier_build(folder: Path) -> tuple[str, ...]:
    """The files of the firmware that an earlier command built in the folder. InputError if its record has changed."""
    path = folder / kinds.BUILD.file
    return build_command.files(bundle.read_raw_record(path)) if path.is_file() else ()


def _raise_if_failed(run: Run, folder: Path) -> None:
    if run.status == "pass":
        return
    failed = [row for row in run.verdict.checks if row.status == "fail"]
    raise VerdictError(
        "the outputs are not as expected:\n" + "\n".join(f"  {row.name}: {row.detail}" for row in failed),
        f"the outputs are in {folder / OUTPUTS_NAME}",
        recorded=True,
    )
