"""The SDK from Python: what the commands do, as functions that return what they write.

    import ethosu_sdk

    done = ethosu_sdk.run(model, x, target="ethos-u55-256", system="alif-e8-hp")
    done.time_ms, done.npu_cycles, done.outputs["output0"]

A model is an ``nn.Module`` or an exported program, with its example inputs behind it; or what the commands take:
``zoo:NAME``, the path of a FILE.py, FILE.pt2, FILE.tflite or MODEL.pte; or what :func:`compile` returned. Inputs are
a tensor or an array, a tuple of them, or a dictionary by name. Keywords are the options of the command, with ``_``
for ``-``. An option that takes an `.npz` takes arrays, too. An option that does not exist raises at once.

Results lie where the commands put them: below ``build/`` in the working folder, or in `out`. Each has its `record`,
and ``to_dataframe()`` where pandas is installed. A notebook shows them as tables, and a line of progress. Every
function raises a subclass of :class:`ethosu_sdk.base.errors.SdkError`, whose `exit_code` is that of the command:
VerdictError (7) when something was made and is not as it should be. Nothing is printed on standard output. A model in
a Python file is executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from ethosu_sdk.analysis import change_trials, debug_command, inspect_command, profile_command, program_facts
from ethosu_sdk.analysis.options import DebugOptions, ProfileOptions
from ethosu_sdk.api import given
from ethosu_sdk.api.given import takes_options
from ethosu_sdk.api.results import (
    Advice,
    Comparison,
    Compiled,
    Debugged,
    Firmware,
    Generated,
    Inspection,
    Page,
    Profile,
    Run,
    Swept,
)
from ethosu_sdk.base.terminal import reporting
from ethosu_sdk.compile import compile_command
from ethosu_sdk.compile.evaluation import read_floor, read_options
from ethosu_sdk.compile.program_options import FOR_A_TARGET, AccuracyOptions, CompileOptions, Offer
from ethosu_sdk.firmware_build import build_command
from ethosu_sdk.program import pte as programs
from ethosu_sdk.records import kinds, result_files
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.reporting.advise import advise_command
from ethosu_sdk.reporting.compare import compare_command
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.reporting.pages import report_command
from ethosu_sdk.run import generate_command, run_command
from ethosu_sdk.run.options import GenerateOptions, RunOptions
from ethosu_sdk.sweep import sweep_command
from ethosu_sdk.sweep.options import SweepOptions

__all__ = [
    "Advice",
    "Comparison",
    "Compiled",
    "Debugged",
    "Firmware",
    "Generated",
    "Inspection",
    "Page",
    "Profile",
    "Run",
    "Swept",
    "advise",
    "build",
    "compare",
    "compile",
    "debug",
    "generate",
    "inspect",
    "profile",
    "report",
    "run",
    "sweep",
]

PathLike = str | os.PathLike[str]
_OF_A_PROFILE = (*FOR_A_TARGET, "vela_config")


@takes_options
def compile(
    model: Any,
    inputs: Any = None,
    *,
    options: Annotated[CompileOptions, Offer(without=("inputs",))],
    accuracy: AccuracyOptions,
    out: PathLike | None = None,
) -> Compiled:
    """Compile `model` ahead of time with `inputs` as its example inputs, as ``ethosu-sdk compile``.

    Raises InputError for a model that cannot be compiled, UsageError for options that cannot be combined, ToolError
    without the compiler's packages, and VerdictError when the program does not compute what the model does."""
    thresholds = accuracy.thresholds()
    floor = None
    if accuracy.evaluate is None:  # then it is the floor of the comparison that every compilation makes
        floor = read_floor(thresholds.pop("--min-sqnr"))
    evaluation = read_options(accuracy.evaluate, thresholds)
    options = replace(options, evaluate=evaluation, min_sqnr_db=floor)
    with reporting() as reporter:
        argument, file = _model(model, inputs, options)
        path = compile_command.compile_model(argument, replace(options, inputs=file), _folder(out), reporter)
    return Compiled(read_raw_record(result_files.compile_record_path(path)), path)


