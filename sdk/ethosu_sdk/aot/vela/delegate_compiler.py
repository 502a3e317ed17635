"""Compiles the delegates of a program while ExecuTorch lowers it, and writes their artefacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.facts.compilation import DelegateFacts
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela import artefacts, capture
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.aot.vela.vela_config import VelaConfig


@dataclass(frozen=True)
class DelegateCompiler:
    """Vela, unless another is given.

    While the block of `captured` runs, each delegate that is compiled adds to its list; `write` lays the artefacts of
    a method of a finished program into a folder, in files whose names begin with the last argument.
    """

    captured: Callable[[VelaConfig | None], AbstractContextManager[list[VelaCapture]]] = capture.captured
    write: Callable[[Path, Any, Sequence[VelaCapture], SourceFinder, str, str], tuple[DelegateFacts, ...]] = (
        artefacts.write_delegates
    )


VELA = DelegateCompiler()
