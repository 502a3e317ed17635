"""What a run's program says and no record has: steps compute it, readers show it. Every part may be unknown, with a
reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import MemoryRole, MemoryUse, Run

HARNESS: MemoryRole = "harness"


@dataclass(frozen=True)
class MemoryRow:
    """What one role (``MemoryUse`` has their names) takes of a memory of the run's board. `fits` says whether all
    that lies in the memory does; None, as `size_bytes`, where its size is not public."""

    memory: str
    role: MemoryRole
    used_bytes: int
    size_bytes: int | None
    fits: bool | None


def memory_of_board(run: Run) -> list[MemoryRow]:
    """What lies in the memories of the run's board, memory by memory. It is empty where these are not known. The
    board's name is ``run.memory.board``."""
    uses = run.memory.uses or ()
    taken: Counter[str] = Counter()
    for row in uses:
        taken[row.memory] += row.used_bytes
    return [
        MemoryRow(
            row.memory,
            row.role,
            row.used_bytes,
            row.size_bytes,
            None if row.size_bytes is None else taken[row.memory] <= row.size_bytes,
        )
        for name in taken
        for row in uses
        if row.memory == name
    ]


@dataclass(frozen=True)
class MemoryTotal:
    """What the program and its code take of a memory, without the harness; None: its size is not public."""

    name: str
    used_bytes: int
    size_bytes: int | None


def memory_totals(uses: Iterable[MemoryUse]) -> list[MemoryTotal]:
    """Each memory of a board with the sum of its `uses`."""
    found: dict[str, MemoryTotal] = {}
    for row in uses:
        before = found.get(row.memory)
        used = (before.used_bytes if before else 0) + (row.used_bytes if row.role != HARNESS else 0)
        found[row.memory] = MemoryTotal(row.memory, used, row.size_bytes)
    return list(found.values())


def board_of_run(run: Run) -> str:
    """The name of the run's board, which may be the simulated one."""
    if run.time is not None:
        return run.time.place
    return run.memory.board or run.board


@dataclass(frozen=True)
class MadeProfile:
    """The profile of a run in whose folder none lies; or the `reason` why none could be made."""

    record: Profile | None
    reason: str = ""


@dataclass(frozen=True)
class Mode:
    """A program in a memory mode: modelled cycles, SRAM by its present sizes, and whether its board has that."""

    name: str
    cycles: int
    sram_bytes: int
    fits: bool


@dataclass(frozen=True)
class ProgramFacts:
    """The memory modes that a program could be compiled for by name, or the reason why there are none. `channel_step`
    is how many output channels the MAC unit computes at once; None where that differs by operation."""

    modes: Mapping[str, Mode] = field(default_factory=dict)
    modes_reason: str = ""
    channel_step: int | None = None


@dataclass(frozen=True)
class Lifetime:
    """Bytes `start` to `end` of a region: written by operation `first` (at `offset` of the stream), read by `last` at
    the latest. Inputs have no writer, and an output's last reader is whoever takes it: both are named by `role`.
    Bytes of others may lie between rows of a feature map."""

    region: int
    start: int
    end: int
    first: int
    last: int
    offset: int | None
    role: str = ""


@dataclass(frozen=True)
class Lifetimes:
    """What lies where in the memory of `delegate`, and for how long: it is the one with the largest arena among
    `delegates`, and has `operations` operations."""

    delegate: int
    delegates: int
    arena_bytes: int
    rows: Sequence[Lifetime]
    operations: int

    def live_bytes(self, region: int) -> list[int]:
        """Bytes that are needed while each operation runs; what two lifetimes share counts once."""
        own = [row for row in self.rows if row.region == region]
        return [
            _union((row.start, row.end) for row in own if row.first <= at <= row.last)
            for at in range(self.operations)
        ]


@dataclass(frozen=True)
class Flow:
    """Which operations of a delegate read what others wrote, by their number in the stream. `edges` are pairs of
    writer and reader. `inputs` are the readers of each of its inputs, `outputs` the writers of each of its
    outputs."""

    edges: Sequence[tuple[int, int]]
    inputs: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[int]]


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run's folder. `profile` is None where the folder has one; `flows` are those of its delegates, by
    number. `no_room` says which memory of the program's board is too small, of a run that was on no board."""

    profile: MadeProfile | None = None
    program: ProgramFacts | None = None
    program_reason: str = ""
    lifetimes: Lifetimes | None = None
    lifetimes_reason: str = ""
    flows: Mapping[int, Flow] = field(default_factory=dict)
    no_room: str = ""


def _union(spans: Iterable[tuple[int, int]]) -> int:
    size, reached = 0, -1
    for start, end in sorted(spans):
        size += max(0, end - max(start, reached))
        reached = max(reached, end)
    return size
