"""What operations cost: each priced from its descriptor alone, when it ends beside the others, what sets its pace."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from weakref import WeakKeyDictionary

from ethosu_sdk.npu import errors
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Operation, Wait
from ethosu_sdk.npu.program import Segment
from ethosu_sdk.npu.timing import units
from ethosu_sdk.npu.timing.constants import COMMAND_TRIPS
from ethosu_sdk.npu.timing.fitted import BANDS
from ethosu_sdk.npu.timing.pipeline import Stages, Stalls, busy, chained, copied, stalls
from ethosu_sdk.npu.timing.systems import SystemConfig, default_for
from ethosu_sdk.npu.timing.traffic import Transfer, transfers


@dataclass(frozen=True)
class Priced:
    """One operation's price: its stages, its multiply-accumulates, what it moves, when it has ended, and for what the
    MAC unit waits in it.

    `elapsed` are the cycles from the first command until it and all operations before it have ended. Operations that
    go on with another's results through a chaining buffer have no stages of their own.
    """

    stages: Stages
    macs: int
    transfers: tuple[Transfer, ...]
    elapsed: int
    stalls: Stalls


def price(
    operations: Sequence[Operation],
    config: NpuConfig,
    system: SystemConfig | None = None,
    waits: Sequence[Wait] = (),
) -> tuple[Priced, ...]:
    """The price of each of a stream's `operations`; `system` None stands for the family's default."""
    system = system or default_for(config.npu)
    schedule = _Schedule(config)
    moved = []
    for op in operations:
        errors.check()
        moved.append(transfers(op, config))
    chains = _chains(operations)
    upcoming = list(reversed(waits))
    found = []
    for index, op in enumerate(operations):
        errors.check()
        while upcoming and upcoming[-1].before <= index:
            wait = upcoming.pop()
            holds = schedule.wait_for_transfers if wait.name == "OP_DMA_WAIT" else schedule.wait_for_kernels
            holds(wait.at_most)
        stages, held = Stages(0, 0, 0), Stalls()
        if isinstance(op, DmaOp):
            stages = copied(op, moved[index], config, system)
            elapsed = schedule.transfer(stages)
        elif index in chains:
            members = chains[index]
            rows = [row for member in members for row in moved[member]]
            followers = [
                part for part in (operations[member] for member in members[1:]) if isinstance(part, BlockOp)
            ]
            stages = chained(op, rows, config, system, followers)
            elapsed, held = schedule.kernel(stages, op.blockdep)
        count = units.macs(op) if isinstance(op, BlockOp) else 0
        found.append(Priced(stages, count, moved[index], elapsed, held))
    return tuple(found)


def started(system: SystemConfig) -> int:
    """Cycles until the first command of a stream is decoded."""
    return COMMAND_TRIPS * system.command_stream.read_latency_cycles


def band(npu: str, macs: int | None = None) -> str:
    """How far modelled cycles of a configuration were from those of published runs, of networks left out of the fit.

    `npu` is a family such as ``ethos-u55``; without `macs`, or where no run of that size was published, it is the
    family's.
    """
    sizes = BANDS[npu]
    if macs is None:
        return f"±{sizes[0]} % on published runs of this family"
    if macs not in sizes:
        return f"±{sizes[0]} % on published runs of this family; none of {macs} MACs per cycle was compared"
    return f"±{sizes[macs]} % on published runs of {npu}-{macs}"


def error(npu: str, macs: int | None = None) -> float:
    """The same band as a share: 0.09 stands for 9 %."""
    sizes = BANDS[npu]
    return sizes.get(macs or 0, sizes[0]) / 100


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


_lock = threading.Lock()
_kept: WeakKeyDictionary[Segment, dict[tuple[NpuConfig, SystemConfig], tuple[OperationTrace, ...]]] = (
    WeakKeyDictionary()
)


def costs(segment: Segment, config: NpuConfig, system: SystemConfig) -> tuple[OperationTrace, ...]:
    """What each operation of `segment` costs on `config` with the memories of `system`."""
    with _lock:
        kept = _kept.setdefault(segment, {})
    key = (config, system)
    if key not in kept:
        priced = price(segment.operations, config, system, segment.waits)
        pairs = zip(segment.operations, priced, strict=True)
        kept[key] = tuple(OperationTrace(op.offset, op.name, row) for op, row in pairs)
    return kept[key]


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


def _chains(operations: Sequence[Operation]) -> dict[int, list[int]]:
    """The numbers of the operations of each chain, by that of its first; most operations are chains of one."""
    found: dict[int, list[int]] = {}
    head, before = 0, None
    for index, op in enumerate(operations):
        if isinstance(op, DmaOp):
            continue
        if before is not None and before.ofm.chain is not None:
            found[head].append(index)
        else:
            head, found[index] = index, [index]
        before = op
    return found


@dataclass(frozen=True)
class _Running:
    """An operation at work from `begin` to `end`, which keeps each port busy for the cycles in `needs`."""

    begin: int
    end: int
    needs: tuple[float, ...]


@dataclass
class _Schedule:
    """Cycles from the first command on.

    One engine computes and one copies. Each takes its operations in order, one after the other, while the stream is
    read on, until a wait or until more would be at work than the NPU keeps. With a
    BLOCKDEP above 0, a block operation fetches its first blocks while as many blocks of the operation before are in
    work. Its first weights are fetched and decoded as soon as its command is read and the decoder is free, and its
    scales are fetched behind those of the operation before. Where both
    engines need the same memory at the same time, they share it.
    """

    config: NpuConfig
    _now: int = 0
    _transfers: list[int] = field(default_factory=list)  # when those at work end, ascending
    _kernel: _Running = field(default_factory=lambda: _Running(0, 0, ()))  # the latest one of each engine
    _copy: _Running = field(default_factory=lambda: _Running(0, 0, ()))
    _kernels: list[int] = field(default_factory=list)
    _last: Stages = field(default_factory=lambda: Stages(0, 0, 0))
    _mac_free: int = 0  # when the MAC unit has ended its part of the latest operation
    _decoder_free: int = 0  # likewise the weight decoder, which may be ahead
    _scales_free: int = 0  # likewise the channel that reads scales

    def wait_for_transfers(self, at_most: int) -> None:
        """NPU_OP_DMA_WAIT: go on when at most so many transfers are at work."""
        self._transfers = self._wait(self._transfers, at_most)

    def wait_for_kernels(self, at_most: int) -> None:
        """NPU_OP_KERNEL_WAIT: go on when at most so many block operations are at work."""
        self._kernels = self._wait(self._kernels, at_most)

    def transfer(self, stages: Stages) -> int:
        """Begin a transfer; the cycle at which all that has begun has ended."""
        self.wait_for_transfers(self.config.transfers_at_work - 1)
        begin = max(self._now, self._transfers[-1] if self._transfers else 0)
        copy = _Running(begin, begin + stages.total, stages.needs)
        if self._kernels and self._kernel.end > begin:
            self._kernels[-1] += _delay(self._kernel, copy, begin)
            self._kernel = replace(self._kernel, end=self._kernels[-1])
        self._transfers.append(copy.end + _delay(copy, self._kernel, begin))
        self._copy = replace(copy, end=self._transfers[-1])
        return self._end()

    def kernel(self, stages: Stages, blockdep: int) -> tuple[int, Stalls]:
        """Begin a block operation; the cycle at which all that has begun has ended, and the MAC unit's stalls."""
        self.wait_for_kernels(self.config.kernels_at_work - 1)
        last = self._kernels[-1] if self._kernels else 0
        before = self._last
        hidden = before.end + min(blockdep, before.blocks) * before.body // before.blocks if blockdep else 0
        free = max(self._now, last - min(hidden, stages.begin + before.end))
        issued = max(self._now, self._decoder_free) if stages.decoder else self._now
        self._decoder_free = max(self._decoder_free, issued + stages.decoder)
        scaled = max(issued, self._scales_free, free - stages.latency) if stages.scales else issued
        self._scales_free = max(self._scales_free, scaled + stages.scales)
        kernel = _Running(free, max(last, stages.ended(issued, free, scaled)), stages.needs)
        self._kernels.append(kernel.end + _delay(kernel, self._copy, free))
        self._kernel = replace(kernel, end=self._kernels[-1])
        found = stalls(stages, self._mac_free, issued, free, scaled, self._kernel.end)
        if stages.mac:
            self._mac_free = self._kernel.end - stages.end
        if self._transfers and self._copy.end > free:
            self._transfers[-1] += _delay(self._copy, kernel, free)
            self._copy = replace(self._copy, end=self._transfers[-1])
        self._last = stages
        return self._end(), found

    def _wait(self, ends: list[int], at_most: int) -> list[int]:
        if len(ends) > at_most:
            self._now = max(self._now, ends[-at_most - 1])
        return [end for end in ends if end > self._now]

    def _end(self) -> int:
        return max(self._now, *self._transfers[-1:], *self._kernels[-1:])


def _delay(op: _Running, other: _Running, now: int) -> int:
    """The cycles by which `op` ends later because `other` uses the same ports from `now` on.

    Both spread what they need over the time that they take, so that `op` gets what `other` leaves.
    """
    together = min(op.end, other.end) - now
    if together <= 0:
        return 0
    delays = [0.0]
    for mine, theirs in zip(op.needs, other.needs, strict=False):
        own, others = (need / max(1, run.end - run.begin) for need, run in ((mine, op), (theirs, other)))
        delays.append(min(1.0, own, others, max(0.0, own + others - 1.0)) * together)
    return int(max(delays))
