"""The command line of `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose


@app.command("verify")
def verify_command(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json", show_default=False, help="A build.json or run.json.")
    ],
    *,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL.pte", help="The record's model.", show_default="beside the record"),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="F.npz",
            help="The inputs of the run.",
            show_default="as `run` finds them without --inputs",
        ),
    ] = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Build the firmware of a record again, from nothing, run it again, and compare digests, outputs, figures and
    versions."""
    from ethosu_sdk.results.reading import Reading
    from ethosu_sdk.steps.verify import verify_command

    verify_command.verify(record, model, inputs, Reading(loose), invocation.reporter())
