"""The command line of `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Json, Quiet


@app.command("verify")
def verify_command(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json", show_default=False, help="A build.json or run.json.")
    ],
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL.pte", help="The record's model.", show_default="beside the record"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Build the firmware of a record again, from nothing, and compare digests and versions."""
    from ethosu_sdk.commands import verify as command
    from ethosu_sdk.commands.shared.reporter import Reporter

    command.verify(record, model, Reporter(as_json=json, quiet=quiet))
