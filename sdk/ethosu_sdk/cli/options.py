"""The options and arguments that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from ethosu_sdk import boards
from ethosu_sdk.cli import completion
from ethosu_sdk.cli.completion import Completer
from ethosu_sdk.program_options import IO_CHOICES, QUANTIZE_CHOICES, QUANTIZE_PER_CHOICES

BOARDS = "|".join(boards.BOARDS)
LONGEST_S = 604_800.0  # a week: a limit that is never reached is none


def finite(value: float) -> float:
    """`value` of an option, unless it is infinite: no difference would exceed it."""
    if math.isinf(value):
        raise typer.BadParameter("it must be finite: nothing exceeds infinity")
    return value


Json = Annotated[
    bool, typer.Option("--json", help="Print only the JSON record on stdout; all else on stderr.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print warnings and errors only.")]
Loose = Annotated[
    bool,
    typer.Option(
        "--loose",
        help="Take a record that is not as the manifest beside it lists it; the output says so.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
OutDir = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="Where the results go.", show_default=False),
]
Pte = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL.pte",
        show_default=False,
        help="An ExecuTorch program.",
        autocompletion=completion.programs,
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="MODEL.pte, FILE.py[:NAME], FILE.pt2 or zoo:NAME. A .py is executed, as by Python: take it from "
        "where you trust it. A .pt2 that could run code is refused, unless with --trust.",
        autocompletion=completion.models,
    ),
]
TargetName = Annotated[
    str,
    typer.Option(
        "--target", metavar="NAME", help="The NPU and its MAC count.", autocompletion=completion.targets
    ),
]


def _of_family(text: str, names: Completer) -> Any:
    """An option for one of Vela's names, of which each family of NPUs has its own."""
    return typer.Option(metavar="NAME", help=text, show_default="the family's", autocompletion=names)


SystemConfig = Annotated[str | None, _of_family("Vela system configuration.", completion.system_configs)]
MemoryMode = Annotated[str | None, _of_family("Vela memory mode.", completion.memory_modes)]
Quantize = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(QUANTIZE_CHOICES),
        help="Post-training quantisation.",
        show_default="int8",
        autocompletion=completion.choices(QUANTIZE_CHOICES),
    ),
]
Calibration = Annotated[
    list[Path] | None,
    typer.Option(metavar="F.npz", help="Samples to calibrate with.", show_default="example inputs"),
]
Inputs = Annotated[
    Path | None, typer.Option(metavar="F.npz", help="input0 … in model order.", show_default=False)
]
Io = Annotated[
    str,
    typer.Option(
        "--io",
        metavar="|".join(IO_CHOICES),
        help="Type of the model's inputs and outputs.",
        autocompletion=completion.choices(IO_CHOICES),
    ),
]
QuantizePer = Annotated[
    str,
    typer.Option(
        metavar="|".join(QUANTIZE_PER_CHOICES),
        help="Weights get a scale for each output channel, or one.",
        autocompletion=completion.choices(QUANTIZE_PER_CHOICES),
    ),
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
NoCheck = Annotated[
    bool,
    typer.Option(
        "--no-check", help="Do not execute the program once to compare it with the model it was made from."
    ),
]
Timeout = Annotated[
    float,
    typer.Option(metavar="S", min=0.1, max=LONGEST_S, help="Wall-clock limit of the run in seconds."),
]
Policy = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml", help="What may become worse, and by how much.", show_default="the SDK's own"
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Compare what differs in this: model, versions, memory_mode …",
        show_default=False,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Load a .pt2 even if that may run code in it. A .py is always run: it needs no leave."
    ),
]
Evaluate = Annotated[
    Path | None,
    typer.Option(
        metavar="F.npz",
        help="Compare float, quantised and executed on these samples (input0 …, label0 or output0 …).",
        show_default=False,
    ),
]


def _limit(name: str, unit: str, text: str) -> Any:
    """An option that sets a threshold of --evaluate, for the pair of its choice."""
    return typer.Option(name, metavar=f"[PAIR=]{unit}", help=f"Exit code 7 {text}.", show_default=False)


MinTop1 = Annotated[
    list[str] | None,
    _limit("--min-top1", "SHARE", "below this share of right answers; PAIR such as float-executed"),
]
MaxTop1Drop = Annotated[
    list[str] | None,
    _limit("--max-top1-drop", "SHARE", "when that share falls by more from float to executed"),
]
MinSqnr = Annotated[
    list[str] | None,
    _limit(
        "--min-sqnr",
        "DB",
        "below this signal to quantisation noise ratio; without --evaluate, on the samples that every compilation "
        "compares",
    ),
]
MinCosine = Annotated[
    list[str] | None, _limit("--min-cosine", "C", "below this cosine similarity of the outputs")
]
MaxError = Annotated[list[str] | None, _limit("--max-error", "E", "above this absolute error in an output")]
EtRecord = Annotated[
    bool,
    typer.Option(
        "--etrecord",
        help="Write MODEL.etrecord too: by it ExecuTorch's Inspector tells where in the model events come from.",
    ),
]
NoDelegate = Annotated[bool, typer.Option("--no-delegate", help="Keep every operator on the CPU.")]
AllowSpill = Annotated[
    bool,
    typer.Option(
        "--allow-spill",
        help="Let what is too large for the memory mode's SRAM lie in DDR; the record says so.",
    ),
]
MemoryTiming = Annotated[
    str,
    typer.Option(
        metavar="vela|executorch|FILE.toml",
        help="Memories that modelled cycles are for: vela.ini's, or behind timing adapters.",
    ),
]
Board = Annotated[
    str | None,
    typer.Option(
        metavar=BOARDS,
        help="The board.",
        show_default="that of the simulator that is installed",
        autocompletion=completion.boards,
    ),
]
