"""The command line of `inspect`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Data, Pte
from ethosu_sdk.program_options import Option


@app.command("inspect")
def inspect_command(
    model: Pte,
    *,
    commands: Annotated[bool, Option("Disassemble the NPU command streams.")] = False,
    hazards: Annotated[
        bool, Option("List hazards: commands in the NPU command streams that hardware may start too early.")
    ] = False,
    data: Data = None,
    invocation: Invocation,
) -> None:
    """Show the contents of a MODEL.pte: operators, tensors, memory plan, delegates."""
    from ethosu_sdk.console import terminal
    from ethosu_sdk.steps.inspect import inspect_command

    options = inspect_command.InspectOptions(commands=commands, hazards=hazards, data=tuple(data or ()))
    inspect_command.inspect(
        model, as_json=invocation.json, options=options, console=terminal.make(quiet=invocation.quiet)
    )
