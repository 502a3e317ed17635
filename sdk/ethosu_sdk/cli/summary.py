"""The command line of `summary`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose
from ethosu_sdk.program_options import Option


@app.command("summary")
def summary_command(
    record: Annotated[
        list[Path],
        Option(
            "Records of compile, build, run, generate, profile, compare, verify or doctor, or an error with --json.",
            metavar="RECORD.json…",
        ),
    ],
    *,
    form: Annotated[str, Option("The output format.", name="--format", metavar="markdown")] = "markdown",
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Print a summary of records as Markdown, for example for the summary of a CI job."""
    from ethosu_sdk.readers.summary import summary_command
    from ethosu_sdk.results.reading import Reading

    summary_command.summary(record, form, Reading(loose), invocation.reporter())
