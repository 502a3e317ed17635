"""The command line of `doctor`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Json, Quiet


@app.command("doctor")
def doctor_command(json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """List every tool that the SDK uses: found, missing or too old, and the fix."""
    from ethosu_sdk.commands import doctor as command
    from ethosu_sdk.commands.reporter import Reporter

    command.doctor(Reporter(as_json=json, quiet=quiet))
