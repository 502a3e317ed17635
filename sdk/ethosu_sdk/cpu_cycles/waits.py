"""Cycles that a core waits for memory, from figures that the caller knows of a board.

The model is small. Each line of a buffer is fetched or written once for each time that the buffer passes through the
cache, and the core waits for all of the transfer. Code is fetched once in an inference. Prefetching, write buffers
and conflicts are left out. Tightly coupled memory has no waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LINE_BYTES = 32
"""Of the caches of Cortex-M55 and Cortex-M85 (Technical Reference Manuals, L1 instruction and data cache)."""


@dataclass(frozen=True)
class LineWaits:
    """Cycles for which the core waits for a line of code, of constants, and of the arena; 0 is what tightly coupled
    memory has."""

    code: float = 0.0
    constants: float = 0.0
    arena: float = 0.0


@dataclass(frozen=True)
class Moved:
    """Bytes that a piece of work, such as a layer, moves: code that runs for the first time, constants that it reads,
    and what it reads from and writes to the arena."""

    code_bytes: int = 0
    constant_bytes: int = 0
    arena_bytes: int = 0


def wait_cycles(work: Iterable[Moved], waits: LineWaits) -> float:
    """Cycles that the core waits for what `work` moves."""
    return sum(
        _lines(row.code_bytes) * waits.code
        + _lines(row.constant_bytes) * waits.constants
        + _lines(row.arena_bytes) * waits.arena
        for row in work
    )


def _lines(size_bytes: int) -> int:
    return -(-size_bytes // LINE_BYTES)
