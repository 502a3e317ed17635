"""The Typer application that every command joins."""

from __future__ import annotations

from typing import Annotated

import typer

from ethosu_sdk import __version__

app = typer.Typer(
    name="ethosu-sdk",
    help="Compile, build, run and verify ExecuTorch models for Arm Ethos-U on simulated Corstone boards.\n\n"
    "Start with: ethosu-sdk run zoo:digits_cnn --target ethos-u55-128",
    no_args_is_help=True,
    suggest_commands=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ethosu-sdk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Common to all commands."""
