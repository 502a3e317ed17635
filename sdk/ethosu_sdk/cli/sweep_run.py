"""The command line of `sweep run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.options import Debug, Json, OutDir, Quiet, Trust
from ethosu_sdk.cli.sweep import RUN, sweep_app
from ethosu_sdk.sweep.options import SweepOptions

_MOST_JOBS = 1024


@sweep_app.command(RUN)
def sweep_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="SWEEP.toml", show_default=False, help="Models, targets, modes and all else."),
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            "-j",
            "--jobs",
            metavar="N",
            min=1,
            max=_MOST_JOBS,
            help="Processes at work.",
            show_default="one a core",
        ),
    ] = SweepOptions.jobs,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="tls://HOST:PORT",
            help="A Dask scheduler whose workers do it; with tcp://, it trusts whoever reaches it.",
            show_default=False,
        ),
    ] = SweepOptions.scheduler,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what there is to do, and do nothing.")
    ] = SweepOptions.dry_run,
    retry: Annotated[
        bool, typer.Option("--retry", help="Do cells again that failed, took too long or were killed.")
    ] = SweepOptions.retry,
    trust: Trust = SweepOptions.trust,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile and run every cell of SWEEP.toml that is not done yet, and keep all in one folder.

    What cells share is done once. A cell that fails is a row of the table, not the end; the exit code is then 7. The
    same command goes on where it was interrupted. Results go to build/sweep/NAME. Model files FILE.py are executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.sweep import sweep_command

    options = SweepOptions(jobs=jobs, scheduler=scheduler, dry_run=dry_run, retry=retry, trust=trust)
    sweep_command.sweep(file, options, output, Reporter(as_json=json, quiet=quiet))
