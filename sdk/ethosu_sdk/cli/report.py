"""The command line of `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Quiet


@app.command("report")
def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR…",
            show_default=False,
            help="Folders of runs, as `run` and `profile` make them. With several, they stand side by side.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Where the page goes.",
            show_default="report.html in the run's folder; for several runs in build",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what is known of runs as one HTML page, which needs no network.

    Verdict, memory, cycles and traffic of every operation, what sets their pace, the arena, accuracy by layer and
    where all of it comes from, as far as the folder's records tell: pip install 'ethosu-sdk[report]' draws it.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.readers.report import report_command
    from ethosu_sdk.steps.run_facts import gathering

    reporter = Reporter(quiet=quiet)
    report_command.check(output)
    with reporter.stage("reading the programs"):
        facts = [gathering.of(run) for run in runs]
    report_command.report(runs, facts, output, reporter)
