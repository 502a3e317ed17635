"""Arguments and options that several commands share and that belong to no option dataclass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.program_options import DATA, VELA_CONFIG, Option
from ethosu_sdk.readers.compare.options import LOOSE

Loose = Annotated[bool, LOOSE]
VelaConfig = Annotated[Path | None, VELA_CONFIG]
Data = Annotated[list[Path] | None, DATA]
OutDir = Annotated[
    Path | None,
    Option(
        "Write the results to this folder.",
        short="-o",
        metavar="DIR",
        shown_default="the program's folder, or one below build",
    ),
]
Pte = Annotated[
    Path,
    Option("An ExecuTorch program.", metavar="MODEL.pte"),
]
_SOURCES = (
    "FILE.py[:NAME], FILE.pt2 or zoo:NAME. A .py file is executed as by Python: use only files that you trust. A "
    ".pt2 file that could run code is refused without --trust."
)
Model = Annotated[str, Option(f"MODEL.pte, {_SOURCES}", metavar="MODEL", completion="models")]
SourceModel = Annotated[str, Option(_SOURCES, metavar="MODEL", completion="models")]
