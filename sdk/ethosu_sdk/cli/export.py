"""The command line of `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import Debug, Json, Loose, OutDir, Pte, Quiet


@app.command("export")
def export_command(
    model: Pte,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN_DIR",
            show_default=False,
            help="A run of this program, for the sizes that are known only once it has run: best one with "
            "--runtime executorch.",
        ),
    ] = None,
    output: OutDir = None,
    loose: Loose = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write what other builds must know to run MODEL.pte: pool sizes, kernels and NPU settings.

    CMake definitions for ExecuTorch's arm_executor_runner, a Kconfig fragment for Zephyr, a layer for CMSIS-Toolbox.
    Only what is known is defined; a bound that is not enough by itself stands there as a comment.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.results.reading import Reading
    from ethosu_sdk.steps.export import export_command

    export_command.export(model, run, output, Reading(loose), Reporter(as_json=json, quiet=quiet))
