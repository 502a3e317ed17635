"""What the host makes of the plugin's file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.cpu_cycles.counts import BlockCounts, Mark
from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu.counting import block_counts

MARKS = (Mark("begin", 0x1000_0020), Mark("end", 0x1000_0030, ends=True))
PARTS_AT = 56  # of `struct counts`: magic, a count, six words, two reserved
SEGMENTS_AT = PARTS_AT + 32 * (1 << 17)
DELTAS_AT = SEGMENTS_AT + 8 * (1 << 16)
CODE_AT = DELTAS_AT + 16 * (1 << 22)


def words(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def part(executions: int, start: int, size: int, instructions: int, number: int, count: int) -> bytes:
    return np.uint64(executions).tobytes() + words(start, 0, size, instructions, number, count)


def read(header: bytes, parts: bytes = b"", segments: bytes = b"", deltas: bytes = b"") -> BlockCounts:
    with block_counts.open_file(Path("/plugin.so"), MARKS) as file:
        for at, data in ((0, header), (PARTS_AT, parts), (SEGMENTS_AT, segments), (DELTAS_AT, deltas)):
            os.pwrite(file.descriptor, data, at)
        os.pwrite(file.descriptor, bytes(range(16)), CODE_AT)
        return file.read()


def header(parts: int, segments: int = 0, deltas: int = 0, magic: bytes = b"EUBLOCK2") -> bytes:
    return magic + np.uint64(7).tobytes() + words(parts, 16, segments, deltas, 0, 0)


def test_a_block_that_was_left_in_its_middle_is_two() -> None:
    """Of ten executions four ended with the first part, at an access to a device; the mark's own block is no work."""
    rows = (
        part(10, 0x1000_0000, 4, 2, 0, 2)
        + part(6, 0x1000_0000, 10, 4, 1, 2)
        + part(3, MARKS[0].address, 2, 1, 0, 1)
    )
    delta = np.uint64(5).tobytes() + words(0, 0) + np.uint64(2).tobytes() + words(1, 0)
    found = read(header(3, 1, 2), rows, words(0, 2), delta)
    assert [(row.start, row.end, row.instructions, row.executions) for row in found.blocks] == [
        (0x1000_0000, 0x1000_0004, 2, 4),
        (0x1000_0000, 0x1000_000A, 4, 6),
        (MARKS[0].address, MARKS[0].address + 2, 1, 0),
    ]
    assert found.blocks[1].code == bytes(range(10))
    assert [row.name for row in found.segments] == ["", "begin"]
    assert [
        dict(zip(row.blocks.tolist(), row.executions.tolist(), strict=True)) for row in found.segments
    ] == [
        {0: 3, 1: 2},
        {0: 1, 1: 4},
    ]
    assert found.unplaced_instructions == 7


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ((header(0, magic=b"\0" * 8),), "wrote nothing"),
        ((header(1, 1, 2), part(1, 0, 2, 1, 0, 1), words(0, 9)), "the segments do not add up"),
        ((header(1, 1, 0), part(1, 0, 2, 1, 0, 1), words(77, 0)), "index"),
        (
            (header(1, 1, 1), part(1, 0, 2, 1, 0, 1), words(0, 1), np.uint64(1).tobytes() + words(99, 0)),
            "index",
        ),
    ],
)
def test_a_file_without_sense_is_refused(content: tuple[bytes, ...], why: str) -> None:
    with pytest.raises(SimulationError, match=why):
        read(*content)


def test_qemu_gets_the_file_and_the_marks() -> None:
    file = block_counts.CountsFile(9, Path("/a,b/block-counts.so"), MARKS)
    assert file.option() == "/a,,b/block-counts.so,fd=9,mark=0x10000020,last=0x10000030"
