"""The command line of `parse-log`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation


@app.command("parse-log")
def parse_log_command(
    log: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The UART log of a run; - is stdin.")
    ],
    invocation: Invocation,
) -> None:
    """Read the log of a firmware: the SDK's own, or ExecuTorch's executor_runner.

    Exit code 7 when the log tells of a failure, or does not reach the end of the run.
    """
    from ethosu_sdk.readers.logs import parse_log_command

    parse_log_command.parse_log(log, invocation.reporter())
