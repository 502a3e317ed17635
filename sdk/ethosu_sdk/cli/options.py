"""Arguments and options that several commands share and that belong to no option dataclass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ethosu_sdk.cli import completion
from ethosu_sdk.readers.compare.options import LOOSE

Loose = Annotated[bool, LOOSE]
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
        autocompletion=completion.completer("programs"),
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="MODEL.pte, FILE.py[:NAME], FILE.pt2 or zoo:NAME. A .py is executed, as by Python: take it from "
        "where you trust it. A .pt2 that could run code is refused, unless with --trust.",
        autocompletion=completion.completer("models"),
    ),
]
