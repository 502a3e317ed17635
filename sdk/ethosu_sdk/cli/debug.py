"""The command line of `debug`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli.app import app
from ethosu_sdk.cli.options import (
    Calibration,
    Debug,
    ExtraVelaFlag,
    Inputs,
    Json,
    MemoryMode,
    Model,
    OutDir,
    Quantize,
    QuantizePer,
    Quiet,
    SystemConfig,
    TargetName,
    Timeout,
    Trust,
    VelaConfig,
    finite,
)
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.debug.options import DebugOptions

Threshold = Annotated[
    float,
    typer.Option(metavar="DB", callback=finite, help="SQNR below which a layer counts as broken."),
]
Advice = Annotated[
    float,
    typer.Option(
        metavar="DB", callback=finite, help="Advise where a layer's quantisation alone leaves a lower SQNR."
    ),
]
Dump = Annotated[
    Path | None,
    typer.Option(metavar="F.npz", help="Write all layers' tensors there.", show_default=False),
]
Rows = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Show the N worst layers.", show_default="all, up to 100"),
]


@app.command("debug")
def debug_command(
    model: Model,
    inputs: Inputs = DebugOptions.inputs,
    threshold: Threshold = DebugOptions.threshold_db,
    advice: Advice = DebugOptions.advice_db,
    dump: Dump = DebugOptions.dump,
    rows: Rows = DebugOptions.rows,
    timeout: Timeout = DebugOptions.timeout_s,
    target: TargetName = CompileOptions.target,
    system_config: SystemConfig = CompileOptions.system_config,
    memory_mode: MemoryMode = CompileOptions.memory_mode,
    quantize: Quantize = CompileOptions.quantize,
    quantize_per: QuantizePer = CompileOptions.quantize_per,
    calibration: Calibration = None,
    vela_config: VelaConfig = CompileOptions.vela_config,
    extra_vela_flag: ExtraVelaFlag = None,
    trust: Trust = CompileOptions.trust,
    output: OutDir = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare every layer inside the NPU's delegates with the model in PyTorch, quantised and in floating point.

    The model is compiled, and its program run once on the host simulator. Of a MODEL.pte, whose model is not known,
    values and ranges alone are shown. A model FILE.py is executed.
    """
    from ethosu_sdk.console.reporter import Reporter
    from ethosu_sdk.steps.debug import debug_command

    compile_options = CompileOptions(
        target=target,
        system_config=system_config,
        memory_mode=memory_mode,
        quantize=quantize,
        quantize_per=quantize_per,
        calibration=tuple(calibration or ()),
        vela_config=vela_config,
        vela_flags=tuple(extra_vela_flag or ()),
        trust=trust,
    )
    options = DebugOptions(
        inputs=inputs,
        threshold_db=threshold,
        advice_db=advice,
        dump=dump,
        rows=rows,
        timeout_s=timeout,
    )
    debug_command.debug(model, compile_options, options, output, Reporter(as_json=json, quiet=quiet))
