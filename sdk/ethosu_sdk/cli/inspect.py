"""The command line of `inspect`."""

from __future__ import annotations

from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Json, Pte, Quiet


@app.command("inspect")
def inspect_command(
    model: Pte,
    commands: Annotated[
        bool, typer.Option("--commands", help="Disassemble the NPU command streams.")
    ] = False,
    hazards: Annotated[
        bool, typer.Option("--hazards", help="List what the NPU command streams do too early for hardware.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what a MODEL.pte holds: operators, tensors, memory plan, delegates."""
    from ethosu_sdk.console import terminal
    from ethosu_sdk.steps.inspect import inspect_command

    options = inspect_command.InspectOptions(commands=commands, hazards=hazards)
    inspect_command.inspect(model, as_json=json, options=options, console=terminal.make(quiet=quiet))
