"""The command line of `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    LONGEST_S,
    AllowSpill,
    Board,
    Calibration,
    Debug,
    ExtraVelaFlag,
    Inputs,
    Io,
    Json,
    MemoryMode,
    MemoryTiming,
    Model,
    NoCheck,
    NoDelegate,
    OutDir,
    Quantize,
    QuantizePer,
    Quiet,
    RequireFullDelegation,
    SystemConfig,
    TargetName,
    Trust,
    VelaConfig,
    finite,
)
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.run.options import RUNTIMES, SIMULATORS, RunOptions


@app.command("run")
def run_command(
    model: Model,
    inputs: Inputs = RunOptions.inputs,
    expect: Annotated[
        Path | None, typer.Option(metavar="F.npz", help="output0 … that must come back.", show_default=False)
    ] = RunOptions.expect,
    atol: Annotated[
        float, typer.Option(min=0.0, callback=finite, help="Allowed absolute difference.")
    ] = RunOptions.atol,
    rtol: Annotated[
        float, typer.Option(min=0.0, callback=finite, help="Allowed relative difference.")
    ] = RunOptions.rtol,
    simulator: Annotated[
        str,
        typer.Option(
            metavar="|".join(SIMULATORS),
            help="The firmware on a board, on QEMU or Arm's FVP; or ExecuTorch's runtime here.",
            autocompletion=completion.choices(SIMULATORS),
        ),
    ] = RunOptions.simulator,
    runtime: Annotated[
        str,
        typer.Option(
            metavar="|".join(RUNTIMES),
            help="What interprets the program on the board: the SDK's firmware, Arm's build of ExecuTorch, or both.",
            autocompletion=completion.choices(RUNTIMES),
        ),
    ] = RunOptions.runtime,
    timeout: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=LONGEST_S, help="Wall-clock limit in seconds.")
    ] = RunOptions.timeout_s,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="PMU events to count; more than 4 (8 on Ethos-U85) take several inferences.",
            show_default="ExecuTorch's",
            autocompletion=completion.events,
        ),
    ] = RunOptions.events,
    memory_timing: MemoryTiming = RunOptions.memory_timing,
    fast: Annotated[
        bool, typer.Option("--fast", help="FVP: skip the NPU's timing; its counters then mean nothing.")
    ] = RunOptions.fast,
    simulated_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0.001, max=LONGEST_S, help="FVP: limit of simulated seconds.", show_default=False
        ),
    ] = RunOptions.simulated_limit_s,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=1_000_000, help="Inferences of each set of inputs; all must agree."
        ),
    ] = RunOptions.repeat,
    keep_state: Annotated[
        bool,
        typer.Option(
            "--keep-state", help="Repeats go on from the state of the one before, and need not agree."
        ),
    ] = RunOptions.keep_state,
    resident: Annotated[
        bool,
        typer.Option(
            "--resident", help="Load MODEL into a firmware with all kernels: nothing is built for it."
        ),
    ] = RunOptions.resident,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    quantize: Quantize = CompileOptions.quantize,
    quantize_per: QuantizePer = CompileOptions.quantize_per,
    calibration: Calibration = None,
    io: Io = CompileOptions.io,
    no_delegate: NoDelegate = not CompileOptions.delegate,
    vela_config: VelaConfig = CompileOptions.vela_config,
    extra_vela_flag: ExtraVelaFlag = None,
    require_full_delegation: RequireFullDelegation = CompileOptions.require_full_delegation,
    no_check: NoCheck = not CompileOptions.check,
    trust: Trust = CompileOptions.trust,
    board: Board = RunOptions.board,
    allow_spill: AllowSpill = RunOptions.allow_spill,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run MODEL on a simulated board, compiling and building first what is missing or stale.

    The options from --target to --no-delegate are those of `compile`; a ready MODEL.pte has its own target. A model
    FILE.py is executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps.run import run_command

    compile_options = CompileOptions(
        target=target,
        system_config=system_config,
        memory_mode=memory_mode,
        quantize=quantize,
        io=io,
        delegate=not no_delegate,
        calibration=tuple(calibration or ()),
        quantize_per=quantize_per,
        vela_config=vela_config,
        vela_flags=tuple(extra_vela_flag or ()),
        require_full_delegation=require_full_delegation,
        check=not no_check,
        trust=trust,
    )
    options = RunOptions(
        inputs=inputs,
        expect=expect,
        atol=atol,
        rtol=rtol,
        simulator=simulator,
        runtime=runtime,
        timeout_s=timeout,
        events=events,
        memory_timing=memory_timing,
        board=board,
        fast=fast,
        simulated_limit_s=simulated_limit,
        resident=resident,
        repeat=repeat,
        keep_state=keep_state,
        allow_spill=allow_spill,
    )
    run_command.run(model, compile_options, options, output, Reporter(as_json=json, quiet=quiet))
