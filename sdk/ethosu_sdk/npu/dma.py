"""DMA: bytes from one place to another, in rows and planes, with or without an index."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.errors import BusError, Channel
from ethosu_sdk.npu.memory import Memory
from ethosu_sdk.npu.operation import DmaIndex, DmaOp

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


def copy(op: DmaOp, memory: Memory) -> None:
    """Carry out `op`: everything is read before anything is written. Raises BusError."""
    planes, rows = op.counts
    if not planes * rows * op.length:
        return
    memory.check_size(op.target_region, planes * rows * op.length, Channel.COPY_WRITE)
    starts = _starts(op.source, op.counts, op.source_strides)
    targets = _starts(op.target, op.counts, op.target_strides)
    if op.index is not None:
        numbers = _indices(op.index, op.counts, memory)
        if op.index.scatters:
            targets = _starts(op.target, (planes, 1), op.target_strides) + numbers * op.target_strides[1]
        else:
            starts = _starts(op.source, (planes, 1), op.source_strides) + numbers * op.source_strides[1]
    data = _rows(op.source_region, starts, op.length, memory, Channel.COPY_READ).copy()
    _write_rows(op.target_region, targets, data, memory)


def _starts(address: int, counts: tuple[int, int], strides: tuple[int, int]) -> Offsets:
    """The address of every row: (planes, rows)."""
    planes, rows = (np.arange(count, dtype=np.int64) for count in counts)
    return np.asarray(address + planes[:, None] * strides[0] + rows * strides[1])


def _indices(index: DmaIndex, counts: tuple[int, int], memory: Memory) -> Offsets:
    planes, rows = counts
    memory.check_size(index.region, 4 * planes * rows, Channel.COPY_READ)
    numbers: Offsets = np.stack(
        [
            memory.span(
                index.region, index.address + plane * index.plane_stride, 4 * rows, Channel.COPY_READ
            ).view("<i4")
            for plane in range(planes)
        ]
    ).astype(np.int64)
    if numbers.min() < 0 or numbers.max() > index.maximum:
        raise BusError(
            f"a DMA index is outside of 0 to {index.maximum}: {numbers.min()} to {numbers.max()}",
            index.region,
            Channel.COPY_READ,
        )
    return numbers


def _rows(region: int | None, starts: Offsets, length: int, memory: Memory, channel: Channel) -> Any:
    """A view or copy of (planes, rows, length)."""
    if starts.size == 1:
        return memory.span(region, int(starts[0, 0]), length, channel).reshape(1, 1, length)
    return memory.gather(region, starts, length, channel)


def _write_rows(region: int | None, starts: Offsets, data: Bytes, memory: Memory) -> None:
    length = data.shape[2]
    if starts.size == 1:
        memory.span(region, int(starts[0, 0]), length, Channel.COPY_WRITE)[:] = data[0, 0]
    else:
        memory.scatter(region, starts, data, Channel.COPY_WRITE)
