"""The cost of a segment of a command stream, worked out once for as long as the segment is kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.program import Segment
from ethosu_sdk.npu.timing.price import price
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.npu.timing.traffic import Transfer


@dataclass(frozen=True)
class OperationTrace:
    """One operation as it is carried out: place in the stream, name, estimated cycles, multiply-accumulates.

    The cycles of the MAC unit, output unit, weight decoder and busiest memory are each for itself: they overlap.
    `transfers` is what it moves through the AXI ports.
    """

    offset: int
    name: str
    total_cycles: int
    mac_cycles: int
    macs: int
    output_cycles: int = 0
    weight_decode_cycles: int = 0
    transfer_cycles: int = 0
    transfers: tuple[Transfer, ...] = ()


@dataclass(frozen=True)
class Costs:
    """The trace of each operation of a segment, and for each the cycles from the segment's begin until it and all
    before it have ended."""

    traces: tuple[OperationTrace, ...]
    elapsed: tuple[int, ...]


_lock = threading.Lock()
_known: WeakKeyDictionary[Segment, dict[tuple[NpuConfig, SystemConfig], Costs]] = WeakKeyDictionary()


def costs(segment: Segment, config: NpuConfig, system: SystemConfig) -> Costs:
    """What `segment` costs on `config` with the memories of `system`."""
    with _lock:
        known = _known.setdefault(segment, {})
    key = (config, system)
    if key not in known:
        known[key] = _costs(segment, config, system)
    return known[key]


def _costs(segment: Segment, config: NpuConfig, system: SystemConfig) -> Costs:
    priced = price(segment.operations, config, system, segment.waits)
    traces = tuple(
        OperationTrace(
            op.offset,
            op.name,
            row.stages.total,
            row.stages.mac,
            row.macs,
            row.stages.output,
            row.stages.decoder,
            row.stages.transfer,
            row.transfers,
        )
        for op, row in zip(segment.operations, priced, strict=True)
    )
    return Costs(traces, tuple(row.elapsed for row in priced))
