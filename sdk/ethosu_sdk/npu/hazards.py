"""Hazards: operations of a command stream that start too early, and look-up tables that are missing.

They stay hidden when operations run one by one. The NPU copies by DMA while it computes, and begins an operation
before the one in front has ended. The stream keeps them apart with DMA_WAIT and KERNEL_WAIT, which wait until at
most so many transfers or block operations are at work, and with BLOCKDEP. What is assumed of the hardware is what
ethos-u-vela 5.1.0 relies on when it writes them (*_register_cs_generator.cpp):

- Only so many transfers and block operations are at work at the same time; a new one ends the oldest.
- Whatever a transfer shares with transfers and block operations at work needs a wait.
- Of block operations, only the one in front can be at work still. Block i of an operation's IFM is read when at
  most BLOCKDEP - i OFM blocks of the one in front are unfinished. Blocks pass through the NPU in order, so writing
  over what the operation in front reads or writes needs nothing.
- Operations that hand over through chaining buffers are one operation and count once.
- On parts with the smallest shared RAM, an operation without a look-up table spoils all tables; so do accumulators
  that reach where tables lie.

Branches are followed both ways; what the registers hold is taken in the order of the stream. Regions are taken to lie
apart from each other.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from ethosu_sdk.npu.accesses import (
    Accesses,
    Meeting,
    accesses,
    accumulators_end,
    first_reads,
    has_small_memory,
    last_writes,
    meeting,
    overwrites_tables,
)
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Kind, Operation, PoolMode
from ethosu_sdk.npu.program import steps
from ethosu_sdk.npu.stream.registers import Command

_Item = TypeVar("_Item")


class HazardKind(Enum):
    """What is wrong with a command stream."""

    DMA_WAIT = "missing NPU_OP_DMA_WAIT"
    KERNEL_WAIT = "missing NPU_OP_KERNEL_WAIT"
    BLOCKDEP = "BLOCKDEP too large"
    LUT_OVERWRITTEN = "look-up table overwritten while it is needed"
    LUT_NOT_LOADED = "look-up table not loaded"
    LUT_BEYOND_MEMORY = "look-up table loaded beyond the NPU's own memory"
    CHAIN_NOT_WRITTEN = "chaining buffer not written"


class Conflict(Enum):
    """What an operation does that another one in front of it forbids; the text is part of a sentence."""

    READ_AFTER_WRITE = "reads what {earlier} writes"
    WRITE_AFTER_READ = "writes what {earlier} reads"
    WRITE_AFTER_WRITE = "writes what {earlier} writes"
    UNUSED = "writes over what {earlier} loaded and nothing has used"
    OVERWRITTEN = "reads what {earlier} wrote over"
    NEVER_WRITTEN = "reads what nothing wrote"
    RESULT = "depends on the result of {earlier}"
    NO_MEMORY = "writes where there is none"
    OWN_BUFFERS = "has accumulators where it reads its table"


@dataclass(frozen=True)
class Hazard:
    """An operation that can go wrong on hardware, and why.

    `offset` is its byte offset in the command stream, `earlier` that of the operation it is in conflict with, if
    there is one. The conflict is about bytes `start` up to `end` of `region`, where None is the NPU's own memory,
    about the chaining buffer `chain`, or, with no bytes, about the result that a branch tests.
    """

    kind: HazardKind
    offset: int
    earlier: int | None
    conflict: Conflict
    region: int | None = None
    start: int = 0
    end: int = 0
    chain: int | None = None

    def describe(self) -> str:
        """The hazard in one sentence."""
        earlier = "" if self.earlier is None else f"the one at {self.earlier:#x}"
        conflict = self.conflict.value.format(earlier=earlier)
        text = f"{self.kind.value}: the operation at byte {self.offset:#x} of the command stream {conflict}"
        if self.chain is not None:
            return f"{text}, in chaining buffer {self.chain}"
        if self.start == self.end:
            return text
        place = "the NPU's own memory" if self.region is None else f"region {self.region}"
        return f"{text}, bytes {self.start:#x} to {self.end:#x} of {place}"


def check(stream: bytes, config: NpuConfig) -> tuple[Hazard, ...]:
    """The hazards of a command stream, in its order; none means that its waits and BLOCKDEP suffice.

    Raises CommandError and UnsupportedCommand as :func:`ethosu_sdk.npu.program.steps` does.
    """
    checker = _Checker(list(steps(stream, config)), config)
    checker.run()
    return tuple(
        sorted(checker.found, key=lambda hazard: (hazard.offset, hazard.earlier or 0, hazard.kind.value))
    )


def table_hazards(stream: bytes, config: NpuConfig) -> tuple[Hazard, ...]:
    """The hazards of a command stream that are about look-up tables, in its order.

    Only Ethos-U55-32 and -64, which keep tables and accumulators in one place, are looked at: for others, no such
    stream is known, and looking takes time. Raises what :func:`check` does.
    """
    if not has_small_memory(config):
        return ()
    kinds = (HazardKind.LUT_BEYOND_MEMORY, HazardKind.LUT_OVERWRITTEN, HazardKind.LUT_NOT_LOADED)
    return tuple(hazard for hazard in check(stream, config) if hazard.kind in kinds)


@dataclass(frozen=True)
class _Table:
    """Bytes of the NPU's own memory that the transfer at byte `loader` of the stream filled."""

    start: int
    end: int
    loader: int
    used: bool = False


