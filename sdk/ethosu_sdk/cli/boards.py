"""The command line of `boards`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


@app.command("boards")
def boards_command(
    board: Annotated[
        str | None,
        Option(
            "Show this profile with the source of each value.", metavar="NAME|FILE.toml", completion="systems"
        ),
    ] = None,
    *,
    invocation: Invocation,
) -> None:
    """List the boards that models can be compiled for with --system."""
    from ethosu_sdk.steps import boards_command

    boards_command.boards(board, invocation.reporter())
