"""The command line of `run`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Model, OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("run")
def run_command(
    model: Model,
    options: RunOptions,
    compile_options: Annotated[CompileOptions, Offer(without=("inputs", "etrecord"), before="board")],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Run MODEL on a simulated board. A missing or stale program or firmware is made first.

    The options from --target to --trust are those of `compile`; a MODEL.pte keeps the target that it was
    compiled for. A model FILE.py is executed.
    """
    if options.script is not None:
        from ethosu_sdk.steps.run.scripts import script_command

        script_command.run(model, compile_options, options, output, invocation.reporter())
        return
    from ethosu_sdk.steps.run import run_command

    run_command.run(model, compile_options, options, output, invocation.reporter())
