"""The command line of `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Loose, OutDir, Pte
from ethosu_sdk.program_options import Option


@app.command("export")
def export_command(
    model: Pte,
    *,
    run: Annotated[
        Path | None,
        Option(
            "A run of this program, for sizes that are known only after a run; preferably one with "
            "--runtime executorch.",
            metavar="RUN_DIR",
        ),
    ] = None,
    output: OutDir = None,
    loose: Loose = False,
    invocation: Invocation,
) -> None:
    """Write the settings that other builds need to run MODEL.pte: pool sizes, kernels and the NPU's settings.

    CMake definitions for ExecuTorch's arm_executor_runner, a Kconfig fragment for Zephyr, a layer for CMSIS-Toolbox.
    Only known values are defined; a bound that is not sufficient by itself is written as a comment.
    """
    from ethosu_sdk.results.reading import Reading
    from ethosu_sdk.steps.export import export_command

    export_command.export(model, run, output, Reading(loose), invocation.reporter())
