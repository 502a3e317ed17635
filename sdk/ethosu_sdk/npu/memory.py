"""The NPU's view of memory, with every access checked before it happens; DMA; observers of what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ethosu_sdk.npu import errors
from ethosu_sdk.npu.config import BRICK, tiles
from ethosu_sdk.npu.errors import BusError, Channel
from ethosu_sdk.npu.operation import Array, BlockOp, Bytes, DmaIndex, DmaOp, FeatureMap, Int32, Int64, Shape


@dataclass(frozen=True)
class Written:
    """The OFM of an operation that has just been stored.

    `values` has the shape (1, height, width, depth) as it is in memory, behind the output stage; it is the executor's
    own array, to be read or copied and not to be changed.
    """

    operation: BlockOp
    values: Array

    @property
    def feature_map(self) -> FeatureMap:
        """Where it lies, and how."""
        return self.operation.ofm

    @property
    def offset(self) -> int:
        """The operation's byte offset in the command stream."""
        return self.operation.offset

    @property
    def shape(self) -> tuple[int, ...]:
        """NHWC. The NPU knows no batches: they are rows, or operations of their own."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self.values.dtype

    @property
    def zero_point(self) -> int:
        """The stream's. Its scale is not in the stream, which holds quotients of scales alone."""
        return self.operation.ofm.zero_point

    @property
    def address(self) -> tuple[int, int] | None:
        """(region, byte address in it) of the first element; None in a chaining buffer of Ethos-U85."""
        ofm = self.operation.ofm
        return None if ofm.chain is not None else (ofm.region, ofm.bases[0])


Observer = Callable[[Written], None]

_WRITING = frozenset({Channel.OFM, Channel.COPY_WRITE})
_MOST_MOVED_BYTES = 1 << 28  # in one transfer: all the memory of a board
_MOST_ELEMENTS = 1 << 26  # far beyond any model: a stride of zero must not exhaust the host
_PART_BYTES = 1 << 20  # of a transfer that are moved at a time: each takes the eight bytes of an address


class Regions(Protocol):
    """Region number → the bytes from the region's base on. BusError when there is no memory."""

    def __getitem__(self, region: int) -> Bytes: ...


