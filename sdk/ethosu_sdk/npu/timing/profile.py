"""What each operation of a command stream costs, and what sets its pace."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import Operation
from ethosu_sdk.npu.program import Segment
from ethosu_sdk.npu.timing.pipeline import busy
from ethosu_sdk.npu.timing.price import Priced, price, started
from ethosu_sdk.npu.timing.system_config import SystemConfig


class Bound(Enum):
    """What an operation's cycles are made of in the main: the slowest stage, or what no stage hides."""

    MAC = "MAC unit"
    OUTPUT = "output unit"
    WEIGHTS = "weight decoder"
    MEMORY = "memory"
    LATENCY = "latency"  # waits for first data, longer than any stage works
    START = "start-up"  # filling and emptying the pipeline, likewise
    CHAINED = "chained"  # part of the operation before


@dataclass(frozen=True)
class OperationProfile:
    """One operation with its price: `cycles` by which the stream takes longer for it.

    Cycles of operations that run beside each other count for the one that ends last, so that they add up. `memory`
    is the memory that `bound` means.
    """

    operation: Operation
    price: Priced
    cycles: int
    bound: Bound
    memory: str = ""


@dataclass(frozen=True)
class StreamProfile:
    """The operations of a command stream, and the cycles until its first command is decoded."""

    start_cycles: int
    operations: tuple[OperationProfile, ...]

    @property
    def cycles(self) -> int:
        """Of the whole stream, as the NPU's cycle counter counts them."""
        return self.start_cycles + sum(row.cycles for row in self.operations)


def profile(segment: Segment, config: NpuConfig, system: SystemConfig) -> StreamProfile:
    """The profile of a stream without branches, with the memories of `system`."""
    priced = price(segment.operations, config, system, segment.waits)
    rows, before = [], 0
    for op, row in zip(segment.operations, priced, strict=True):
        rows.append(OperationProfile(op, row, row.elapsed - before, *_bound(row, config, system)))
        before = row.elapsed
    return StreamProfile(started(system), tuple(rows))


def _bound(priced: Priced, config: NpuConfig, system: SystemConfig) -> tuple[Bound, str]:
    stages = priced.stages
    if stages.total == 0:
        return Bound.CHAINED, ""
    units = {Bound.MAC: stages.mac, Bound.OUTPUT: stages.output, Bound.WEIGHTS: stages.decoder}
    slowest = max(units, key=lambda unit: units[unit])
    cycles, memory = float(units[slowest]), ""
    for name, needed in busy(priced.transfers, config, system).items():
        if needed > cycles:
            slowest, cycles, memory = Bound.MEMORY, needed, name.name
    unhidden = stages.total - cycles
    if unhidden <= cycles:
        return slowest, memory
    return (Bound.LATENCY if 2 * stages.latency >= unhidden else Bound.START), ""
