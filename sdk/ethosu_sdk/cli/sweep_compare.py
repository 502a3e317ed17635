"""The command line of `sweep compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.options import Allow, Debug, Json, OutDir, Policy, Quiet
from ethosu_sdk.cli.sweep import sweep_app
from ethosu_sdk.readers.compare.options import CompareOptions


@sweep_app.command("compare")
def compare_command(
    before: Annotated[Path, typer.Argument(metavar="A", show_default=False, help="The folder of a sweep.")],
    after: Annotated[
        Path, typer.Argument(metavar="B", show_default=False, help="The one that is compared with it.")
    ],
    policy: Policy = CompareOptions.policy,
    allow: Allow = None,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare two sweeps cell by cell, as `compare` does two runs: by the same policy, with the same exit codes.

    A cell that passed before and does not now, or is missing, ends with exit code 7.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.sweep import comparison as command

    options = CompareOptions(policy=policy, allow=tuple(allow or ()))
    command.compare(before, after, options, output, Reporter(as_json=json, quiet=quiet))
