"""What each operation of a command stream costs, and what sets its pace."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, Operation
from ethosu_sdk.npu.program import Segment
from ethosu_sdk.npu.timing.pipeline import Stages, busy
from ethosu_sdk.npu.timing.price import price, started
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.npu.timing.traffic import Transfer


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
    """One operation: `cycles` by which the stream takes longer for it, of its `stages`.

    Cycles of operations that run beside each other count for the one that ends last, so that they add up. `memory`
    is the memory that `bound` means.
    """

    operation: Operation
    cycles: int
    stages: Stages
    macs: int
    transfers: tuple[Transfer, ...]
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
    rows, before = [], 0
    for op, row in zip(
        segment.operations, price(segment.operations, config, system, segment.waits), strict=True
    ):
        bound, memory = _bound(op, row.stages, row.transfers, config, system)
        rows.append(
            OperationProfile(op, row.elapsed - before, row.stages, row.macs, row.transfers, bound, memory)
        )
        before = row.elapsed
    return StreamProfile(started(system), tuple(rows))


def _bound(
    op: Operation,
    stages: Stages,
    transfers: tuple[Transfer, ...],
    config: NpuConfig,
    system: SystemConfig,
) -> tuple[Bound, str]:
    if stages.total == 0:
        return Bound.CHAINED, ""
    units = {Bound.MAC: stages.mac, Bound.OUTPUT: stages.output, Bound.WEIGHTS: stages.decoder}
    slowest = max(units, key=lambda unit: units[unit])
    cycles, memory = float(units[slowest]), ""
    for name, needed in busy(transfers, config, system).items():
        if needed > cycles or not isinstance(op, BlockOp):
            slowest, cycles, memory = Bound.MEMORY, needed, name.name
    unhidden = stages.total - cycles
    if unhidden <= cycles:
        return slowest, memory
    return (Bound.LATENCY if 2 * stages.latency >= unhidden else Bound.START), ""
