"""The commands that look into a program or a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.analysis.options import CheckOptions, DebugOptions, ProfileOptions
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Data, Invocation, Model, OutDir, Pte, VelaConfig
from ethosu_sdk.compile.program_options import FOR_A_TARGET, CompileOptions, Offer, Option
from ethosu_sdk.run.options import RunOptions


@app.command("inspect")
def inspect_command(
    model: Pte,
    *,
    commands: Annotated[bool, Option("Disassemble the NPU command streams.")] = False,
    hazards: Annotated[
        bool, Option("List hazards: commands in the NPU command streams that hardware may start too early.")
    ] = False,
    data: Data = None,
    system: Annotated[
        str | None,
        Option(
            "Say what would fail on this board, and what it would show instead.",
            metavar="NAME|FILE.toml",
            completion="systems",
        ),
    ] = None,
    memory_mode: Annotated[
        str | None,
        Option(
            "Where things lie on that board.",
            name="--memory-mode",
            metavar="NAME",
            shown_default="as in the program, or the board's first",
            completion="memory_modes",
        ),
    ] = None,
    invocation: Invocation,
) -> None:
    """Show the contents of a MODEL.pte: operators, tensors, memory plan, delegates.

    A bare command stream FILE.cop1 is shown as a program without weights.
    """
    from ethosu_sdk.analysis import inspect_command
    from ethosu_sdk.base import terminal

    options = inspect_command.InspectOptions(
        commands=commands, hazards=hazards, data=tuple(data or ()), system=system, memory_mode=memory_mode
    )
    inspect_command.inspect(
        model, as_json=invocation.json, options=options, console=terminal.make_console(quiet=invocation.quiet)
    )


@app.command("check")
def check_command(
    model: Annotated[
        Path,
        Option("A program, or what Vela wrote.", metavar="MODEL.pte|MODEL_vela.tflite|STREAM.cop1"),
    ],
    *,
    board: Annotated[
        str,
        Option(
            "The board, as `ethosu-sdk boards` lists them, or a pack of your own.",
            metavar="NAME|PACK/",
            completion="systems",
        ),
    ],
    options: CheckOptions,
    sarif: Annotated[
        Path | None, Option("Write what fails as SARIF 2.1.0 to this file.", metavar="FILE.sarif")
    ] = None,
    data: Data = None,
    invocation: Invocation,
) -> None:
    """Say what of a program would fail on a board, what the board would show, and what to change.

    The exit code is 7 if something would fail.
    """
    from ethosu_sdk.analysis import check_command
    from ethosu_sdk.base import filesystem
    from ethosu_sdk.reporting.convert.sarif import sarif_of_check

    record = check_command.check_program(model, board, options, data or ())
    if sarif is not None:
        filesystem.write_bytes(sarif, sarif_of_check(record, model))
    check_command.show(record, invocation.reporter())


@app.command("profile")
def profile_command(
    subject: Annotated[
        str,
        Option(
            "A model as `run` takes it, or the folder of a run that contains its program.",
            metavar="MODEL|RUN_DIR",
            completion="models",
        ),
    ],
    options: ProfileOptions,
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                *("inputs", "data", "steps", "feed", "method", "timeout_s"),
                *("memory_timing", "cpu_clock_mhz", "board", "allow_spill"),
            )
        ),
    ],
    compile_options: Annotated[
        CompileOptions, Offer(only=(*FOR_A_TARGET, "vela_config"), before="memory_timing")
    ],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Show where an inference's cycles and bytes go, operation by operation.

    A MODEL is run first, and the instructions of the CPU are counted. Cycles are modelled: those of the NPU are shown
    beside Vela's estimate of each operation. For other options of `compile`, compile first and give the MODEL.pte.
    A model FILE.py is executed.
    """
    from ethosu_sdk.analysis import profile_command

    profile_command.profile(subject, compile_options, run_options, options, output, invocation.reporter())


@app.command("report")
def report_command(
    runs: Annotated[
        list[Path],
        Option(
            "Folders of runs, made by `run` or `profile`. Several runs are shown side by side.",
            metavar="RUN_DIR…",
        ),
    ],
    *,
    advice: Annotated[
        list[Path] | None,
        Option(
            "Show this record of `advise` with the run of its program; can be given several times.",
            name="--advice",
            metavar="FILE.json",
            shown_default="advice.json in the run's folder",
        ),
    ] = None,
    vela_config: VelaConfig = None,
    output: Annotated[
        Path | None,
        Option(
            "Write the page to this file.",
            short="-o",
            metavar="FILE.html",
            shown_default="report.html in the run's folder; in build for several runs",
        ),
    ] = None,
    invocation: Annotated[Invocation, Offer(only=("quiet", "debug"))],
) -> None:
    """Write the records of one or several runs as one HTML page, which needs no network.

    The page shows the verdict, memory, cycles and traffic of every operation, what limits each of them, advice and
    what `advise --try` got, the arena, accuracy by layer and the source of every figure, as far as the folder has
    records of them. The command needs the extra `report` of ethosu-sdk.
    """
    from ethosu_sdk.analysis import program_facts
    from ethosu_sdk.records import result_files
    from ethosu_sdk.reporting.pages import report_command

    reporter = invocation.reporter()
    report_command.check_output(output)
    runs = [Path(result_files.folder_of(str(run))) for run in runs]
    with reporter.stage("reading the programs"):
        facts = [program_facts.facts_of_run(run, vela_config) for run in runs]
    report_command.report(runs, facts, advice or (), output, reporter)


@app.command("debug")
def debug_command(
    model: Model,
    options: DebugOptions,
    compile_options: Annotated[
        CompileOptions,
        Offer(without=("inputs", "io", "delegate", "require_full_delegation", "etrecord", "check")),
    ],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compare every layer inside the NPU's delegates with the model in PyTorch, quantised and in floating point.

    The model is compiled, and its program runs once on the host simulator. For a MODEL.pte, whose PyTorch model is
    not known, only values and ranges are shown. A model FILE.py is executed.
    """
    from ethosu_sdk.analysis import debug_command

    debug_command.debug(model, compile_options, options, output, invocation.reporter())
