"""The NPU's view of memory: regions and its own memory, with every access checked before it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ethosu_sdk.npu.arrays import Array, Bytes
from ethosu_sdk.npu.errors import BusError, Channel
from ethosu_sdk.npu.geometry import BRICK, bricks, tiles
from ethosu_sdk.npu.operation import FeatureMap, Shape

_WRITING = frozenset({Channel.OFM, Channel.COPY_WRITE})
_POISON = 0xA5  # what was never written shows
_MOST_MOVED_BYTES = 1 << 28  # in one transfer: all the memory of a board
_MAX_ELEMENTS = 1 << 26  # far beyond any model: a stride of zero must not exhaust the host


class Regions(Protocol):
    """Region number → the bytes from the region's base on. BusError when there is no memory."""

    def __getitem__(self, region: int) -> Bytes: ...


@dataclass(frozen=True)
class Traffic:
    """Bytes moved between the NPU and one region, counted once per element."""

    region: int
    is_write: bool
    length: int


class Memory:
    """Regions plus the NPU's own memory. `observer` is told of every transfer."""

    def __init__(
        self, regions: Regions, own_bytes: int, observer: Callable[[Traffic], None] | None = None
    ) -> None:
        self._regions = regions
        self.own: Bytes = np.full(own_bytes, _POISON, np.uint8)
        self._observer = observer

    def unobserved(self) -> Memory:
        """The same regions, without an observer."""
        return Memory(self._regions, 0)

    def _note(self, region: int | None, is_write: bool, length: int) -> None:
        if self._observer is not None and region is not None:
            self._observer(Traffic(region, is_write, length))

    def _store_of(self, region: int | None) -> Bytes:
        return self.own if region is None else self._regions[region]

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
            store = self._store_of(region)
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
            result[part] = view.reshape(result[part].shape)
        self._note(feature_map.region, False, result.nbytes)
        return result

    def write(self, feature_map: FeatureMap, values: Array) -> None:
        """Store `values` of shape (height, width, depth), which are already in the feature map's dtype."""
        height, width, depth = values.shape
        self.check_map(feature_map, (height, width, depth), Channel.OFM)
        for part, view in self._parts(feature_map, (height, width, depth), Channel.OFM):
            view[...] = values[part].reshape(view.shape)
        self._note(feature_map.region, True, values.nbytes)

    def check_map(self, feature_map: FeatureMap, shape: Shape, channel: Channel) -> None:
        """Refuse a feature map larger than its region: with strides of zero, it could exhaust the host."""
        store = self._checked(feature_map.region, 0, 0, channel)
        height, width, depth = shape
        elements = height * width * depth
        if min(shape) <= 0 or elements > min(_MAX_ELEMENTS, store.size // feature_map.dtype.itemsize):
            text = f"{channel.name} access to a feature map of {height}x{width}x{depth} elements"
            raise BusError(f"{text} in {_name(feature_map.region)}", feature_map.region, channel)

    def _parts(
        self, feature_map: FeatureMap, shape: Shape, channel: Channel
    ) -> Iterator[tuple[tuple[slice, slice, slice], Array]]:
        """Pieces of the feature map and, for each, a view of the memory where it lies.

        The view of whole bricks has four axes: row, column, brick, channel in the brick.
        """
        height, width, depth = shape
        for rows, columns, base in tiles(feature_map, height, width):
            for channels, step, offset in bricks(feature_map, depth):
                part = (rows, columns, channels)
                yield part, self._view(feature_map, base + offset, part, step, channel)

    def _view(
        self,
        feature_map: FeatureMap,
        address: int,
        part: tuple[slice, slice, slice],
        step: int,
        channel: Channel,
    ) -> Array:
        rows, columns, channels = part
        size = feature_map.dtype.itemsize
        counts = (rows.stop - rows.start, columns.stop - columns.start)
        if feature_map.bricks and step == BRICK:
            shape: tuple[int, ...] = (*counts, (channels.stop - channels.start) // BRICK, BRICK)
            strides: tuple[int, ...] = (feature_map.stride_y, BRICK * size, feature_map.stride_c, size)
        else:
            along = BRICK * size if feature_map.bricks else feature_map.stride_x
            shape = (*counts, channels.stop - channels.start)
            strides = (feature_map.stride_y, along, size)
        reach = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
        first = address + sum(min(0, distance) for distance in reach)
        last = address + sum(max(0, distance) for distance in reach) + size
        store = self._checked(feature_map.region, first, last, channel)
        return np.ndarray(shape, feature_map.dtype, store.data, address, strides)


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
