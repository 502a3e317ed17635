"""The Typer application that every command joins."""

from __future__ import annotations

import copy
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typer.main import get_command

from ethosu_sdk import __version__
from ethosu_sdk.cli import completion, parameters
from ethosu_sdk.cli.options import PANELS

_COLUMNS_FROM = 100  # of a terminal in which Rich has room for the longest option and its value
_PANELS_FROM = 20  # parameters of a command whose help has panels


class Command(typer.core.TyperCommand):
    """A command whose help breaks no names in a narrow terminal, and has panels where it is long."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, with :func:`_take_plain_values`."""
        _take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Without Rich's columns where they would break names: there, a long name has a line of its own."""
        if len(self.params) >= _PANELS_FROM:
            _sort_into_panels(self.params)
        if shutil.get_terminal_size().columns < _COLUMNS_FROM:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As Typer's, with the panels as sections."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            name = f"{parameter.param_type_name.title()}s"
            if record is not None:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or name, []).append(record)
        for name, rows in sections.items():
            with formatter.section(name):
                formatter.write_dl(rows)


def _sort_into_panels(parameters: list[Any]) -> None:
    places = list(PANELS)
    for row in parameters:
        row.rich_help_panel = next((name for name in places if row.opts[-1] in PANELS[name]), None)
    parameters.sort(key=lambda row: places.index(row.rich_help_panel) if row.rich_help_panel else -1)


class Group(typer.core.TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, with :func:`_take_plain_values`."""
        _take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


def _take_plain_values(parameters: Iterable[Any]) -> None:
    """Have `parameters` take as they are a default, text, and a path to what can be read or is not there.

    Typer makes a validator of pydantic for each parameter, given or not: a sixth of the time of a short command.
    """
    for parameter in parameters:
        parameter.process_value = functools.partial(_processed, parameter, parameter.process_value)


def _processed(parameter: Any, validated: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if value is parameter.default and not parameter.required:
        plain = () if value is None and parameter.multiple else value
        return plain if parameter.callback is None else parameter.callback(ctx, parameter, plain)
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)  # older Typers lack it
    # Typer has words for what cannot be decoded.
    if kind in (str, Path) and parameter.callback is None and isinstance(value, str) and value.isascii():
        if kind is str:
            return value
        if os.access(value, os.R_OK) or not os.access(value, os.F_OK):
            return Path(value)
    return validated(ctx, value)


class Application(typer.Typer):
    """A Typer whose commands take option dataclasses, and which the shell completes quickly."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's."""
        join = super().command(name, cls=Command, **settings)
        return lambda function: join(parameters.Expanded(function))


app = Application(
    name=completion.PROGRAM,
    cls=Group,
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


def command_line(words: Sequence[str]) -> Any:
    """Click's command for a line of `words`: if the first names a command or a group, without all others.

    To make them takes Typer longer than some commands take.
    """
    first = words[0] if words else ""
    chosen = copy.copy(app)
    chosen.registered_commands = [row for row in app.registered_commands if row.name == first]
    chosen.registered_groups = [row for row in app.registered_groups if row.name == first]
    return get_command(chosen if chosen.registered_commands or chosen.registered_groups else app)