@dataclass(frozen=True)
class _State:
    """What may be at work before a step, as numbers of steps, and what look-up tables and chaining buffers hold.

    `kernels` has a chain's operations together. `spoiler` is the byte offset of the operation that last wrote over
    all tables.
    """

    transfers: tuple[int, ...] = ()
    kernels: tuple[tuple[int, ...], ...] = ()
    tables: tuple[_Table, ...] = ()
    chains: frozenset[int] = frozenset()
    spoiler: int | None = None


class _Checker:
    """One command stream under examination; `found` has its hazards so far, without order."""

    def __init__(self, items: list[tuple[Command, Operation | None]], config: NpuConfig) -> None:
        self.found: set[Hazard] = set()
        self._items = items
        self._config = config
        self._accessed: dict[int, Accesses] = {}

    def run(self) -> None:
        """Go every way from the start to the end."""
        offsets = [command.offset for command, _ in self._items]
        pending = [(0, _State())]
        seen = set(pending)
        while pending:
            index, state = pending.pop()
            while index < len(self._items):
                command, op = self._items[index]
                state = self._after(index, command, op, state)
                index += 1
                if command.type.name == "OP_BRANCH":
                    arrival = bisect.bisect_left(offsets, command.field("branch_target")), state
                    if arrival not in seen:
                        seen.add(arrival)
                        pending.append(arrival)
                    if not command.field("branch_cond"):
                        break

    def _after(self, index: int, command: Command, op: Operation | None, state: _State) -> _State:
        if isinstance(op, DmaOp):
            return self._transfer(index, op, state)
        if isinstance(op, BlockOp):
            return self._block_operation(index, op, state)
        name = command.type.name
        if name == "OP_DMA_WAIT":
            return replace(state, transfers=_newest(state.transfers, command.field("k")))
        if name == "OP_KERNEL_WAIT":
            return replace(state, kernels=_newest(state.kernels, command.field("n")))
        if name == "OP_BRANCH" and command.field("branch_cond") and state.kernels:
            earlier = self._offset(state.kernels[-1][-1])
            self.found.add(Hazard(HazardKind.KERNEL_WAIT, command.offset, earlier, Conflict.RESULT))
        return state

    def _transfer(self, index: int, op: DmaOp, state: _State) -> _State:
        going_on = self._apart(index, [(other,) for other in state.transfers], HazardKind.DMA_WAIT)
        transfers = (*_newest(state.transfers, going_on), index)
        kernels = _newest(state.kernels, self._apart(index, state.kernels, HazardKind.KERNEL_WAIT))
        state = replace(state, transfers=_newest(transfers, self._config.transfers_at_work), kernels=kernels)
        for access in self._accesses(index):
            if access.writes and access.region is None:
                table = _Table(access.runs.base, access.runs.end, op.offset)
                if table.end > self._config.own_bytes:
                    kind, first = HazardKind.LUT_BEYOND_MEMORY, max(table.start, self._config.own_bytes)
                    self.found.add(
                        Hazard(kind, op.offset, None, Conflict.NO_MEMORY, start=first, end=table.end)
                    )
                kept = tuple(old for old in state.tables if old.end <= table.start or table.end <= old.start)
                self._lost(op.offset, set(state.tables) - set(kept))
                state = replace(state, tables=(*kept, table))
        return state

    def _apart(self, index: int, at_work: Sequence[Iterable[int]], kind: HazardKind) -> int:
        """How many of those at work, the newest, may go on during a step: it must meet with none.

        The newest of which that is not true is reported. From there on all is as if the missing wait were there.
        """
        for going_on, group in enumerate(reversed(at_work)):
            for other in group:
                found = meeting(self._accesses(other), self._accesses(index))
                if found is not None:
                    spoils = (
                        kind is HazardKind.KERNEL_WAIT and found.region is None and not found.earlier_writes
                    )
                    self._report(HazardKind.LUT_OVERWRITTEN if spoils else kind, index, other, found)
                    return going_on
        return len(at_work)

    def _block_operation(self, index: int, op: BlockOp, state: _State) -> _State:
        going_on = self._apart(index, [(other,) for other in state.transfers], HazardKind.DMA_WAIT)
        sources = frozenset(source.chain for source in _sources(op) if source.chain is not None)
        chains = state.chains if sources else frozenset()
        for number in sources - chains:
            kind = HazardKind.CHAIN_NOT_WRITTEN
            self.found.add(Hazard(kind, op.offset, None, Conflict.NEVER_WRITTEN, chain=number))
        kernels, group = (state.kernels[:-1], state.kernels[-1:]) if sources else (state.kernels, ())
        if kernels:
            self._after_the_one_in_front(index, op, kernels[-1])
        state = self._tables(op, state)
        return replace(
            state,
            transfers=_newest(state.transfers, going_on),
            kernels=_newest((*kernels, (*itertools.chain(*group), index)), self._config.kernels_at_work),
            chains=chains if op.ofm.chain is None else chains | {op.ofm.chain},
        )

    def _after_the_one_in_front(self, index: int, op: BlockOp, front: tuple[int, ...]) -> None:
        """BLOCKDEP must leave nothing unfinished that `op` reads, nor a look-up table in use that it spoils."""
        last = self._items[front[-1]][1]
        if not op.blockdep or not isinstance(last, BlockOp):
            return
        spoils = overwrites_tables(op, self._config)
        tables = [access for other in front for access in self._accesses(other) if access.region is None]
        if spoils and (
            found := meeting([table for table in tables if not table.writes], self._accesses(index))
        ):
            self._report(HazardKind.LUT_OVERWRITTEN, index, front[-1], found)
        reads = [access for access in self._accesses(index) if not access.writes]
        writes = [access for access in self._accesses(front[-1]) if access.region is not None]
        if meeting((access for access in writes if access.writes), reads) is None:
            return
        late = last_writes(last, op.blockdep)
        for i, early in enumerate(first_reads(op, self._config, op.blockdep)):
            for unfinished in late[: op.blockdep - i]:
                if found := meeting(unfinished, early):
                    self._report(HazardKind.BLOCKDEP, index, front[-1], found)
                    return

    def _tables(self, op: BlockOp, state: _State) -> _State:
        """The look-up table that `op` uses must be there; on small parts, no table is left by one that uses none."""
        if overwrites_tables(op, self._config):
            self._lost(op.offset, state.tables)
            return replace(state, tables=(), spoiler=op.offset)
        if op.output.lut is None:
            return state
        start, end = op.output.lut.address, op.output.lut.end
        buffers_end = accumulators_end(op, self._config)
        if start < buffers_end:
            kind, last = HazardKind.LUT_OVERWRITTEN, min(end, buffers_end)
            self.found.add(Hazard(kind, op.offset, None, Conflict.OWN_BUFFERS, start=start, end=last))
        reached = start
        for table in sorted(state.tables, key=lambda table: table.start):
            if table.start <= reached:
                reached = max(reached, table.end)
        if reached < end:
            conflict = Conflict.NEVER_WRITTEN if state.spoiler is None else Conflict.OVERWRITTEN
            kind = HazardKind.LUT_NOT_LOADED
            self.found.add(Hazard(kind, op.offset, state.spoiler, conflict, None, reached, end))
        tables = tuple(
            replace(table, used=True) if table.start < end and start < table.end else table
            for table in state.tables
        )
        return replace(state, tables=tables)

    def _lost(self, offset: int, tables: Iterable[_Table]) -> None:
        for table in tables:
            if not table.used:
                kind, loader = HazardKind.LUT_OVERWRITTEN, table.loader
                self.found.add(Hazard(kind, offset, loader, Conflict.UNUSED, None, table.start, table.end))

    def _report(self, kind: HazardKind, index: int, other: int, found: Meeting) -> None:
        if not found.later_writes:
            conflict = Conflict.READ_AFTER_WRITE
        else:
            conflict = Conflict.WRITE_AFTER_WRITE if found.earlier_writes else Conflict.WRITE_AFTER_READ
        offset, earlier = self._offset(index), self._offset(other)
        self.found.add(Hazard(kind, offset, earlier, conflict, found.region, *found.span))

    def _offset(self, index: int) -> int:
        return self._items[index][0].offset

    def _accesses(self, index: int) -> Accesses:
        if index not in self._accessed:
            op = self._items[index][1]
            self._accessed[index] = () if op is None else accesses(op, self._config)
        return self._accessed[index]


def _newest(items: tuple[_Item, ...], count: int) -> tuple[_Item, ...]:
    return items[-count:] if count else ()


def _sources(op: BlockOp) -> Iterable[FeatureMap]:
    """The feature maps that the operation reads, in memory or not."""
    if op.kind is Kind.ELEMENTWISE:
        return [operand.feature_map for operand in op.operands if operand.scalar is None]
    found = [] if op.mode is PoolMode.NONE else [op.ifm]
    return found if op.ifm2 is None else [*found, op.ifm2]
