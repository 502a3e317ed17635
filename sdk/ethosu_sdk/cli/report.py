"""The command line of `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.program_options import Option


@app.command("report")
def report_command(
    runs: Annotated[
        list[Path],
        Option(
            "Folders of runs, as `run` and `profile` make them. With several, they stand side by side.",
            metavar="RUN_DIR…",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        Option(
            "Where the page goes.",
            short="-o",
            metavar="FILE.html",
            shown_default="report.html in the run's folder; for several runs in build",
        ),
    ] = None,
    invocation: Annotated[Invocation, Offer(only=("quiet", "debug"))],
) -> None:
    """Show what is known of runs as one HTML page, which needs no network.

    Verdict, memory, cycles and traffic of every operation, what sets their pace, the arena, accuracy by layer and
    where all of it comes from, as far as the folder's records tell: pip install 'ethosu-sdk[report]' draws it.
    """
    from ethosu_sdk.readers.report import report_command
    from ethosu_sdk.steps.run_facts import gathering

    reporter = invocation.reporter()
    report_command.check(output)
    with reporter.stage("reading the programs"):
        facts = [gathering.of(run) for run in runs]
    report_command.report(runs, facts, output, reporter)
