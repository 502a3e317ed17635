"""The command line of `sbom`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.program_options import Option


@app.command("sbom")
def sbom_command(
    *,
    output: Annotated[
        Path | None,
        Option("Write to this file.", short="-o", metavar="FILE.json", shown_default="stdout"),
    ] = None,
    invocation: Invocation,
) -> None:
    """List the installed Python and Debian packages as a CycloneDX 1.6 bill of materials."""
    from ethosu_sdk.installation.sbom import sbom_command

    sbom_command.sbom(output, invocation.reporter())
