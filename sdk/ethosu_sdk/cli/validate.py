"""The command line of `validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose
from ethosu_sdk.program_options import Option


@app.command("validate")
def validate_command(
    record: Annotated[
        Path,
        Option("A record, or a folder of results.", metavar="FILE.json|DIR"),
    ],
    *,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Check a record against its schema and further rules, or a folder of results against its manifest.

    The folder must hold exactly the files that its manifest lists, unchanged and complete.
    """
    from ethosu_sdk.readers import validate_command
    from ethosu_sdk.results.reading import Reading

    validate_command.validate(record, Reading(loose), invocation.reporter())
