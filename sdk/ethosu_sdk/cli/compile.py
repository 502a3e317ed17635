"""The command line of `compile`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    Calibration,
    Debug,
    ExtraVelaFlag,
    Inputs,
    Io,
    Json,
    MemoryMode,
    Model,
    NoDelegate,
    OutDir,
    Quantize,
    QuantizePer,
    Quiet,
    RequireFullDelegation,
    SystemConfig,
    TargetName,
    VelaConfig,
)


@app.command("compile")
def compile_command(
    model: Model,
    target: TargetName = "ethos-u55-128",
    system_config: SystemConfig = None,
    memory_mode: MemoryMode = None,
    quantize: Quantize = None,
    quantize_per: QuantizePer = "channel",
    calibration: Calibration = None,
    inputs: Inputs = None,
    io: Io = "float",
    no_delegate: NoDelegate = False,
    vela_config: VelaConfig = None,
    extra_vela_flag: ExtraVelaFlag = None,
    require_full_delegation: RequireFullDelegation = False,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile a PyTorch model ahead of time: MODEL → MODEL.pte."""
    from ethosu_sdk.commands import compile as command
    from ethosu_sdk.commands.reporter import Reporter

    options = command.CompileOptions(
        target=target,
        system_config=system_config,
        memory_mode=memory_mode,
        quantize=quantize,
        io=io,
        delegate=not no_delegate,
        calibration=tuple(calibration or ()),
        inputs=inputs,
        quantize_per=quantize_per,
        vela_config=vela_config,
        vela_flags=tuple(extra_vela_flag or ()),
        require_full_delegation=require_full_delegation,
    )
    command.compile_model(model, options, output, Reporter(as_json=json, quiet=quiet))
