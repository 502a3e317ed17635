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
            "A model as `run` takes it, or the folder of a run that contains its program.",
            metavar="MODEL|RUN_DIR",
            completion="models",
        ),
    ],
    options: ProfileOptions,
    run_options: Annotated[
        RunOptions,
        Offer(
            only=(
                "inputs",
                "data",
                "steps",
                "feed",
                "method",
                "timeout_s",
                "memory_timing",
                "cpu_clock_mhz",
                "board",
                "allow_spill",
            )
        ),
    ],
    compile_options: Annotated[
        CompileOptions, Offer(only=(*FOR_A_TARGET, "vela_config"), before="memory_timing")
    ],
    *,
    output: OutDir = None,
    invocation: Invocation,
) -> None:
    """Show where an inference's cycles and bytes go, operation by operation.

    A MODEL is run first, and the instructions of the CPU are counted. Cycles are modelled: those of the NPU are shown
    beside Vela's estimate of each operation. For other options of `compile`, compile first and give the MODEL.pte.
    A model FILE.py is executed.
    """
    from ethosu_sdk.steps.profile import profile_command

    profile_command.profile(subject, compile_options, run_options, options, output, invocation.reporter())
