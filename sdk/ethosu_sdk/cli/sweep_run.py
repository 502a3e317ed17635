"""The command line of `sweep run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir
from ethosu_sdk.cli.sweep import RUN, sweep_app
from ethosu_sdk.program_options import Option
from ethosu_sdk.sweep.options import SweepOptions


@sweep_app.command(RUN)
def sweep_command(
    file: Annotated[
        Path,
        Option(
            "The description of the sweep: models, targets, modes, limits and goals.", metavar="SWEEP.toml"
        ),
    ],
    options: SweepOptions,
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compile and run every cell of SWEEP.toml that is not done yet, and collect the results in one folder.

    Steps that cells share are done once. A cell that fails is a row of the table and does not stop the sweep; the
    exit code is then 7. After an interruption, the same command continues. Results go to build/sweep/NAME. Model
    files FILE.py are executed.
    """
    from ethosu_sdk.sweep import sweep_command

    sweep_command.sweep(file, options, output, invocation.reporter())
