"""Which bytes operations touch, exactly: rows, bricks and rolling buffers may interleave without meeting."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.arrays import Int64
from ethosu_sdk.npu.geometry import BRICK, round_up
from ethosu_sdk.npu.operation import FeatureMap, Shape

Span = tuple[int, int]  # from, up to and without
Box = tuple[Span, Span, Span]  # rows, columns, channels of a feature map


@dataclass(frozen=True)
class Runs:
    """Runs of `length` bytes whose first bytes form a lattice: `base` plus multiples of the axes' strides.

    `axes` are (count, stride), strides positive and longer than what lies within them: see :func:`runs`.
    """

    base: int
    axes: tuple[Span, ...]
    length: int

    @property
    def end(self) -> int:
        """Behind the last byte."""
        return self.base + sum((count - 1) * stride for count, stride in self.axes) + self.length

    @functools.cached_property
    def starts(self) -> Int64:
        """The first byte of every run, ascending."""
        found: Int64 = np.array([self.base], np.int64)
        for count, stride in self.axes:
            found = (found[:, None] + np.arange(count, dtype=np.int64) * stride).ravel()
        found.sort()
        return found


def runs(base: int, axes: Iterable[Span], length: int) -> Runs:
    """Runs of `length` bytes, `count` times `stride` bytes apart for every (count, stride), which may be negative.

    Runs that touch or overlap become one.
    """
    kept: list[Span] = []
    for count, stride in axes:
        base += min(0, (count - 1) * stride)
        if count > 1 and stride:
            kept.append((count, abs(stride)))
    kept.sort(key=lambda axis: axis[1])
    while kept and kept[0][1] <= length:
        count, stride = kept.pop(0)
        length += (count - 1) * stride
    return Runs(base, tuple(kept), length)


def overlap(first: Runs, second: Runs) -> Span | None:
    """Bytes that both have: those of the first two runs that meet, by address."""
    if first.end <= second.base or second.end <= first.base:
        return None
    if not first.axes and not second.axes:
        return max(first.base, second.base), min(first.end, second.end)
    if first.starts.size < second.starts.size:
        first, second = second, first
    # For each run of the second, the first run that ends behind its start.
    at = np.searchsorted(first.starts, second.starts - first.length, side="right")
    inside = at < first.starts.size
    candidates = first.starts[at[inside]]
    others = second.starts[inside]
    meet = candidates < others + second.length
    if not meet.any():
        return None
    left, right = int(candidates[meet][0]), int(others[meet][0])
    return max(left, right), min(left + first.length, right + second.length)


def whole(shape: Shape) -> Box:
    """All of a feature map of `shape`."""
    height, width, depth = shape
    return (0, height), (0, width), (0, depth)


def bytes_of(feature_map: FeatureMap, box: Box) -> tuple[Runs, ...]:
    """The bytes of the elements in `box`, which lie in up to four tiles."""
    rows, columns, channels = box
    found: list[Runs] = []
    width0 = feature_map.width0
    for column, part in _cut(columns, width0):
        height = feature_map.height1 if column else feature_map.height0
        for row, lines in _cut(rows, height):
            found += _in_tile(feature_map, feature_map.bases[2 * row + column], (lines, part, channels))
    return tuple(found)


def _cut(span: Span, at: int) -> Iterator[tuple[int, Span]]:
    """(tile, part of `span` counted from where that tile starts)."""
    start, stop = span
    if start < min(stop, at):
        yield 0, (start, min(stop, at))
    if max(start, at) < stop:
        yield 1, (max(start, at) - at, stop - at)


def _in_tile(feature_map: FeatureMap, base: int, box: Box) -> Iterator[Runs]:
    (top, bottom), (left, right), (first, last) = box
    size = feature_map.dtype.itemsize
    along = BRICK * size if feature_map.bricks else feature_map.stride_x
    base += top * feature_map.stride_y + left * along
    axes = (bottom - top, feature_map.stride_y), (right - left, along)
    if not feature_map.bricks:
        yield runs(base + first * size, axes, (last - first) * size)
        return
    for brick, count, (low, high) in _bricks(first, last):
        start = base + brick * feature_map.stride_c + low * size
        yield runs(start, (*axes, (count, feature_map.stride_c)), (high - low) * size)


def _bricks(first: int, last: int) -> Iterator[tuple[int, int, Span]]:
    """(brick, how many from it on, channels within each): the whole bricks are one item."""
    edges = sorted({first, last, round_up(first, BRICK), last // BRICK * BRICK})
    for low, high in itertools.pairwise(edge for edge in edges if first <= edge <= last):
        brick, offset = divmod(low, BRICK)
        count = max(1, (high - low) // BRICK)
        yield brick, count, (offset, offset + (high - low) // count)
