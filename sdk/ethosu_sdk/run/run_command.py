"""`ethosu-sdk run`: the whole way, from a model or a `.pte` to a validated run.json."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from ethosu_sdk.base import board_profiles, filesystem, npz
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import SdkError, UsageError, VerdictError
from ethosu_sdk.base.targets import MemoryAreas, Target, suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.options_beside_program import refuse_options
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import board_fit, build_command, memory_fit, program_checks, program_firmware
from ethosu_sdk.firmware_build.board_fit import NamedBoard
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.program import feeds, output_comparison, pte, vela_output
from ethosu_sdk.records import answers, bundle, kinds, result_files, run_facts, validation
from ethosu_sdk.records.bundle import read_record
from ethosu_sdk.records.compile import Compilation
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
from ethosu_sdk.run.options import EXECUTORCH, HOST, LAST_STEP, RunOptions
from ethosu_sdk.run.reference import CompileRecord
from ethosu_sdk.run.run_record import RunVerdict
from ethosu_sdk.simulate.program_board import BoardAndSimulator
from ethosu_sdk.simulate.simulators import choose_events

OUTPUTS_NAME = "outputs.npz"
CALLS = "calls"
# Commands that show a run: what they left in its folder is not about another one.
READERS = ("profile", "advise", "report")
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
        with (
            filesystem.locked_folder(folder),
            bundle.writing_folder(folder, "run", outdated=READERS) as add,
        ):
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
    subject = subject_of(model, compile_options, folder)
    reporter.show(answers.run_answer(record, setting.compiled.readable, subject))
    if reporter.verbose:
        reporter.show("", run_record.run_summary(record, folder, build_command.data_lines(program)))
    reporter.emit(record.to_json())
    _raise_if_failed(record, folder)
    return RunResult(folder, record, path, tuple(row.path for row in program.data_files))


def subject_of(model: str, options: CompileOptions, folder: Path) -> answers.Subject:
    """What a command line names: `model`, compiled with `options`, with results in `folder`."""
    given = {"--target": options.target, "--system": options.system}
    words = [word for name, value in given.items() if value is not None for word in (name, value)]
    return answers.Subject(Path(model).name, [model, *words], folder)


def resolve_setting(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Setting:
    """What `options` ask for, whichever method runs; `model` is compiled where it must be. UsageError for what the
    machine or the NPU of the program does not have, before anything is compiled where that can be known, InputError
    for data files that do not fit."""
    options = runners.on_device(options)
    runners.check_runner_options(options)
    if options.save_state is not None:
        kept_state.check_place(options.save_state)
    path = program_file(model, compile_options, options, out_dir, reporter)
    program = pte.read(path, options.data)
    program.check_data()
    compiled = CompileRecord(path, program.sha256)
    if program.target() is None and compiled.content is not None:
        options = replace(options, core=compiled.content.core)
    before = earlier_run(result_files.place_for_pte(path, program.target(), out_dir), program)
    if options.device is None:
        options = as_rich_as(before, options)
    profile = _profile(path, program, compile_options, before, reporter)
    pricing_system.keep_board(program, compile_options.system)
    priced = options.priced or _priced(path, program, compile_options, profile)
    clock = time_line.cpu_clock(profile, options.cpu_clock_mhz)
    # A program without an NPU has no other figure; Arm's runner does not show where an inference begins.
    is_core = options.core is not None and options.runtime != EXECUTORCH
    if (clock.clock is not None or is_core) and options.script is None and options.device is None:
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
        memories=choose_memories(program.target(), priced, options.memory_timing, profile),
        cpu_clock=clock,
        named=board_fit.named_board(profile, None if priced is None else priced.system),
    )


def earlier_run(folder: Path, program: pte.Pte) -> Run | None:
    """The run of the same program that an earlier command left in `folder`; None without one, or a whole one."""
    try:
        record = read_record(folder / kinds.RUN.file)
    except SdkError:
        return None
    return record if isinstance(record, Run) and record.model.sha256 == program.sha256 else None


def as_rich_as(before: Run | None, options: RunOptions) -> RunOptions:
    """`options` with what makes a run know the processor's figures that the run `before` in its folder knew."""
    if before is None or options.script is not None:
        return options
    clock = None if before.time is None else before.time.clocks.cpu
    if options.cpu_clock_mhz is None and clock is not None and clock.source == time_line.GIVEN:
        options = replace(options, cpu_clock_mhz=clock.hz / 1e6)
    return replace(
        options,
        cpu_cycles=options.cpu_cycles or before.cpu.cycles is not None,
        count_instructions=options.count_instructions or before.cpu.instructions is not None,
    )


