"""Arguments and options that several commands share and that belong to no option dataclass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ethosu_sdk.program_options import Option
from ethosu_sdk.readers.compare.options import LOOSE

Loose = Annotated[bool, LOOSE]
OutDir = Annotated[
    Path | None,
    Option("Where the results go.", short="-o", metavar="DIR"),
]
Pte = Annotated[
    Path,
    Option("An ExecuTorch program.", metavar="MODEL.pte", completion="programs"),
]
Model = Annotated[
    str,
    Option(
        "MODEL.pte, FILE.py[:NAME], FILE.pt2 or zoo:NAME. A .py is executed, as by Python: take it from "
        "where you trust it. A .pt2 that could run code is refused, unless with --trust.",
        metavar="MODEL",
        completion="models",
    ),
]
