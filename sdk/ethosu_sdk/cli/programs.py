"""The commands that make a program and run it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Invocation, Model, OutDir, Pte, SourceModel, VelaConfig
from ethosu_sdk.compile.program_options import FOR_A_TARGET, AccuracyOptions, CompileOptions, Offer, Option
from ethosu_sdk.run.options import GenerateOptions, RunOptions


@app.command("zoo")
def zoo_command(invocation: Invocation) -> None:
    """List the models that can be given as zoo:NAME."""
    from ethosu_sdk.compile.zoo import show_zoo

    show_zoo(invocation.reporter())


@app.command("boards")
def boards_command(
    word: Annotated[
        str | None,
        Option(
            "Show this pack with the source of each value; or one of the words list, new and check.",
            metavar="NAME|FILE.toml|PACK/|list|new|check",
            completion="systems",
        ),
    ] = None,
    name: Annotated[
        str | None, Option("The pack of new or check.", metavar="NAME", completion="systems")
    ] = None,
    *,
    like: Annotated[
        str | None,
        Option("new: take over everything from this pack.", metavar="NAME", completion="systems"),
    ] = None,
    target: Annotated[
        str | None,
        Option("new: the NPU.", metavar="TARGET", completion="targets", shown_default="ethos-u55-128"),
    ] = None,
    vela_ini: Annotated[
        Path | None,
        Option(
            "new: import the system configurations of this Vela configuration file.",
            name="--vela-ini",
            metavar="FILE.ini",
        ),
    ] = None,
    invocation: Invocation,
) -> None:
    """List the boards that models can be compiled for with --system, write a pack for a board of your own (new NAME),
    or show what a pack lacks (check PACK)."""
    from ethosu_sdk.installation import boards_command, new_board

    reporter = invocation.reporter()
    if (word in ("new", "check")) != (name is not None):
        raise UsageError("boards new and boards check take the name of a pack, nothing else does")
    if word != "new" and (like, target, vela_ini) != (None, None, None):
        raise UsageError("--like, --target and --vela-ini belong to boards new", "leave them out")
    if word == "new" and name is not None:
        new_board.new_board(name, like, target, vela_ini, reporter)
    else:
        shown = name if word == "check" else word
        boards_command.boards(None if shown == "list" else shown, reporter, checked=word == "check")


@app.command("compile")
def compile_command(
    model: SourceModel,
    options: CompileOptions,
    accuracy: AccuracyOptions,
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compile a model ahead of time: MODEL → MODEL.pte. A model FILE.py is executed."""
    from ethosu_sdk.compile import compile_command
    from ethosu_sdk.compile.evaluation import read_floor, read_options
    from ethosu_sdk.firmware_build import program_firmware

    thresholds = accuracy.thresholds()
    floor = None
    if accuracy.evaluate is None:  # then it is the floor of the comparison that every compilation makes
        floor = read_floor(thresholds.pop("--min-sqnr"))
    options = replace(options, evaluate=read_options(accuracy.evaluate, thresholds), min_sqnr_db=floor)
    compile_command.compile_model(
        model,
        options,
        output,
        invocation.reporter(),
        check_fit=lambda path: program_firmware.check_compiled(path, options),
    )


@app.command("build")
def build_command(
    model: Pte,
    options: Annotated[RunOptions, Offer(only=("data", "board", "data_memory", "allow_spill"))],
    *,
    vela_config: VelaConfig = None,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Build the bare-metal firmware that runs MODEL.pte: executor_runner.elf."""
    from ethosu_sdk.firmware_build import build_command

    build_command.build(
        model,
        options.board,
        output,
        invocation.reporter(),
        allow_spill=options.allow_spill,
        data=options.data,
        data_memory=options.data_memory,
        vela_config=vela_config,
    )


@app.command("run")
def run_command(
    model: Model,
    options: RunOptions,
    compile_options: Annotated[CompileOptions, Offer(without=("inputs", "etrecord"), before="board")],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Run MODEL on a simulated board. A missing or stale program or firmware is made first.

    Options of `compile`, such as --target, are for a MODEL that is compiled here; a MODEL.pte keeps the target
    that it was compiled for. A model FILE.py is executed.
    """
    if options.script is not None:
        from ethosu_sdk.run import script_command

        script_command.run_script(model, compile_options, options, output, invocation.reporter())
        return
    from ethosu_sdk.run import run_command

    run_command.run(model, compile_options, options, output, invocation.reporter())


@app.command("generate")
def generate_command(
    model: Model,
    options: GenerateOptions,
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                *("simulator", "timeout_s", "memory_timing", "board", "allow_spill"),
                *("cpu_cycles", "cpu_clock_mhz"),
            )
        ),
    ],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET, before="simulator")],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Continue a prompt, token by token, on a simulated board.

    MODEL is a decoder: one token and its position in, the logits of the next token out, caches inside. Tokens are
    shown as the board makes them. Time is modelled, for prefill and decode apart. A model FILE.py is executed.
    """
    from ethosu_sdk.run import generate_command

    generate_command.generate(model, compile_options, run_options, options, output, invocation.reporter())
