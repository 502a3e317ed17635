"""Waits for memory, against arithmetic by hand."""

from __future__ import annotations

import numpy as np

from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.counts import BlockCounts, Segment
from ethosu_sdk.cpu_cycles.timeline import spans
from ethosu_sdk.cpu_cycles.waits import LineWaits, Moved, wait_cycles

WORK = (Moved(constant_bytes=100, arena_bytes=64), Moved(code_bytes=33, arena_bytes=32))


def test_tightly_coupled_memory_never_waits() -> None:
    assert wait_cycles(WORK, LineWaits()) == 0


def test_each_line_is_moved_once() -> None:
    assert wait_cycles(WORK, LineWaits(code=7, constants=18, arena=5)) == 2 * 7 + 4 * 18 + (2 + 1) * 5
    assert wait_cycles(WORK, LineWaits(arena=5)) == 3 * 5


def test_code_is_fetched_where_it_first_runs_in_an_inference() -> None:
    """Blocks of 64, 32 and 4 bytes; the second lies in the first, the third in two lines. What ran before the
    inference, in the clock's interrupt, or while the firmware reports, does not count."""
    places = ((0x1000, 64), (0x1020, 32), (0x203E, 4))
    blocks = tuple(Block(start, start + size, size // 2, bytes(size), 3) for start, size in places)
    ran = [("", [0]), ("operator", [1]), ("clock", [0, 2]), ("back", []), ("kernel", [0, 2]), ("report", [2])]
    ran += [("runtime", [0]), ("end", [1])]
    segments = tuple(
        Segment(name, np.array(places, np.int64), np.ones(len(places), np.int64)) for name, places in ran
    )
    found = spans(BlockCounts(blocks, segments), [1.0] * len(blocks))
    assert [row.code_bytes for row in found] == [0, 32, 0, 0, 32 + 64, 0, 0, 0]
