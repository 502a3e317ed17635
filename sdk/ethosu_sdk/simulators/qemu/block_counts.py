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

_MAGIC = b"EUBLOCK1"
_BLOCKS, _SEGMENTS, _DELTAS, _CODE_BYTES = 1 << 16, 1 << 18, 1 << 22, 1 << 22
_BLOCK = np.dtype(
    [
        ("executions", "<u8"),
        ("start", "<u4"),
        ("code_at", "<u4"),
        ("code_bytes", "<u4"),
        ("instructions", "<u4"),
    ]
)
_SEGMENT = np.dtype([("mark", "<u4"), ("deltas", "<u4")])
_DELTA = np.dtype([("executions", "<u8"), ("block", "<u4"), ("reserved", "<u4")])
# `struct counts` of the plugin.
_COUNTS = np.dtype(
    [
        ("magic", "S8"),
        ("unplaced_instructions", "<u8"),
        *((name, "<u4") for name in ("blocks_used", "code_used", "segments_used", "deltas_used")),
        *((name, "<u4") for name in ("marks_lost", "ended")),
        ("reserved", "<u8", 2),
        ("blocks", _BLOCK, _BLOCKS),
        ("segments", _SEGMENT, _SEGMENTS),
        ("deltas", _DELTA, _DELTAS),
        ("code", "u1", _CODE_BYTES),
    ]
)


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
    if bytes(found["magic"]) != _MAGIC:
        raise ValueError("QEMU's plugin wrote nothing")
    rows = found["blocks"][: int(found["blocks_used"])].copy()
    executions = rows["executions"].astype(np.int64)
    executions[np.isin(rows["start"], [mark.address for mark in marks])] = 0
    code = found["code"][: int(found["code_used"])].tobytes()
    blocks = tuple(
        Block(
            start=int(row["start"]),
            end=int(row["start"]) + int(row["code_bytes"]),
            instructions=int(row["instructions"]),
            code=code[row["code_at"] : row["code_at"] + row["code_bytes"]],
            executions=int(count),
        )
        for row, count in zip(rows, executions, strict=True)
    )
    return BlockCounts(
        blocks,
        tuple(_segments(found, marks, executions)),
        int(found["unplaced_instructions"]),
        bool(found["marks_lost"]),
    )


def _segments(found: np.void, marks: Sequence[Mark], executions: npt.NDArray[np.int64]) -> Iterator[Segment]:
    """The segments; what none of them has belongs to the last one, which did not end."""
    rows = found["segments"][: int(found["segments_used"])]
    deltas = found["deltas"][: int(found["deltas_used"])]
    if int(rows["deltas"].sum(dtype=np.int64)) != len(deltas):
        raise ValueError("the segments do not add up")
    counted = executions > 0
    left = executions.copy()
    name, at = "", 0
    for row in rows:
        part = deltas[at : at + int(row["deltas"])]
        at += len(part)
        places = part["block"].astype(np.int64)
        real = counted[places]
        yield _segment(name, places[real], part["executions"][real].astype(np.int64), left)
        name = marks[int(row["mark"])].name
    places = np.flatnonzero(left)
    yield Segment(name, places, left[places])


def _segment(
    name: str, places: npt.NDArray[np.int64], executions: npt.NDArray[np.int64], left: npt.NDArray[np.int64]
) -> Segment:
    left[places] -= executions
    return Segment(name, places, executions)
