"""The command line of `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import VelaConfig
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.program_options import Option


@app.command("report")
def report_command(
    runs: Annotated[
        list[Path],
        Option(
            "Folders of runs, made by `run` or `profile`. Several runs are shown side by side.",
            metavar="RUN_DIR…",
        ),
    ],
    *,
    advice: Annotated[
        list[Path] | None,
        Option(
            "Show this record of `advise` with the run of its program; can be given several times.",
            name="--advice",
            metavar="FILE.json",
            shown_default="advice.json in the run's folder",
        ),
    ] = None,
    vela_config: VelaConfig = None,
    output: Annotated[
        Path | None,
        Option(
            "Write the page to this file.",
            short="-o",
            metavar="FILE.html",
            shown_default="report.html in the run's folder; in build for several runs",
        ),
    ] = None,
    invocation: Annotated[Invocation, Offer(only=("quiet", "debug"))],
) -> None:
    """Write the records of one or several runs as one HTML page, which needs no network.

    The page shows the verdict, memory, cycles and traffic of every operation, what limits each of them, advice and
    what `advise --try` got, the arena, accuracy by layer and the source of every figure, as far as the folder has
    records of them. The command needs the extra `report` of ethosu-sdk.
    """
    from ethosu_sdk.readers.report import report_command
    from ethosu_sdk.steps.run_facts import gathering

    reporter = invocation.reporter()
    report_command.check(output)
    with reporter.stage("reading the programs"):
        facts = [gathering.of(run, vela_config) for run in runs]
    report_command.report(runs, facts, advice or (), output, reporter)
