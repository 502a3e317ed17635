"""DMA: bytes from one place to another, in rows and planes, with or without an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.arrays import Int32, Int64
from ethosu_sdk.npu.errors import BusError, Channel
from ethosu_sdk.npu.memory import Memory
from ethosu_sdk.npu.operation import DmaIndex, DmaOp

_PART_BYTES = 1 << 20  # that are moved at a time: each takes the eight bytes of an address


@dataclass(frozen=True)
class _Side:
    """The rows that a transfer reads or writes. `numbers` (planes, rows) are those of an index; None counts them."""

    region: int | None
    address: int
    strides: tuple[int, int]
    numbers: Int32 | None

    def starts(self, plane: int, rows: slice) -> Int64:
        """The addresses of some rows of a plane."""
        if self.numbers is None:
            chosen = np.arange(rows.start, rows.stop, dtype=np.int64)
        else:
            chosen = self.numbers[plane, rows].astype(np.int64)
        return np.asarray(self.address + plane * self.strides[0] + chosen * self.strides[1])

    def span(self, counts: tuple[int, int], length: int) -> tuple[int, int]:
        """The address of the first byte of all rows, of `length` bytes each, and the one behind the last byte."""
        planes, rows = counts
        base = self.address + np.arange(planes, dtype=np.int64) * self.strides[0]
        if self.numbers is None:
            ends = [base, base + (rows - 1) * self.strides[1]]
        else:
            limits = self.numbers.min(axis=1), self.numbers.max(axis=1)
            ends = [base + row.astype(np.int64) * self.strides[1] for row in limits]
        return int(np.min(ends)), int(np.max(ends)) + length


def copy(op: DmaOp, memory: Memory) -> None:
    """Carry out `op`: everything is checked and read before anything is written. Raises BusError."""
    planes, rows = op.counts
    total = planes * rows * op.length
    if not total:
        return
    memory.check_size(op.target_region, total, Channel.COPY_WRITE)
    numbers = None if op.index is None else _indices(op.index, op.counts, memory)
    scatters = op.index is not None and op.index.scatters
    source = _Side(op.source_region, op.source, op.source_strides, None if scatters else numbers)
    target = _Side(op.target_region, op.target, op.target_strides, numbers if scatters else None)
    data = np.empty((planes * rows, op.length), np.uint8)
    store = memory.whole(source.region, source.span(op.counts, op.length), total, Channel.COPY_READ)
    for place, starts, part in _parts(op, source):
        data[place, part] = store[_places(starts, part)]
    store = memory.whole(target.region, target.span(op.counts, op.length), total, Channel.COPY_WRITE)
    for place, starts, part in _parts(op, target):
        store[_places(starts, part)] = data[place, part]


def _parts(op: DmaOp, side: _Side) -> Iterator[tuple[slice, Int64, slice]]:
    """What is moved at a time: which of all rows, their addresses, and which bytes of each."""
    planes, rows = op.counts
    high = max(1, _PART_BYTES // op.length)
    for plane in range(planes):
        for start in range(0, rows, high):
            stop = min(start + high, rows)
            starts = side.starts(plane, slice(start, stop))
            for first in range(0, op.length, _PART_BYTES):
                deadline.check()
                last = min(first + _PART_BYTES, op.length)
                yield slice(plane * rows + start, plane * rows + stop), starts, slice(first, last)


def _places(starts: Int64, part: slice) -> slice | Int64:
    """Bytes `part` of the rows at `starts`, to index memory with."""
    if len(starts) == 1:
        start = int(starts[0])
        return slice(start + part.start, start + part.stop)
    return np.asarray(starts[:, None] + np.arange(part.start, part.stop))


def _indices(index: DmaIndex, counts: tuple[int, int], memory: Memory) -> Int32:
    planes, rows = counts
    memory.check_size(index.region, 4 * planes * rows, Channel.COPY_READ)
    numbers = np.empty((planes, rows), np.int32)
    for plane in range(planes):
        deadline.check()
        address = index.address + plane * index.plane_stride
        numbers[plane] = memory.span(index.region, address, 4 * rows, Channel.COPY_READ).view("<i4")
    if numbers.min() < 0 or numbers.max() > index.maximum:
        raise BusError(
            f"a DMA index is outside of 0 to {index.maximum}: {numbers.min()} to {numbers.max()}",
            index.region,
            Channel.COPY_READ,
        )
    return numbers
