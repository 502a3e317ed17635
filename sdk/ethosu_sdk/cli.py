"""The command line. The only module that prints errors or ends the process."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk import __version__
from ethosu_sdk.errors import INTERRUPTED_EXIT_CODE, SdkError, UsageError

app = typer.Typer(
    name="ethosu-sdk",
    help="Compile, build, run and verify ExecuTorch models for Arm Ethos-U on simulated Corstone boards.\n\n"
    "Start with: ethosu-sdk run zoo:digits_cnn --target ethos-u55-128",
    no_args_is_help=True,
    add_completion=False,
    suggest_commands=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[
    bool, typer.Option("--json", help="Print only the JSON record on stdout; all else on stderr.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print warnings and errors only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
OutDir = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="Where the results go.", show_default=False),
]
Pte = Annotated[Path, typer.Argument(metavar="MODEL.pte", show_default=False, help="An ExecuTorch program.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", show_default=False, help="MODEL.pte, FILE.py[:NAME], FILE.pt2 or zoo:NAME."
    ),
]
TargetName = Annotated[str, typer.Option("--target", metavar="NAME", help="The NPU and its MAC count.")]
SystemConfig = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vela system configuration.", show_default="the family's")
]
MemoryMode = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vela memory mode.", show_default="the family's")
]
Quantize = Annotated[
    str | None,
    typer.Option(metavar="int8|int16|none", help="Post-training quantisation.", show_default="int8"),
]
Calibration = Annotated[
    list[Path] | None,
    typer.Option(metavar="F.npz", help="Samples to calibrate with.", show_default="example inputs"),
]
Inputs = Annotated[
    Path | None, typer.Option(metavar="F.npz", help="input0 … in model order.", show_default=False)
]
Io = Annotated[
    str, typer.Option("--io", metavar="float|int8", help="Type of the model's inputs and outputs.")
]
QuantizePer = Annotated[
    str, typer.Option(metavar="channel|tensor", help="Weights get a scale for each output channel, or one.")
]
VelaConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE.ini", help="Vela configuration file.", show_default="Vela's own"),
]
ExtraVelaFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FLAG", help="A flag to add to Vela's, such as --optimise=Size.", show_default=False
    ),
]
RequireFullDelegation = Annotated[
    bool,
    typer.Option("--require-full-delegation", help="Exit code 7 when an operator stays on the CPU."),
]
NoDelegate = Annotated[bool, typer.Option("--no-delegate", help="Keep every operator on the CPU.")]
Board = Annotated[
    str | None, typer.Option(metavar="corstone-300", help="The board.", show_default="the target's")
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ethosu-sdk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Common to all commands."""


