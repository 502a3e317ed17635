"""Cycles that a core waits for memory, from figures that the caller knows of a board.

The model is small. Each line of a buffer is fetched or written once for each time that the buffer passes through the
cache, and the core waits for all of the transfer. Prefetching, write buffers and conflicts are left out. Tightly
coupled memory has no waits and is what a :class:`MemorySystem` has by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ethosu_sdk.cpu_cycles.blocks import Block

_FETCH_BYTES = 8  # of one instruction fetch: both cores have 64-bit buses


@dataclass(frozen=True)
class Memory:
    """A memory as the core sees it: cycles until the first data, then bytes a cycle."""

    latency_cycles: float
    bytes_per_cycle: float

    def transfer_cycles(self, size_bytes: int) -> float:
        """Cycles of one burst of `size_bytes`."""
        return self.latency_cycles + size_bytes / self.bytes_per_cycle


@dataclass(frozen=True)
class MemorySystem:
    """Where code, constants and the arena lie; None is tightly coupled memory.

    `instruction_cache_bytes` is 0 without an instruction cache.
    """

    code: Memory | None = None
    constants: Memory | None = None
    arena: Memory | None = None
    line_bytes: int = 32
    instruction_cache_bytes: int = 0
    has_data_cache: bool = False


TIGHTLY_COUPLED = MemorySystem()


@dataclass(frozen=True)
class Work:
    """Bytes that a piece of work, such as a layer, reads from its constants, and moves from and to the arena."""

    constant_bytes: int = 0
    arena_bytes: int = 0


def data_waits(work: Iterable[Work], system: MemorySystem) -> float:
    """Cycles that the core waits for data. Without a data cache, `work` is what loads and stores move."""
    size = system.line_bytes if system.has_data_cache else _FETCH_BYTES
    return sum(
        _waits(row.constant_bytes, system.constants, size) + _waits(row.arena_bytes, system.arena, size)
        for row in work
    )


def code_waits(blocks: Sequence[Block], system: MemorySystem) -> float:
    """Cycles that the core waits for instructions.

    Code that fits into the instruction cache is fetched once; else, and without one, at each execution.
    """
    lines = {
        line
        for block in blocks
        if block.executions
        for line in range(block.start // system.line_bytes, -(-block.end // system.line_bytes))
    }
    if len(lines) * system.line_bytes <= system.instruction_cache_bytes:
        return _waits(len(lines) * system.line_bytes, system.code, system.line_bytes)
    size = system.line_bytes if system.instruction_cache_bytes else _FETCH_BYTES
    return sum(block.executions * _waits(block.end - block.start, system.code, size) for block in blocks)


def _waits(moved_bytes: int, memory: Memory | None, transfer_bytes: int) -> float:
    if memory is None:
        return 0.0
    return -(-moved_bytes // transfer_bytes) * memory.transfer_cycles(transfer_bytes)
