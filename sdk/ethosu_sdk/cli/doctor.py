"""The command line of `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


@app.command("doctor")
def doctor_command(
    *,
    bundle: Annotated[
        Path | None,
        Option(
            "Write a support archive with the report and versions, without names, paths or secrets.",
            metavar="FILE.tar.gz",
        ),
    ] = None,
    invocation: Invocation,
) -> None:
    """Try every tool that the SDK uses; show which are missing, too old or broken, and how to fix that."""
    from ethosu_sdk.installation.doctor import doctor_command

    doctor_command.doctor(invocation.reporter(), bundle)