@app.command("compile")
def compile_command(
    model: Model,
    target: TargetName = "ethos-u55-128",
    system_config: SystemConfig = None,
    memory_mode: MemoryMode = None,
    quantize: Quantize = None,
    quantize_per: QuantizePer = "channel",
    calibration: Calibration = None,
    inputs: Inputs = None,
    io: Io = "float",
    no_delegate: NoDelegate = False,
    vela_config: VelaConfig = None,
    extra_vela_flag: ExtraVelaFlag = None,
    require_full_delegation: RequireFullDelegation = False,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile a PyTorch model ahead of time: MODEL → MODEL.pte."""
    from ethosu_sdk.commands import compile as command
    from ethosu_sdk.commands.reporter import Reporter

    options = command.CompileOptions(
        target=target,
        system_config=system_config,
        memory_mode=memory_mode,
        quantize=quantize,
        io=io,
        delegate=not no_delegate,
        calibration=tuple(calibration or ()),
        inputs=inputs,
        quantize_per=quantize_per,
        vela_config=vela_config,
        vela_flags=tuple(extra_vela_flag or ()),
        require_full_delegation=require_full_delegation,
    )
    command.compile_model(model, options, output, Reporter(as_json=json, quiet=quiet))


@app.command("build")
def build_command(
    model: Pte,
    board: Board = None,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Build the bare-metal firmware that runs MODEL.pte: executor_runner.elf."""
    from ethosu_sdk.commands import build as command
    from ethosu_sdk.commands.reporter import Reporter

    command.build(model, board, output, Reporter(as_json=json, quiet=quiet))


@app.command("run")
def run_command(
    model: Model,
    inputs: Inputs = None,
    expect: Annotated[
        Path | None, typer.Option(metavar="F.npz", help="output0 … that must come back.", show_default=False)
    ] = None,
    atol: Annotated[float, typer.Option(min=0.0, help="Allowed absolute difference.")] = 0.0,
    rtol: Annotated[float, typer.Option(min=0.0, help="Allowed relative difference.")] = 0.0,
    simulator: Annotated[
        str,
        typer.Option(
            metavar="auto|qemu|host", help="A board on QEMU with the firmware, or ExecuTorch's runtime here."
        ),
    ] = "auto",
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.1, help="Wall-clock limit in seconds.")
    ] = 300.0,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="PMU events to count: 4 at most, 8 on Ethos-U85.",
            show_default="ExecuTorch's",
        ),
    ] = None,
    target: TargetName = "ethos-u55-128",
    system_config: SystemConfig = None,
    memory_mode: MemoryMode = None,
    quantize: Quantize = None,
    quantize_per: QuantizePer = "channel",
    calibration: Calibration = None,
    io: Io = "float",
    no_delegate: NoDelegate = False,
    vela_config: VelaConfig = None,
    extra_vela_flag: ExtraVelaFlag = None,
    require_full_delegation: RequireFullDelegation = False,
    board: Board = None,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run MODEL on a simulated board, compiling and building first what is missing or stale.

    The options from --target to --no-delegate are those of `compile`; a ready MODEL.pte has its own target.
    """
    from ethosu_sdk.commands import run as command
    from ethosu_sdk.commands.compile import CompileOptions
    from ethosu_sdk.commands.reporter import Reporter

    compile_options = CompileOptions(
        target=target,
        system_config=system_config,
        memory_mode=memory_mode,
        quantize=quantize,
        io=io,
        delegate=not no_delegate,
        calibration=tuple(calibration or ()),
        inputs=None,
        quantize_per=quantize_per,
        vela_config=vela_config,
        vela_flags=tuple(extra_vela_flag or ()),
        require_full_delegation=require_full_delegation,
    )
    options = command.RunOptions(inputs, expect, atol, rtol, simulator, timeout, events, board)
    command.run(model, compile_options, options, output, Reporter(as_json=json, quiet=quiet))


@app.command("inspect")
def inspect_command(
    model: Pte,
    commands: Annotated[
        bool, typer.Option("--commands", help="Disassemble the NPU command streams.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what a MODEL.pte holds: operators, tensors, memory plan, delegates."""
    from rich.console import Console

    from ethosu_sdk.commands import inspect as command

    command.inspect(model, as_json=json, commands=commands, console=Console(highlight=False, quiet=quiet))


@app.command("doctor")
def doctor_command(json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """List every tool that the SDK uses: found, missing or too old, and the fix."""
    from ethosu_sdk.commands import doctor as command
    from ethosu_sdk.commands.reporter import Reporter

    command.doctor(Reporter(as_json=json, quiet=quiet))


@app.command("validate")
def validate_command(
    record: Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False)],
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check a record against its schema and the rules that a schema cannot state."""
    from ethosu_sdk.commands import validate as command
    from ethosu_sdk.commands.reporter import Reporter

    command.validate(record, Reporter(as_json=json, quiet=quiet))


def _report(error: SdkError) -> int:
    """Print `error` for people, and as a record when --json was given; its exit code."""
    sys.stderr.write(f"error: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
    if "--json" in sys.argv[1:] and not error.recorded:
        from ethosu_sdk import provenance, records

        detail = {"class": type(error).__name__, "exit_code": error.exit_code, "message": error.message}
        sys.stdout.write(
            records.dumps(
                {
                    "schema": "error/1",
                    "status": "error",
                    "created": records.timestamp(),
                    "tool": provenance.tool(),
                    "error": {**detail, **({"hint": error.hint} if error.hint else {})},
                }
            )
        )
    return error.exit_code


def _terminated(_number: int, _frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt  # the same way out as Ctrl-C: `finally` blocks run, children die


def _run_app() -> int:
    # Typer carries its own copy of click's exceptions in some releases: the names are taken from there.
    from typer import main as typer_main

    command = typer_main.get_command(app)
    try:
        outcome = command.main(prog_name="ethosu-sdk", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except SdkError as error:
        if "--debug" in sys.argv[1:]:
            traceback.print_exc()
        return _report(error)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # The reader of our output has gone (`… | head`): nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _usage_or_internal(error)


def _usage_or_internal(error: Exception) -> int:
    show = getattr(error, "show", None)
    if callable(show):  # a click usage error: unknown option, missing argument
        show(file=sys.stderr)
        return UsageError.exit_code
    if "--debug" in sys.argv[1:]:
        traceback.print_exc()
    sys.stderr.write(f"error: internal error: {type(error).__name__}: {error}\n")
    sys.stderr.write("hint: run again with --debug and report the traceback\n")
    return SdkError.exit_code


def main() -> None:
    """Entry point of the `ethosu-sdk` command."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(_run_app())


if __name__ == "__main__":
    main()
