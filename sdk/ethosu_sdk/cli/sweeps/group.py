"""`sweep` as a command and as a group: ``sweep SWEEP.toml`` is ``sweep run SWEEP.toml``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from ethosu_sdk.cli.app import Application, app

RUN = "run"
_HELP = ("-h", "--help")


class _Group(TyperGroup):
    """A group that takes what is none of its commands for an argument of RUN."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


sweep_app = Application(
    cls=_Group,
    help="Many models by many targets, modes, compilers and simulators: run what a file says, ask and compare what "
    "came of it.\n\nethosu-sdk sweep SWEEP.toml is short for ethosu-sdk sweep run SWEEP.toml.",
    no_args_is_help=True,
)
app.add_typer(sweep_app, name="sweep")
