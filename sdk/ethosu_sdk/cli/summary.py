"""The command line of `summary`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose


@app.command("summary")
def summary_command(
    record: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD.json…",
            show_default=False,
            help="Records of compile, build, run, verify, doctor, or an error with --json.",
        ),
    ],
    *,
    form: Annotated[
        str, typer.Option("--format", metavar="markdown", help="How it is written.")
    ] = "markdown",
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Write what records say as Markdown, such as for the summary of a CI job."""
    from ethosu_sdk.readers.summary import summary_command
    from ethosu_sdk.results.reading import Reading

    summary_command.summary(record, form, Reading(loose), invocation.reporter())
