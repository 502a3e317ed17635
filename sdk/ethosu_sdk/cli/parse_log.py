"""The command line of `parse-log`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


@app.command("parse-log")
def parse_log_command(
    log: Annotated[Path, Option("The UART log of a run, or - for stdin.", metavar="FILE")],
    invocation: Invocation,
) -> None:
    """Read the log of a firmware: the SDK's own, ExecuTorch's executor_runner, or Arm's evaluation kit.

    The exit code is 7 if the log reports a failure, or ends before the run does.
    """
    from ethosu_sdk.readers.logs import parse_log_command

    parse_log_command.parse_log(log, invocation.reporter())