class Memory:
    """Regions plus the NPU's own memory.

    `count` is told of every transfer between the NPU and a region: (region, is write, bytes, once per element).
    """

    def __init__(
        self, regions: Regions, own_bytes: int, count: Callable[[int, bool, int], None] | None = None
    ) -> None:
        self._regions = regions
        self.own: Bytes = np.full(own_bytes, 0xA5, np.uint8)  # what was never written shows
        self._count = count

    def _note(self, region: int | None, is_write: bool, length: int) -> None:
        if self._count is not None and region is not None:
            self._count(region, is_write, length)

    def span(self, region: int | None, address: int, length: int, channel: Channel) -> Bytes:
        """`length` bytes of a region (None: the NPU's own memory), as a view. BusError unless all exist."""
        store = self._checked(region, address, address + length, channel)
        self._note(region, channel in _WRITING, length)
        return store[address : address + length]

    def check_size(self, region: int | None, length: int, channel: Channel) -> None:
        """Refuse a transfer of more bytes than the region has: strides of zero must not exhaust the host."""
        store = self._checked(region, 0, 0, channel)
        if length > min(store.size, _MOST_MOVED_BYTES):
            raise BusError(f"{channel.name} access to {length} bytes of {_name(region)}", region, channel)

    def whole(self, region: int | None, span: tuple[int, int], moved: int, channel: Channel) -> Bytes:
        """A region (None: the NPU's own memory) all of whose bytes in `span` exist, of which `moved` are read or
        written."""
        store = self._checked(region, *span, channel)
        self._note(region, channel in _WRITING, moved)
        return store

    def _checked(self, region: int | None, first: int, last: int, channel: Channel) -> Bytes:
        """The region's store, once bytes `first` to `last` of it are known to exist."""
        try:
            store = self.own if region is None else self._regions[region]
        except BusError as error:
            error.region, error.channel = region, channel
            raise
        if not 0 <= first <= last <= store.size:
            raise BusError(
                f"{channel.name} access to bytes {first:#x} to {last:#x} of {_name(region)}, "
                f"which has {store.size:#x} bytes",
                region,
                channel,
            )
        if channel in _WRITING and not store.flags.writeable:
            raise BusError(f"{channel.name} access to {_name(region)}, which is read-only", region, channel)
        return store

    def read(self, feature_map: FeatureMap, shape: Shape) -> Array:
        """The feature map's elements as a new array of `shape`, in its own dtype."""
        self.check_map(feature_map, shape, Channel.IFM)
        result = np.empty(shape, feature_map.dtype)
        for part, view in self._parts(feature_map, shape, Channel.IFM):
            result[part].view(view.dtype)[...] = view
        self._note(feature_map.region, False, result.nbytes)
        return result

    def write(self, feature_map: FeatureMap, values: Array) -> None:
        """Store `values` of shape (height, width, depth), which are already in the feature map's dtype."""
        height, width, depth = values.shape
        self.check_map(feature_map, (height, width, depth), Channel.OFM)
        for part, view in self._parts(feature_map, (height, width, depth), Channel.OFM):
            view[...] = np.ascontiguousarray(values[part]).view(view.dtype)
        self._note(feature_map.region, True, values.nbytes)

    def check_map(self, feature_map: FeatureMap, shape: Shape, channel: Channel) -> None:
        """Refuse a feature map larger than its region: with strides of zero, it could exhaust the host."""
        store = self._checked(feature_map.region, 0, 0, channel)
        height, width, depth = shape
        elements = height * width * depth
        if min(shape) <= 0 or elements > min(_MOST_ELEMENTS, store.size // feature_map.dtype.itemsize):
            text = f"{channel.name} access to a feature map of {height}x{width}x{depth} elements"
            raise BusError(f"{text} in {_name(feature_map.region)}", feature_map.region, channel)

    def _parts(
        self, feature_map: FeatureMap, shape: Shape, channel: Channel
    ) -> Iterator[tuple[tuple[slice, slice, slice], Array]]:
        """Pieces of the feature map and, for each, a view of the memory where it lies.

        The elements of a view of whole bricks are the bricks, copied as one.
        """
        height, width, depth = shape
        for rows, columns, base in tiles(feature_map, height, width):
            for channels, offset in _brick_parts(feature_map, depth):
                part = (rows, columns, channels)
                yield part, self._view(feature_map, base + offset, part, channel)

    def _view(
        self, feature_map: FeatureMap, address: int, part: tuple[slice, slice, slice], channel: Channel
    ) -> Array:
        rows, columns, channels = part
        dtype = feature_map.dtype
        depth = channels.stop - channels.start
        along = BRICK * dtype.itemsize if feature_map.bricks else feature_map.stride_x
        deep = dtype.itemsize
        if feature_map.bricks and depth >= BRICK:
            dtype, depth, deep = np.dtype((np.void, along)), depth // BRICK, feature_map.stride_c
        shape = (rows.stop - rows.start, columns.stop - columns.start, depth)
        strides = (feature_map.stride_y, along, deep)
        first, last = address, address + dtype.itemsize
        for count, stride in zip(shape, strides, strict=True):
            if stride < 0:
                first += (count - 1) * stride
            else:
                last += (count - 1) * stride
        store = self._checked(feature_map.region, first, last, channel)
        return np.ndarray(shape, dtype, store.data, address, strides)


def _brick_parts(feature_map: FeatureMap, depth: int) -> Iterator[tuple[slice, int]]:
    """(channels, byte offset): the whole bricks, then what is left of the last one."""
    whole = depth // BRICK * BRICK if feature_map.bricks else 0
    if whole:
        yield slice(0, whole), 0
    if whole < depth:
        yield slice(whole, depth), whole // BRICK * feature_map.stride_c


def _name(region: int | None) -> str:
    return "the NPU's own memory" if region is None else f"region {region}"


class FixedRegions:
    """Regions that are arrays, for running a program without a board."""

    def __init__(self, arrays: Mapping[int, Bytes]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, region: int) -> Bytes:
        if region not in self._arrays:
            raise BusError(f"there is no region {region}", region)
        return self._arrays[region]


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
    if op.counts == (1, 1) and op.index is None:
        data = memory.span(op.source_region, op.source, op.length, Channel.COPY_READ).copy()
        memory.span(op.target_region, op.target, op.length, Channel.COPY_WRITE)[:] = data
        return
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
                errors.check()
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
        errors.check()
        address = index.address + plane * index.plane_stride
        numbers[plane] = memory.span(index.region, address, 4 * rows, Channel.COPY_READ).view("<i4")
    if numbers.min() < 0 or numbers.max() > index.maximum:
        raise BusError(
            f"a DMA index is outside of 0 to {index.maximum}: {numbers.min()} to {numbers.max()}",
            index.region,
            Channel.COPY_READ,
        )
    return numbers
