"""The command line of `profile`."""

from __future__ import annotations

from typing import Annotated

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.invocation import Invocation
from ethosu_sdk.cli.options import OutDir
from ethosu_sdk.cli.parameters import Offer
from ethosu_sdk.program_options import Option
from ethosu_sdk.steps.compile.options import FOR_A_TARGET, CompileOptions
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("profile")
def profile_command(
    subject: Annotated[
        str,
        Option(
            "What `run` takes, or the folder of a run that has its program in it.",
            metavar="MODEL|RUN_DIR",
            completion="models",
        ),
    ],
    options: ProfileOptions,
    run_options: Annotated[
        RunOptions, Offer(only=("inputs", "timeout_s", "memory_timing", "board", "allow_spill"))
    ],
    compile_options: Annotated[CompileOptions, Offer(only=FOR_A_TARGET, before="memory_timing")],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Show where an inference's cycles and bytes go, operation by operation.

    MODEL is run first, and what the CPU executes is counted in instructions. Cycles of the NPU are modelled, beside
    Vela's estimate of each operation. With other options of `compile`, give the MODEL.pte that it made. A model
    FILE.py is executed.
    """
    from ethosu_sdk.steps.profile import profile_command

    profile_command.profile(subject, compile_options, run_options, options, output, invocation.reporter())
