"""Counts of executed blocks, from the plugin in QEMU (qemu/plugin/block-counts.c): its file and its options."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.counts import BlockCounts, Mark, Segment
from ethosu_sdk.errors import SimulationError

_MAGIC = b"EUBLOCK2"
_PART = np.dtype(
    [
        ("executions", "<u8"),
        *((name, "<u4") for name in ("start", "code_at", "code_bytes", "instructions", "number", "count")),
    ]
)
_SEGMENT = np.dtype([("mark", "<u4"), ("deltas", "<u4")])
_DELTA = np.dtype([("executions", "<u8"), ("part", "<u4"), ("reserved", "<u4")])
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("unplaced_instructions", "<u8"),
        *((name, "<u4") for name in ("parts_used", "code_used", "segments_used", "deltas_used")),
        *((name, "<u4") for name in ("marks_lost", "ended")),
        ("reserved", "<u8", 2),
    ]
)
_CODE = np.dtype("u1")
# What follows the header in `struct counts` of the plugin, in its order: the member with the number of those in use,
# the type and the most there can be.
_TABLES = (
    ("parts_used", _PART, 1 << 17),
    ("segments_used", _SEGMENT, 1 << 16),
    ("deltas_used", _DELTA, 1 << 22),
    ("code_used", _CODE, 1 << 22),
)
_SIZE_BYTES = _HEADER.itemsize + sum(kind.itemsize * most for _, kind, most in _TABLES)
Rows = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CountsFile:
    """The file that QEMU inherits and counts in."""

    descriptor: int
    plugin: Path
    marks: Sequence[Mark]

    def option(self) -> str:
        """The value of QEMU's `-plugin`, in which a comma within a value is written twice."""
        plugin = str(self.plugin).replace(",", ",,")
        marks = [f"{'last' if mark.ends else 'mark'}={mark.address:#x}" for mark in self.marks]
        return ",".join([plugin, f"fd={self.descriptor}", *marks])

    def read(self) -> BlockCounts:
        """What QEMU has counted. SimulationError when the plugin did not take part, or the file makes no sense."""
        (header,) = self._rows(0, _HEADER, 1)
        if header["magic"] != _MAGIC:
            raise SimulationError("QEMU's plugin that counts executed blocks wrote nothing")
        try:
            return _counts(header, list(self._tables(header)), self.marks)
        except (ValueError, IndexError) as error:
            raise SimulationError(f"the counts of executed blocks cannot be read: {error}") from error

    def _tables(self, header: np.void) -> Iterator[Rows]:
        at = _HEADER.itemsize
        for name, kind, most in _TABLES:
            used = int(header[name])
            if used > most:
                raise ValueError(f"{name} is {used:,}")
            yield self._rows(at, kind, used)
            at += kind.itemsize * most

    def _rows(self, at: int, kind: np.dtype[Any], count: int) -> Rows:
        return np.frombuffer(os.pread(self.descriptor, kind.itemsize * count, at), kind, count)


@contextlib.contextmanager
def open_file(plugin: Path, marks: Sequence[Mark]) -> Iterator[CountsFile]:
    """An empty file for counts. SimulationError when the host refuses the memory."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.memfd_create("ethosu-sdk-block-counts")
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, _SIZE_BYTES)  # sparse
        except OSError as error:
            raise SimulationError(f"cannot allocate memory for block counts: {error.strerror}") from error
        yield CountsFile(descriptor, plugin, marks)


def _counts(header: np.void, tables: Sequence[Rows], marks: Sequence[Mark]) -> BlockCounts:
    """A block of the result ends where its execution did: mostly with the last part of the plugin's block."""
    parts, segments, deltas, code = tables
    executions = _ended(parts, np.arange(len(parts)), parts["executions"].astype(np.int64))
    executions[np.isin(parts["start"], [mark.address for mark in marks])] = 0
    content = code.tobytes()
    return BlockCounts(
        tuple(_block(row, count, content) for row, count in zip(parts, executions, strict=True)),
        tuple(_segments(segments, deltas, marks, parts, executions)),
        int(header["unplaced_instructions"]),
        bool(header["marks_lost"]),
    )


def _ended(parts: Rows, places: Numbers, executions: Numbers) -> Numbers:
    """How often execution ended with each part, from how often those at `places` were executed.

    What was executed of a part did not end with the part before it.
    """
    found = np.zeros(len(parts), np.int64)
    found[places] = executions
    follows = parts["number"][places] > 0
    np.subtract.at(found, places[follows] - 1, executions[follows])
    return found


def _block(row: np.void, executions: int, code: bytes) -> Block:
    start, size_bytes = int(row["start"]), int(row["code_bytes"])
    return Block(
        start=start,
        end=start + size_bytes,
        instructions=int(row["instructions"]),
        code=code[int(row["code_at"]) : int(row["code_at"]) + size_bytes],
        executions=int(executions),
    )


def _segments(
    rows: Rows, deltas: Rows, marks: Sequence[Mark], parts: Rows, executions: Numbers
) -> Iterator[Segment]:
    """The segments; what none of them has belongs to the last one, which did not end."""
    if int(rows["deltas"].sum(dtype=np.int64)) != len(deltas):
        raise ValueError("the segments do not add up")
    is_work = executions > 0
    left = executions.copy()
    name, at = "", 0
    for row in rows:
        own = deltas[at : at + int(row["deltas"])]
        at += len(own)
        ended = _ended(parts, own["part"].astype(np.int64), own["executions"].astype(np.int64))
        places = np.flatnonzero(np.where(is_work, ended, 0))
        left[places] -= ended[places]
        yield Segment(name, places, ended[places])
        name = marks[int(row["mark"])].name
    places = np.flatnonzero(left)
    yield Segment(name, places, left[places])
