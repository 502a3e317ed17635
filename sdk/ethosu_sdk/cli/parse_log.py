"""The command line of `parse-log`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


@app.command("parse-log")
def parse_log_command(
    log: Annotated[Path, Option("The UART log of a run; - is stdin.", metavar="FILE")],
    invocation: Invocation,
) -> None:
    """Read the log of a firmware: the SDK's own, or ExecuTorch's executor_runner.

    Exit code 7 when the log tells of a failure, or does not reach the end of the run.
    """
    from ethosu_sdk.readers.logs import parse_log_command

    parse_log_command.parse_log(log, invocation.reporter())
