"""The command line of `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation


@app.command("doctor")
def doctor_command(
    *,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tar.gz",
            help="Write a support archive: the report and versions, without names, paths or secrets.",
            show_default=False,
        ),
    ] = None,
    invocation: Invocation,
) -> None:
    """Try every tool that the SDK uses: found, missing, too old or broken, and the fix."""
    from ethosu_sdk.installation.doctor import doctor_command

    doctor_command.doctor(invocation.reporter(), bundle)
