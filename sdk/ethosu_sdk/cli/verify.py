"""The command line of `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Data, Loose, VelaConfig
from ethosu_sdk.program_options import Option


@app.command("verify")
def verify_command(
    record: Annotated[Path, Option("A build.json or run.json to reproduce.", metavar="RECORD.json")],
    *,
    model: Annotated[
        Path | None,
        Option(
            "The program that the record describes.", metavar="MODEL.pte", shown_default="beside the record"
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        Option(
            "The inputs of the run.", metavar="F.npz", shown_default="those that `run` uses without --inputs"
        ),
    ] = None,
    data: Data = None,
    vela_config: VelaConfig = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Rebuild the firmware of a record from scratch, run it again, and compare digests, outputs, figures and
    versions."""
    from ethosu_sdk.results.reading import Reading
    from ethosu_sdk.steps.verify import verify_command

    given = verify_command.Given(model, inputs, vela_config, tuple(data or ()))
    verify_command.verify(record, given, Reading(loose), invocation.reporter())
