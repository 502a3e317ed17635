"""`fvp` as a group of commands."""

from __future__ import annotations

from ethosu_sdk.cli.app import Application, app

fvp_app = Application(help="Install Arm's FVPs, or launchers that replace them.", no_args_is_help=True)
app.add_typer(fvp_app, name="fvp")
