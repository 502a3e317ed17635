"""The command line of `compile`."""

from __future__ import annotations

from dataclasses import replace

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir, SourceModel
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.evaluate.options import AccuracyOptions


@app.command("compile")
def compile_command(
    model: SourceModel,
    options: CompileOptions,
    accuracy: AccuracyOptions,
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Compile a PyTorch model ahead of time: MODEL → MODEL.pte. A model FILE.py is executed."""
    from ethosu_sdk.steps.compile import compile_command
    from ethosu_sdk.steps.evaluate.evaluate_command import read_floor, read_options

    thresholds = accuracy.thresholds()
    floor = None
    if accuracy.evaluate is None:  # then it is the floor of the comparison that every compilation makes
        floor = read_floor(thresholds.pop("--min-sqnr"))
    evaluation = read_options(accuracy.evaluate, thresholds)
    compile_command.compile_model(
        model, replace(options, evaluate=evaluation, min_sqnr_db=floor), output, invocation.reporter()
    )
