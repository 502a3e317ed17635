"""The command line of `generate`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import Model, OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.steps.compile.options import FOR_A_TARGET, CompileOptions
from ethosu_sdk.steps.generate.options import GenerateOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("generate")
def generate_command(
    model: Model,
    options: GenerateOptions,
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                *("simulator", "timeout_s", "memory_timing", "board", "allow_spill"),
                *("cpu_cycles", "cpu_clock_mhz"),
            )
        ),
    ],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET, before="simulator")],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Continue a prompt, token by token, on a simulated board.

    MODEL is a decoder: one token and its position in, the logits of the next token out, caches inside. Tokens are
    shown as the board makes them. Time is modelled, for prefill and decode apart. A model FILE.py is executed.
    """
    from ethosu_sdk.steps.generate import generate_command

    generate_command.generate(model, compile_options, run_options, options, output, invocation.reporter())