@takes_options
def build(
    program: PathLike,
    *,
    options: Annotated[RunOptions, Offer(only=("data", "board", "data_memory", "allow_spill"))],
    compile_options: Annotated[CompileOptions, Offer(only=("vela_config",))],
    out: PathLike | None = None,
) -> Firmware:
    """Build the firmware that embeds `program`, a `.pte` or what :func:`compile` returned, as ``ethosu-sdk build``.

    Raises InputError for a damaged file, BuildError for one that does not fit or calls an operator without a kernel,
    and ToolError without the toolchain."""
    with reporting() as reporter:
        built = build_command.build(
            Path(program),
            options.board,
            _folder(out),
            reporter,
            allow_spill=options.allow_spill,
            vela_config=compile_options.vela_config,
            data=options.data,
            data_memory=options.data_memory,
        )
    return Firmware(built.record, built.firmware.elf)


@takes_options
def run(
    model: Any,
    inputs: Any = None,
    *,
    options: Annotated[RunOptions, Offer(without=("inputs", "script"))],
    compile_options: Annotated[CompileOptions, Offer(without=("inputs", "etrecord"))],
    out: PathLike | None = None,
) -> Run:
    """Run `model` on `inputs`, compiling and building first what is missing or stale, as ``ethosu-sdk run``.

    Raises SimulationError for a firmware that does not come to its end, VerdictError for outputs that are not as
    expected, and what :func:`compile` and :func:`build` raise."""
    with reporting() as reporter:
        argument, file = _model(model, inputs, compile_options)
        options = replace(options, inputs=file)
        done = run_command.run(argument, compile_options, options, _folder(out), reporter)
    return Run(done.record.to_json(), done.folder)


@takes_options
def generate(
    model: Any,
    tokens: Sequence[int] | None = None,
    *,
    options: Annotated[GenerateOptions, Offer(without=("tokens",))],
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                *("simulator", "timeout_s", "memory_timing", "board", "allow_spill"),
                *("cpu_cycles", "cpu_clock_mhz"),
            )
        ),
    ],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET)],
    out: PathLike | None = None,
) -> Generated:
    """Continue `tokens`, or the text `prompt`, on a simulated board, as ``ethosu-sdk generate``.

    Raises UsageError for prompts that do not fit, InputError for programs that are no decoders."""
    if tokens is not None:
        options = replace(options, tokens=",".join(map(str, tokens)))
    with reporting() as reporter:
        argument, _ = _model(model, None, compile_options)
        record = generate_command.generate(
            argument, compile_options, run_options, options, _folder(out), reporter
        )
    return Generated(record.to_json())


@takes_options
def profile(
    model: Any,
    inputs: Any = None,
    *,
    options: ProfileOptions,
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                *("data", "steps", "feed", "method", "timeout_s"),
                *("memory_timing", "cpu_clock_mhz", "board", "allow_spill"),
            )
        ),
    ],
    compile_options: Annotated[CompileOptions, Offer(only=_OF_A_PROFILE)],
    out: PathLike | None = None,
) -> Profile:
    """Where the cycles and bytes of `model` go, or of what :func:`run` returned, as ``ethosu-sdk profile``.

    Raises InputError for a folder without a run, and what :func:`run` raises."""
    with reporting() as reporter:
        argument, file = _model(model, inputs, compile_options)
        run_options = replace(run_options, inputs=file)
        done = profile_command.profile(
            argument, compile_options, run_options, options, _folder(out), reporter
        )
    return Profile(done.content.to_json(), done.folder)


@takes_options
def advise(
    model: Any,
    inputs: Any = None,
    *,
    try_changes: bool | Iterable[str] = False,
    run_options: Annotated[RunOptions, Offer(only=("timeout_s", "board", "allow_spill"))],
    compile_options: Annotated[CompileOptions, Offer(only=_OF_A_PROFILE)],
    out: PathLike | None = None,
) -> Advice:
    """What to change about `model`, or about what :func:`run` returned, as ``ethosu-sdk advise``. `try_changes`
    compiles and runs the program with each change: True for all, or their kinds.

    Raises what :func:`profile` raises, and InputError for a model that cannot be compiled again."""
    names = None if isinstance(try_changes, bool) else ",".join(try_changes)
    wanted = advise_command.kinds_of_changes(names)
    with reporting() as reporter:
        argument, file = _model(model, inputs, compile_options)
        run_options = replace(run_options, inputs=file)
        done = change_trials.profiled_program(
            argument, compile_options, run_options, _folder(out), reporter, too_large=bool(try_changes)
        )
        facts = program_facts.facts_of_program(
            programs.read(done.pte), done.content, compile_options.vela_config
        )
        found = advise_command.AdviceInputs(done.folder, done.run_folder, done.pte, done.content, facts)
        tries = None
        if try_changes:
            about = change_trials.subject_of(done, argument, compile_options, run_options)
            candidates = advise_command.wanted_candidates(found, wanted)
            tries = change_trials.tried_changes(about, candidates, done.folder, reporter)
        record = advise_command.advise(found, reporter, tries)
    return Advice(record.to_json(), done.folder)


