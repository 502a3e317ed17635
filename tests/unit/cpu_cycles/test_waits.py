"""Waits for memory, against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.waits import TIGHTLY_COUPLED, Memory, MemorySystem, Work, code_waits, data_waits

SLOW = Memory(latency_cycles=10.0, bytes_per_cycle=4.0)
WORK = (Work(constant_bytes=100, arena_bytes=64), Work(arena_bytes=32))
BLOCKS = (
    Block(0x1000, 0x1040, 16, bytes(64), 7),
    Block(0x1020, 0x1040, 8, bytes(32), 3),
    Block(0, 32, 8, bytes(32), 0),
)


def test_tightly_coupled_memory_never_waits() -> None:
    assert data_waits(WORK, TIGHTLY_COUPLED) == 0
    assert code_waits(BLOCKS, TIGHTLY_COUPLED) == 0


def test_each_line_is_moved_once() -> None:
    system = MemorySystem(constants=SLOW, arena=SLOW, has_data_cache=True)
    assert data_waits(WORK, system) == (4 + 2 + 1) * (10 + 32 / 4)
    assert data_waits(WORK, replace(system, constants=None)) == (2 + 1) * 18


def test_without_a_cache_every_access_waits() -> None:
    assert data_waits(WORK, MemorySystem(arena=SLOW)) == (64 + 32) / 8 * (10 + 8 / 4)


@pytest.mark.parametrize(
    ("cache_bytes", "expected"),
    [
        (64, 2 * 18),  # both lines stay
        (32, (7 * 2 + 3) * 18),  # they do not
        (0, (7 * 8 + 3 * 4) * 12),  # a fetch of 64 bits each
    ],
)
def test_code_is_fetched_as_often_as_the_cache_forgets_it(cache_bytes: int, expected: float) -> None:
    assert code_waits(BLOCKS, MemorySystem(code=SLOW, instruction_cache_bytes=cache_bytes)) == expected
