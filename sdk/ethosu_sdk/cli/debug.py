"""The command line of `debug`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Model, OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.debug.options import DebugOptions


@app.command("debug")
def debug_command(
    model: Model,
    options: DebugOptions,
    compile_options: Annotated[
        CompileOptions,
        Offer(without=("inputs", "io", "delegate", "require_full_delegation", "etrecord", "check")),
    ],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compare every layer inside the NPU's delegates with the model in PyTorch, quantised and in floating point.

    The model is compiled, and its program runs once on the host simulator. For a MODEL.pte, whose PyTorch model is
    not known, only values and ranges are shown. A model FILE.py is executed.
    """
    from ethosu_sdk.steps.debug import debug_command

    debug_command.debug(model, compile_options, options, output, invocation.reporter())