@takes_options
def report(
    *runs: PathLike,
    options: Annotated[CompileOptions, Offer(only=("vela_config",))],
    advice: Sequence[PathLike] = (),
    output: PathLike | None = None,
) -> Page:
    """One HTML page about `runs`, what :func:`run` or :func:`profile` returned or their folders, as ``ethosu-sdk
    report``; a notebook shows it.

    Raises InputError for what is no run, ToolError without the packages that draw."""
    folders, path = [Path(row) for row in runs], _folder(output)
    report_command.check_output(path)
    with reporting() as reporter:
        with reporter.stage("reading the programs"):
            facts = [program_facts.facts_of_run(folder, options.vela_config) for folder in folders]
        return Page(report_command.report(folders, facts, [Path(row) for row in advice], path, reporter))


@takes_options
def compare(
    *runs: PathLike, options: Annotated[CompareOptions, Offer(only=("policy", "allow", "loose"))]
) -> Comparison:
    """Each of `runs` but the first with the first, as ``ethosu-sdk compare``: what :func:`run` returned, folders of
    runs, or records.

    A regression is for the caller to judge: nothing is raised for it, or for runs that cannot be compared. Nothing is
    written. Raises InputError for what is no run or record, and for a damaged policy."""
    paths = [Path(run) for run in runs]
    missing = program_facts.missing_profiles(paths)
    return Comparison(compare_command.compare_paths(paths, missing, options).to_json())


@takes_options
def debug(
    model: Any,
    inputs: Any = None,
    *,
    options: Annotated[DebugOptions, Offer(without=("inputs",))],
    compile_options: Annotated[
        CompileOptions,
        Offer(without=("inputs", "io", "delegate", "require_full_delegation", "etrecord", "check")),
    ],
    out: PathLike | None = None,
) -> Debugged:
    """The tensors inside of the delegates of `model`, compared with the model in PyTorch, as ``ethosu-sdk debug``.

    Raises SimulationError for a program that does not run, and what :func:`compile` raises."""
    with reporting() as reporter:
        argument, file = _model(model, inputs, compile_options)
        options = replace(options, inputs=file)
        return Debugged(debug_command.debug(argument, compile_options, options, _folder(out), reporter))


@takes_options
def inspect(
    program: PathLike, *, commands: bool = False, hazards: bool = False, data: Sequence[PathLike] = ()
) -> Inspection:
    """What `program` and its `data` files hold, as ``ethosu-sdk inspect``; with `commands`, its NPU command streams
    too, with `hazards`, what those do too early for hardware. Raises InputError for a damaged file."""
    files = tuple(Path(row) for row in data)
    options = inspect_command.InspectOptions(commands=commands, hazards=hazards, data=files)
    return Inspection(inspect_command.inspect_file(Path(program), options).to_json())


@takes_options
def sweep(
    description: Any,
    inputs: Any = None,
    *,
    options: Annotated[SweepOptions, Offer(without=("dry_run",))],
    out: PathLike | None = None,
) -> Swept:
    """Compile and run models with many settings, as ``ethosu-sdk sweep``. `description` is a SWEEP.toml, or a
    dictionary of the same members: ``{"models": [model], "targets": ["ethos-u55-*"]}``, whose models may be modules
    that take `inputs`.

    Raises InputError for a description that is wrong, ToolError when a package is missing, VerdictError when cells
    failed: then everything was written."""
    with reporting() as reporter:
        path = given.sweep_file(description, inputs)
        folder = sweep_command.sweep(path, options, _folder(out), reporter)
    return Swept(read_raw_record(folder / kinds.SWEEP.file), folder)


def _model(model: Any, inputs: Any, options: CompileOptions) -> tuple[str, Path | None]:
    """`model` as the commands take it, and the file of its `inputs`; None where the model has them."""
    if given.is_model_object(model):
        compile_command.target_of(options)  # it is refused before the model is exported
        return str(given.saved_model(model, inputs)), None
    return os.fspath(model), None if inputs is None else given.inputs_file(inputs)


def _folder(path: PathLike | None) -> Path | None:
    return None if path is None else Path(path)
