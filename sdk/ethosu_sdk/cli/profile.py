"""The command line of `profile`."""

from __future__ import annotations

from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    AllowSpill,
    Board,
    Debug,
    Inputs,
    Json,
    MemoryMode,
    MemoryTiming,
    OutDir,
    Quiet,
    SystemConfig,
    TargetName,
    Timeout,
    Trust,
)
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.run.options import RunOptions


@app.command("profile")
def profile_command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|RUN_DIR",
            show_default=False,
            help="What `run` takes, or the folder of a run that has its program in it.",
            autocompletion=completion.models,
        ),
    ],
    clock_mhz: Annotated[
        float | None,
        typer.Option(
            metavar="MHZ",
            min=0.001,
            max=1e6,
            help="Clock of the NPU.",
            show_default="the system configuration's",
        ),
    ] = ProfileOptions.clock_mhz,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Show the N slowest operations.", show_default="all, up to 100"
        ),
    ] = ProfileOptions.rows,
    split: Annotated[
        bool,
        typer.Option(
            "--split",
            help="Run each NPU operation as a job of its own too, and read the NPU's counters of each.",
        ),
    ] = ProfileOptions.split,
    inputs: Inputs = RunOptions.inputs,
    timeout: Timeout = RunOptions.timeout_s,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    trust: Trust = CompileOptions.trust,
    memory_timing: MemoryTiming = RunOptions.memory_timing,
    board: Board = RunOptions.board,
    allow_spill: AllowSpill = RunOptions.allow_spill,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show where an inference's cycles and bytes go, operation by operation.

    MODEL is run first, and what the CPU executes is counted in instructions. Cycles of the NPU are modelled, beside
    Vela's estimate of each operation. With other options of `compile`, give the MODEL.pte that it made. A model
    FILE.py is executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps.profile import profile_command

    compile_options = CompileOptions(
        target=target, system_config=system_config, memory_mode=memory_mode, trust=trust
    )
    profile_command.profile(
        subject,
        compile_options,
        RunOptions(
            inputs=inputs,
            timeout_s=timeout,
            memory_timing=memory_timing,
            board=board,
            allow_spill=allow_spill,
        ),
        ProfileOptions(clock_mhz=clock_mhz, rows=rows, split=split),
        output,
        Reporter(as_json=json, quiet=quiet),
    )
