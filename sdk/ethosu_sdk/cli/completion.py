"""Completion by the shell: what each option offers, and what bash makes of a colon.

bash cuts a line into words at ``:`` and ``=`` as well, unless COMP_WORDBREAKS says otherwise: ``zoo:add`` arrives as
three words, and what it gets back must be what follows the last colon.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import typer
import typer.core

from ethosu_sdk.errors import UsageError
from ethosu_sdk.program_options import Option

PROGRAM = "ethosu-sdk"
VARIABLE = "_ETHOSU_SDK_COMPLETE"
_IN_BASH = "complete_bash"
_COLUMNS_FROM = 100  # of a terminal in which Rich has room for the longest option and its value
_OF_COMPLETION = ("install_completion", "show_completion")  # whose values would be checked


def of(row: Option) -> Callable[..., list[str]] | None:
    """The function that completes the values of an option. It imports the candidates when the shell asks for them."""
    if not row.choices and row.completion is None:
        return None

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        if row.completion is None:
            return list(row.choices)
        from ethosu_sdk.cli import candidates

        return candidates.OFFERS[row.completion](context.params, incomplete)

    return complete


class Command(typer.core.TyperCommand):
    """A command whose help breaks no names in a narrow terminal, and which does not check its parameters' values for
    the shell: the checker takes longer to import than everything else here to run."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Without Rich's columns where they would break names: there, a long name has a line of its own."""
        if shutil.get_terminal_size().columns < _COLUMNS_FROM:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse names and texts only: completion needs no more."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        known = args[:-1] if args and args[-1].startswith("-") else args  # whose value is being typed
        values, rest, _ = self.make_parser(ctx).parse_args(args=known)
        for param in self.get_params(ctx):
            ctx.params[param.name], source = param.consume_value(ctx, values)
            ctx.set_parameter_source(param.name, source)
        ctx.args = rest
        return rest


def is_wanted() -> bool:
    """Whether the shell asks for completions instead of running the command."""
    return VARIABLE in os.environ


def answer(app: typer.core.TyperGroup) -> None:
    """Print the completions of `app` for the command line in the environment, and end the process."""
    _without_values(app)
    prefix = _rejoin() if os.environ[VARIABLE] == _IN_BASH else ""
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            app.main(prog_name=PROGRAM, standalone_mode=False)
    finally:
        found = (line.removeprefix(prefix) for line in text.getvalue().splitlines(keepends=True))
        sys.stdout.write("".join(found))


def _without_values(app: typer.core.TyperGroup) -> None:
    """Take the options out of `app` and its groups whose values would be checked: see :class:`Command`."""
    app.add_help_option = False
    app.params = [param for param in app.params if param.name not in _OF_COMPLETION]
    for command in app.commands.values():
        if isinstance(command, typer.core.TyperGroup):
            _without_values(command)


def _rejoin() -> str:
    """Put COMP_WORDS together again; what bash has of the word at the cursor that it does not want to get back."""
    raw, number = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
    words = raw.split("\n") if "\n" in raw else raw.split()
    if not number.isdecimal():
        raise UsageError(
            f"{VARIABLE} is set, but COMP_CWORD is not a number: only a shell's completion sets these "
            "variables",
            "unset it",
        )
    cursor = int(number)
    joined, place = _joined(words, cursor)
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(place)}
    if place >= len(joined) or joined[place] == words[cursor]:
        return ""
    whole = joined[place]
    return whole[: whole.rfind(":") + 1]


def _joined(words: list[str], cursor: int) -> tuple[list[str], int]:
    """`words` without the cuts at ``:`` and ``=``, and the place of the word `cursor` among them."""
    found: list[str] = []
    places: list[int] = []  # of each of `words`
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        if found and (_is_colons(word) or _is_colons(before) or before == "="):
            found[-1] += word
        elif word == "=" and before.startswith("--"):
            found.append("")  # the option's value, which follows
        else:
            found.append(word)
        places.append(len(found) - 1)
    return found, places[cursor] if cursor < len(places) else len(found)


def _is_colons(word: str) -> bool:
    return bool(word) and not word.strip(":")
