"""The command line of `compile`."""

from __future__ import annotations

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    Calibration,
    Debug,
    EtRecord,
    Evaluate,
    ExtraVelaFlag,
    Inputs,
    Io,
    Json,
    MaxError,
    MaxTop1Drop,
    MemoryMode,
    MinCosine,
    MinSqnr,
    MinTop1,
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
)
from ethosu_sdk.steps.compile.options import CompileOptions


@app.command("compile")
def compile_command(
    model: Model,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    quantize: Quantize = CompileOptions.quantize,
    quantize_per: QuantizePer = CompileOptions.quantize_per,
    calibration: Calibration = None,
    inputs: Inputs = CompileOptions.inputs,
    io: Io = CompileOptions.io,
    no_delegate: NoDelegate = not CompileOptions.delegate,
    vela_config: VelaConfig = CompileOptions.vela_config,
    extra_vela_flag: ExtraVelaFlag = None,
    require_full_delegation: RequireFullDelegation = CompileOptions.require_full_delegation,
    etrecord: EtRecord = CompileOptions.etrecord,
    no_check: NoCheck = not CompileOptions.check,
    trust: Trust = CompileOptions.trust,
    evaluate: Evaluate = None,
    min_top1: MinTop1 = None,
    max_top1_drop: MaxTop1Drop = None,
    min_sqnr: MinSqnr = None,
    min_cosine: MinCosine = None,
    max_error: MaxError = None,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile a PyTorch model ahead of time: MODEL → MODEL.pte. A model FILE.py is executed."""
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps.compile import compile_command
    from ethosu_sdk.steps.evaluate.evaluate_command import read_floor, read_options

    thresholds = {
        "--min-top1": min_top1,
        "--max-top1-drop": max_top1_drop,
        "--min-sqnr": min_sqnr,
        "--min-cosine": min_cosine,
        "--max-error": max_error,
    }
    floor = None
    if evaluate is None:  # then it is the floor of the comparison that every compilation makes
        floor = read_floor(thresholds.pop("--min-sqnr"))
    options = CompileOptions(
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
        check=not no_check,
        trust=trust,
        etrecord=etrecord,
        evaluate=read_options(evaluate, thresholds),
        min_sqnr_db=floor,
    )
    compile_command.compile_model(model, options, output, Reporter(as_json=json, quiet=quiet))
