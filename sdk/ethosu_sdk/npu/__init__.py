"""An open functional model of Arm's Ethos-U: it runs the command streams that Vela emits, bit by bit.

>>> from ethosu_sdk import npu
>>> result = npu.run(payload, [image])     # payload: one delegate as ExecuTorch stores it
>>> result.outputs[0], result.counters.total_cycles

The names below are imported when they are asked for: a reader of `.pte` files needs `npu.vela_blocks`, and neither
the model nor NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ethosu_sdk.npu.api import Program, RunResult, load, run
    from ethosu_sdk.npu.config import NpuConfig
    from ethosu_sdk.npu.errors import BusError, CommandError, UnsupportedCommand
    from ethosu_sdk.npu.machine import Counters
    from ethosu_sdk.npu.memory import Written

__all__ = [
    "BusError",
    "CommandError",
    "Counters",
    "NpuConfig",
    "Program",
    "RunResult",
    "UnsupportedCommand",
    "Written",
    "load",
    "run",
]
_HOMES = {
    **dict.fromkeys(("Program", "RunResult", "load", "run"), "api"),
    **dict.fromkeys(("BusError", "CommandError", "UnsupportedCommand"), "errors"),
    "Counters": "machine",
    "NpuConfig": "config",
    "Written": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ethosu_sdk.npu' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ethosu_sdk.npu.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
