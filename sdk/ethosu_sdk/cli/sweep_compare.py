"""The command line of `sweep compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.cli.sweep import sweep_app
from ethosu_sdk.program_options import Option
from ethosu_sdk.readers.compare.options import CompareOptions


@sweep_app.command("compare")
def compare_command(
    before: Annotated[Path, Option("The folder of a sweep.", metavar="A")],
    after: Annotated[Path, Option("The folder of the sweep to compare with A.", metavar="B")],
    options: Annotated[CompareOptions, Offer(only=("policy", "allow"))],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compare two sweeps cell by cell, with the policy and the exit codes of `compare`.

    The exit code is also 7 if a cell that passed in A fails or is missing in B.
    """
    from ethosu_sdk.sweep import comparison

    comparison.compare(before, after, options, output, invocation.reporter())
