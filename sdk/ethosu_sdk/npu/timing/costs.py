"""The costs of a segment's operations, computed once and kept with the segment."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.program import Segment
from ethosu_sdk.npu.timing.price import Priced, price
from ethosu_sdk.npu.timing.system_config import SystemConfig


@dataclass(frozen=True)
class OperationTrace:
    """One operation as it is carried out: its place in the stream, its name and its price."""

    offset: int
    name: str
    price: Priced

    @property
    def total_cycles(self) -> int:
        """Estimated cycles of the operation by itself: those of operations beside each other overlap."""
        return self.price.stages.total


_Traces = tuple[OperationTrace, ...]
_lock = threading.Lock()
_known: WeakKeyDictionary[Segment, dict[tuple[NpuConfig, SystemConfig], _Traces]] = WeakKeyDictionary()


def costs(segment: Segment, config: NpuConfig, system: SystemConfig) -> tuple[OperationTrace, ...]:
    """What each operation of `segment` costs on `config` with the memories of `system`."""
    with _lock:
        known = _known.setdefault(segment, {})
    key = (config, system)
    if key not in known:
        priced = price(segment.operations, config, system, segment.waits)
        pairs = zip(segment.operations, priced, strict=True)
        known[key] = tuple(OperationTrace(op.offset, op.name, row) for op, row in pairs)
    return known[key]
