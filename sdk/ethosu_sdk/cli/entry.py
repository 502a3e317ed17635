"""The entry point: runs a command, prints its error and ends the process with the error's exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
import types

import typer
from typer.core import TyperGroup

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.errors import (
    INTERRUPTED_EXIT_CODE,
    BuildError,
    SdkError,
    SimulationError,
    ToolError,
    UsageError,
)

# Errors whose message quotes a linker, a firmware or a simulator.
_TOLD_BY_OTHERS = (ToolError.exit_code, BuildError.exit_code, SimulationError.exit_code)


def _hint(error: SdkError) -> str:
    """What helps against `error`, and the command lines that do."""
    lines = [_advice(error), *(f"try: {_same_command(option)}" for option in error.remedies)]
    return "\n".join(filter(None, lines))


def _same_command(option: tuple[str, ...]) -> str:
    """The command line at hand with `option` (a name, and a value if it takes one) in place of its own, if any."""
    name, *value = option
    words: list[str] = []
    skipping = False
    for word in sys.argv[1:]:
        if not skipping and word != name and not word.startswith(f"{name}="):
            words.append(word)
        skipping = not skipping and word == name and bool(value)
    return shlex.join([completion.PROGRAM, *words, *option])


def _advice(error: SdkError) -> str:
    """The error's own hint, and what the catalogue knows about the tool's or firmware's message in it."""
    if error.exit_code not in _TOLD_BY_OTHERS:
        return error.hint
    from ethosu_sdk import error_catalogue

    known = [row.advice for row in error_catalogue.in_text(error.message.splitlines()) if not row.harmless]
    new = [advice for advice in known[:1] if advice not in error.hint]
    return "\nhint: ".join(filter(None, (error.hint, *new)))


def _report(error: SdkError) -> int:
    """Print `error` for people, and as a record when --json was given; its exit code."""
    hint = _hint(error)
    sys.stderr.write(f"error: {error.message}\n")
    if hint:
        sys.stderr.write(f"hint: {hint}\n")
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
                    "error": {**detail, **({"hint": hint} if hint else {})},
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
    assert isinstance(command, TyperGroup)
    try:
        if completion.is_wanted():
            completion.answer(command)
        outcome = command.main(prog_name=completion.PROGRAM, standalone_mode=False)
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
