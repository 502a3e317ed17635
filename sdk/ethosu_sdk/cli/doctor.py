"""The command line of `doctor`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation


@app.command("doctor")
def doctor_command(invocation: Invocation) -> None:
    """Try every tool that the SDK uses; show which are missing, too old or broken, and how to fix that."""
    from ethosu_sdk.installation.doctor import doctor_command

    doctor_command.doctor(invocation.reporter())
