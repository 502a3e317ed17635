"""Counts of executed blocks, from the plugin in QEMU (qemu/plugin/block-counts.c): its file and its options."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ethosu_sdk.cpu_cycles.blocks import Block
from ethosu_sdk.cpu_cycles.counts import BlockCounts, Mark, Segment
from ethosu_sdk.errors import SimulationError

_MAGIC = b"EUBLOCK2"
_PARTS, _SEGMENTS, _DELTAS, _CODE_BYTES = 1 << 17, 1 << 16, 1 << 22, 1 << 22
_PART = np.dtype(
    [
        ("executions", "<u8"),
        *((name, "<u4") for name in ("start", "code_at", "code_bytes", "instructions", "number", "count")),
    ]
)
_SEGMENT = np.dtype([("mark", "<u4"), ("deltas", "<u4")])
_DELTA = np.dtype([("executions", "<u8"), ("part", "<u4"), ("reserved", "<u4")])
# `struct counts` of the plugin.
_COUNTS = np.dtype(
    [
        ("magic", "S8"),
        ("unplaced_instructions", "<u8"),
        *((name, "<u4") for name in ("parts_used", "code_used", "segments_used", "deltas_used")),
        *((name, "<u4") for name in ("marks_lost", "ended")),
        ("reserved", "<u8", 2),
        ("parts", _PART, _PARTS),
        ("segments", _SEGMENT, _SEGMENTS),
        ("deltas", _DELTA, _DELTAS),
        ("code", "u1", _CODE_BYTES),
    ]
)
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
        with mmap.mmap(self.descriptor, _COUNTS.itemsize, access=mmap.ACCESS_READ) as mapping:
            found = np.frombuffer(mapping, _COUNTS, count=1)[0]
            try:
                return _read(found, self.marks)
            except (ValueError, IndexError) as error:
                raise SimulationError(f"the counts of executed blocks cannot be read: {error}") from error
            finally:
                del found


@contextlib.contextmanager
def open_file(plugin: Path, marks: Sequence[Mark]) -> Iterator[CountsFile]:
    """An empty file for counts. SimulationError when the host refuses the memory."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.memfd_create("ethosu-sdk-block-counts")
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, _COUNTS.itemsize)  # sparse
        except OSError as error:
            raise SimulationError(f"cannot allocate memory for block counts: {error.strerror}") from error
        yield CountsFile(descriptor, plugin, marks)


def _read(found: np.void, marks: Sequence[Mark]) -> BlockCounts:
    """A block of the result ends where its execution did: mostly with the last part of the plugin's block."""
    if bytes(found["magic"]) != _MAGIC:
        raise ValueError("QEMU's plugin wrote nothing")
    parts = found["parts"][: int(found["parts_used"])].copy()
    is_mark = np.isin(parts["start"], [mark.address for mark in marks])
    every = np.arange(len(parts))
    executions = _ended(parts, every, parts["executions"].astype(np.int64))
    executions[is_mark] = 0
    code = found["code"][: int(found["code_used"])].tobytes()
    blocks = tuple(_block(row, count, code) for row, count in zip(parts, executions, strict=True))
    segments = tuple(_segments(found, marks, parts, executions))
    return BlockCounts(blocks, segments, int(found["unplaced_instructions"]), bool(found["marks_lost"]))


def _ended(parts: npt.NDArray[np.void], places: Numbers, executions: Numbers) -> Numbers:
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
    found: np.void, marks: Sequence[Mark], parts: npt.NDArray[np.void], executions: Numbers
) -> Iterator[Segment]:
    """The segments; what none of them has belongs to the last one, which did not end."""
    rows = found["segments"][: int(found["segments_used"])]
    deltas = found["deltas"][: int(found["deltas_used"])]
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
