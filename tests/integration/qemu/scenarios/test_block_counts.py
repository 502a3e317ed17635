"""Counts of executed blocks, from the plugin in both QEMUs, against programs whose instructions are known."""

from __future__ import annotations

import dataclasses

import pytest

from ethosu_sdk.base.errors import ToolError
from ethosu_sdk.simulate.block_counts import Block, BlockCounts, Mark
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from tests.integration.qemu.conftest import RequestFor
from tests.integration.qemu.firmware.build import Scenario

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

BACK = b"\xfd\xd1"  # bne to the instruction before it (Armv8-M ARM, encoding T1)
MOST_SEGMENTS = 1 << 16  # of the plugin


def counted(
    request_for: RequestFor, simulator: QemuSimulator, rounds: int, marks: tuple[Mark, ...] = ()
) -> BlockCounts:
    request = request_for(Scenario.COUNT_CYCLES, rounds)
    found = simulator.run(dataclasses.replace(request, marks=marks, count_instructions=True)).block_counts
    assert found is not None
    return found


def turn(found: BlockCounts) -> Block:
    """The block that is a turn of the loop."""
    (loop,) = (row for row in found.blocks if row.code.endswith(BACK) and row.instructions == 2)
    return loop


def test_a_loop_is_counted_exactly(request_for: RequestFor, simulator: QemuSimulator) -> None:
    """And the code of the blocks is that of the ELF."""
    assert simulator.no_block_counts() == ""
    content = request_for(Scenario.COUNT_CYCLES).elf.read_bytes()
    for rounds in (2, 1000, 100_000):
        found = counted(request_for, simulator, rounds)
        turns = sum(row.executions for row in found.blocks if row.code.endswith(BACK))
        assert turns == rounds
        assert found.unplaced_instructions == 0
        assert len(found.blocks) > 10
        assert all(len(row.code) == row.end - row.start and row.code in content for row in found.blocks)


def test_segments_hold_everything_once(request_for: RequestFor, simulator: QemuSimulator) -> None:
    rounds = 1000
    loop = turn(counted(request_for, simulator, rounds))
    found = counted(request_for, simulator, rounds, (Mark("turn", loop.start),))
    assert [row.name for row in found.segments] == ["", *["turn"] * rounds]
    sums = [0] * len(found.blocks)
    for segment in found.segments:
        for place, executions in zip(segment.blocks, segment.executions, strict=True):
            sums[place] += executions
    assert sums == [row.executions for row in found.blocks]
    assert not found.marks_lost
    # A mark is no work: its own block is in no figure.
    assert {row.executions for row in found.blocks if row.start == loop.start} == {0}
    ended = counted(request_for, simulator, rounds, (Mark("turn", loop.start, ends=True),))
    assert [row.name for row in ended.segments] == ["", "turn"]


def test_more_marks_than_there_is_room_for(request_for: RequestFor, simulator: QemuSimulator) -> None:
    plain = counted(request_for, simulator, 10)
    loop = turn(plain)
    found = counted(request_for, simulator, MOST_SEGMENTS + 1000, (Mark("turn", loop.start),))
    assert found.marks_lost
    assert len(found.segments) == MOST_SEGMENTS + 1


def test_without_the_plugin_nothing_is_started(
    request_for: RequestFor, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETHOSU_SDK_QEMU_PLUGIN", "/nowhere/block-counts.so")
    from ethosu_sdk.base import tools

    tools.probe.cache_clear()
    try:
        assert "is missing: scripts/setup" in simulator.no_block_counts()
        with pytest.raises(ToolError, match=r"block-counts\.so"):
            counted(request_for, simulator, 1)
    finally:
        tools.probe.cache_clear()
