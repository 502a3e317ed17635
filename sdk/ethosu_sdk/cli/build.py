"""The command line of `build`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir, Pte, VelaConfig
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.steps.run.options import RunOptions


@app.command("build")
def build_command(
    model: Pte,
    options: Annotated[RunOptions, Offer(only=("data", "board", "data_memory", "allow_spill"))],
    *,
    vela_config: VelaConfig = None,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Build the bare-metal firmware that runs MODEL.pte: executor_runner.elf."""
    from ethosu_sdk.steps import build_command

    build_command.build(
        model,
        options.board,
        output,
        invocation.reporter(),
        allow_spill=options.allow_spill,
        data=build_command.Data(options.data, options.data_memory),
        vela_config=vela_config,
    )
