"""The Typer application that every command joins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ethosu_sdk import __version__
from ethosu_sdk.cli import completion, parameters


class Application(typer.Typer):
    """A Typer whose commands take option dataclasses, and which the shell completes quickly."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's."""
        join = super().command(name, cls=completion.Command, **settings)
        return lambda function: join(parameters.expanded(function))


app = Application(
    name=completion.PROGRAM,
    help="Compile, build, run and verify ExecuTorch models for Arm Ethos-U and Cortex-M on simulated boards.\n\n"
    "Start with: ethosu-sdk run zoo:digits_cnn --target ethos-u55-128",
    no_args_is_help=True,
    suggest_commands=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ethosu_sdk.base import tools

        commit = tools.git_revision()
        typer.echo(f"ethosu-sdk {__version__}" + (f" ({commit})" if commit else ""))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and the commit."),
    ] = False,
) -> None:
    """Common to all commands."""
