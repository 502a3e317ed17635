"""The options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[
    bool, typer.Option("--json", help="Print only the JSON record on stdout; all else on stderr.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print warnings and errors only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
OutDir = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="Where the results go.", show_default=False),
]
Pte = Annotated[Path, typer.Argument(metavar="MODEL.pte", show_default=False, help="An ExecuTorch program.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", show_default=False, help="MODEL.pte, FILE.py[:NAME], FILE.pt2 or zoo:NAME."
    ),
]
TargetName = Annotated[str, typer.Option("--target", metavar="NAME", help="The NPU and its MAC count.")]
SystemConfig = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vela system configuration.", show_default="the family's")
]
MemoryMode = Annotated[
    str | None, typer.Option(metavar="NAME", help="Vela memory mode.", show_default="the family's")
]
Quantize = Annotated[
    str | None,
    typer.Option(metavar="int8|int16|none", help="Post-training quantisation.", show_default="int8"),
]
Calibration = Annotated[
    list[Path] | None,
    typer.Option(metavar="F.npz", help="Samples to calibrate with.", show_default="example inputs"),
]
Inputs = Annotated[
    Path | None, typer.Option(metavar="F.npz", help="input0 … in model order.", show_default=False)
]
Io = Annotated[
    str, typer.Option("--io", metavar="float|int8", help="Type of the model's inputs and outputs.")
]
QuantizePer = Annotated[
    str, typer.Option(metavar="channel|tensor", help="Weights get a scale for each output channel, or one.")
]
VelaConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE.ini", help="Vela configuration file.", show_default="Vela's own"),
]
ExtraVelaFlag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FLAG", help="A flag to add to Vela's, such as --optimise=Size.", show_default=False
    ),
]
RequireFullDelegation = Annotated[
    bool,
    typer.Option("--require-full-delegation", help="Exit code 7 when an operator stays on the CPU."),
]
NoDelegate = Annotated[bool, typer.Option("--no-delegate", help="Keep every operator on the CPU.")]
Board = Annotated[
    str | None, typer.Option(metavar="corstone-300", help="The board.", show_default="the target's")
]
