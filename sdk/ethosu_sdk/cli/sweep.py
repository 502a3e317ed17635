"""`sweep` as a command and as a group: ``sweep SWEEP.toml`` is ``sweep run SWEEP.toml``."""

from __future__ import annotations

import os
import re
from typing import Any

from typer.core import TyperGroup

from ethosu_sdk.cli.app import Application, app
from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import suggestion

RUN = "run"
_HELP = ("-h", "--help")


class _Group(TyperGroup):
    """A group that passes words that are not its commands to RUN."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            _refuse_word(args[0], [*self.commands])
            args = [RUN, *args]
        return super().parse_args(ctx, args)


def _refuse_word(word: str, commands: list[str]) -> None:
    """Raise UsageError for a plain word that is not a file, such as a mistyped command."""
    if re.fullmatch(r"\w[\w-]*", word) and not os.path.lexists(word):
        message = f"there is neither a file nor a command of `sweep` called '{word}'"
        raise UsageError(message, f"{suggestion(word, commands)}; or give the file of a sweep, SWEEP.toml")


sweep_app = Application(
    cls=_Group,
    help="Run many models with many targets, modes, compilers and simulators; query and compare the "
    "results.\n\nethosu-sdk sweep SWEEP.toml is short for ethosu-sdk sweep run SWEEP.toml.",
    no_args_is_help=True,
)
app.add_typer(sweep_app, name="sweep")
