"""The command line of `zoo`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Json, Quiet


@app.command("zoo")
def zoo_command(json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """List the models that can be given as zoo:NAME."""
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps import zoo_command

    zoo_command.zoo(Reporter(as_json=json, quiet=quiet))
