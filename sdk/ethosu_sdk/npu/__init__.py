"""An open functional model of Arm's Ethos-U: it runs the command streams that Vela emits, bit by bit.

>>> from ethosu_sdk import npu
>>> result = npu.run(payload, [image])     # payload: one delegate as ExecuTorch stores it
>>> result.outputs[0], result.counters.total_cycles
"""

from __future__ import annotations

from ethosu_sdk.npu.api import Program, RunResult, load, run
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import (
    BusError,
    CommandError,
    UnsupportedCommand,
    WeightOrderError,
    WeightStreamError,
)
from ethosu_sdk.npu.machine import Counters
from ethosu_sdk.npu.memory import Observer, Written
from ethosu_sdk.npu.timing.price import OperationTrace

__all__ = [
    "BusError",
    "CommandError",
    "Counters",
    "NpuConfig",
    "Observer",
    "OperationTrace",
    "Program",
    "RunResult",
    "UnsupportedCommand",
    "WeightOrderError",
    "WeightStreamError",
    "Written",
    "load",
    "run",
]
