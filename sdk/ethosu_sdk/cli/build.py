"""The command line of `build`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import AllowSpill, Board, Debug, Json, OutDir, Pte, Quiet


@app.command("build")
def build_command(
    model: Pte,
    board: Board = None,
    allow_spill: AllowSpill = False,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Build the bare-metal firmware that runs MODEL.pte: executor_runner.elf."""
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps import build_command

    reporter = Reporter(as_json=json, quiet=quiet)
    build_command.build(model, board, output, reporter, allow_spill=allow_spill)
