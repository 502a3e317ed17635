"""The command line of `zoo`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation


@app.command("zoo")
def zoo_command(invocation: Invocation) -> None:
    """List the models that can be given as zoo:NAME."""
    from ethosu_sdk.steps import zoo_command

    zoo_command.zoo(invocation.reporter())