def _profile(
    path: Path, program: pte.Pte, options: CompileOptions, before: Run | None, reporter: Reporter
) -> BoardProfile | None:
    """The board that `options` name, else that of the program, else that of the run `before`."""
    if options.system is not None:
        return board_profiles.find_profile(options.system)
    if options.vela_config is not None:
        return None
    found = pricing_system.board_of_program(path, program)
    if found is None and before is not None:
        found = pricing_system.board_of_name(program, run_facts.board_of_run(before))
        if found is not None:
            reporter.note(f"the board is {escape(found.name)}, as in the run before")
    return found


def _priced(
    path: Path, program: pte.Pte, options: CompileOptions, profile: BoardProfile | None
) -> PricingSystem | None:
    if profile is not None:
        return pricing_system.pricing_on_board(path, program, profile)
    return pricing_system.pricing_of_program(path, program, options.vela_config)


def program_file(
    model: str, compile_options: CompileOptions, options: RunOptions, out_dir: Path | None, reporter: Reporter
) -> Path:
    """The program of `model`, which is compiled where it must be. UsageError, before that, for a board that does not
    exist or lacks the target's NPU, for data files of a model that is not compiled yet, and for options of `compile`
    beside a program that say another thing than it is."""
    model = result_files.program_of(model)
    if vela_output.is_output(Path(model)):
        from ethosu_sdk.compile import vela_program

        return vela_program.write_program(Path(model), compile_options, out_dir, reporter)
    if model.endswith(".pte"):
        path = result_files.require_pte(Path(model))
        refuse_options(path, compile_options, options.data)
        return path
    # Here and not above: a run of a program does without the compiler.
    from ethosu_sdk.compile import compile_command

    if options.data:
        raise UsageError("--data is for a program that is compiled already", "give the MODEL.pte")
    compile_options = _kept_board(model, compile_options, out_dir, reporter)
    if options.board is not None:
        target = compile_command.target_of(compile_options)
        npu = target.npu if isinstance(target, Target) and compile_options.delegate else None
        runners.choose_runner(options, npu)

    def refuse_misfit(path: Path) -> None:
        program = pte.read(path)
        target = program.target()
        areas = None if target is None else pricing_system.system_for_options(target, compile_options).areas
        named = board_fit.board_of_options(program, compile_options)
        _, choice = runners.choose_runner(options, program.npu())
        with memory_fit.advice_added(path, compiled_here=True):
            check_room(program, options, choice, named, areas)

    return compile_command.compile_model(
        model, compile_options, out_dir, reporter.for_step(), reuse=True, check_fit=refuse_misfit
    )


def _kept_board(
    model: str, options: CompileOptions, out_dir: Path | None, reporter: Reporter
) -> CompileOptions:
    """`options` for the board that `model` was compiled for before in its folder, unless they say what to compile
    for."""
    from ethosu_sdk.compile import compile_command

    names = ("system", "vela_config", "target", "system_config", "memory_mode")
    if any(getattr(options, name) is not None for name in names):
        return options
    path = compile_command.program_path(model, options, out_dir)
    try:
        record = read_record(result_files.compile_record_path(path))
    except SdkError:
        return options
    board = record.board_profile if isinstance(record, Compilation) and record.source == model else None
    if board is None or board.name not in board_profiles.profile_names():
        return options
    reporter.note(f"the board is {escape(board.name)}, for which {escape(path.name)} was compiled before")
    return replace(options, system=board.name)


def check_room(
    program: pte.Pte,
    options: RunOptions,
    choice: BoardAndSimulator,
    named: NamedBoard | None,
    areas: MemoryAreas | None,
) -> None:
    """MemoryFitError, before anything is built, for a program that does not fit the board. `areas` say where its
    memory mode has things, where its name does not."""
    if choice.board == HOST:
        return
    build = BuildOptions(
        board=choice.board,
        simulator=choice.simulator,
        fast_scratch_bytes=program_checks.fast_scratch_bytes(program.plans),
        allow_spill=options.allow_spill,
        areas=areas,
        methods=() if options.method is None else (options.method,),
        data_memory=options.data_memory,
        named=named,
    )
    if options.resident or options.runtime == EXECUTORCH:  # which lay out the program themselves
        program_firmware.check_named(program, build)
    else:
        program_firmware.check_fit(program, build)


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
    areas = None if setting.priced is None else setting.priced.areas
    input_values.check_program_memory(plan)
    program_checks.refuse_delegates(plan)
    program_checks.refuse_kernel_calls([plan])
    program_checks.refuse_lost_tables([plan])
    check_room(program, options, setting.choice, setting.named, areas)
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
