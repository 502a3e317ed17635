"""The command line of `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose

FORMATS = ("junit", "sarif", "perfetto", "csv", "parquet", "model-explorer", "etdump", "bpte")


@app.command("convert")
def convert_command(
    subject: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_DIR|RECORD.json",
            show_default=False,
            help="A folder of results, of which every record is read that the format has a use for, or one record.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="|".join(FORMATS),
            show_default=False,
            help="The format.",
            autocompletion=completion.choices(FORMATS),
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", show_default=False, help="Where it goes.")
    ],
    *,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Write records in a format that other tools open: CI servers, code hosts, trace viewers, data tools.

    What a format has no place for is left out, and named.
    """
    from ethosu_sdk.readers.convert import convert_command
    from ethosu_sdk.results.reading import Reading

    convert_command.convert(subject, to, output, Reading(loose), invocation.reporter())
