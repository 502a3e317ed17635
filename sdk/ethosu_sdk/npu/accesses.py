"""What operations read and write: their blocks, the bytes they touch, and where two would disturb each other.

Bytes are exact: rows, bricks and rolling buffers may interleave without meeting.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.config import BRICK, NpuConfig, most_ifm_block_channels, round_up
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    FeatureMap,
    Int64,
    Kind,
    Operation,
    PoolMode,
    ResizeAxis,
    Shape,
)

Span = tuple[int, int]  # from, up to and without
Box = tuple[Span, Span, Span]  # rows, columns, channels of a feature map
Part = tuple[FeatureMap, Box]
# Ethos-U55-32 and -64 set no banks of their shared RAM aside for look-up tables (ethos-u-vela 5.1.0, ethos_u55.cpp).
_SMALL_SHARED_RAM_BYTES = 16 * 1024
_BANK_BYTES = 1024
# By MACs and bits: accumulators of these two take a multiple of so many banks, twice a block (ibid.).
_ACCUMULATOR_BANKS = {(32, 32): 4, (32, 40): 4, (64, 32): 4, (64, 40): 8}


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


def ofm_blocks(op: BlockOp) -> Iterator[Box]:
    """The OFM in blocks, in the order of work: channels innermost, then columns, then rows (ethos-u-vela 5.1.0)."""
    rows, columns, channels = (tuple(_steps(*sides)) for sides in zip(op.shape, op.block, strict=True))
    return itertools.product(rows, columns, channels)


def last_ofm_blocks(op: BlockOp, count: int) -> list[Box]:
    """The last `count` blocks of the OFM, or all if there are fewer; the very last one comes first."""
    edges = [list(_steps(size, step)) for size, step in zip(op.shape, op.block, strict=True)]
    total = math.prod(len(steps) for steps in edges)
    found = []
    for index in range(total - 1, max(total - 1 - count, -1), -1):
        rest, z = divmod(index, len(edges[2]))
        y, x = divmod(rest, len(edges[1]))
        found.append((edges[0][y], edges[1][x], edges[2][z]))
    return found


def _steps(size: int, step: int) -> Iterator[Span]:
    return ((start, min(start + step, size)) for start in range(0, size, step))


def stored(op: BlockOp, box: Box) -> Box:
    """Where a part of the OFM lies in memory, once it is reversed and transposed."""
    sides = list(box)
    if op.output.reverse is not None:
        size = op.shape[op.output.reverse]
        first, last = sides[op.output.reverse]
        sides[op.output.reverse] = (size - last, size - first)
    rows, columns, channels = (sides[axis] for axis in op.output.transpose or (0, 1, 2))
    return rows, columns, channels


def inputs(op: BlockOp, box: Box, channels: Span) -> Iterator[Part]:
    """The parts of feature maps in memory that `box` of the OFM needs.

    `channels` are those of the IFM, where every OFM channel depends on all of them.
    """
    if op.kind is Kind.ELEMENTWISE:
        for operand in op.operands:
            if operand.scalar is None:
                yield from _in_memory(operand.feature_map, _repeated(box, operand.broadcast))
        return
    # NONE takes its values from IFM2; what the IFM registers describe is not read.
    if op.mode is not PoolMode.NONE:
        yield from _in_memory(op.ifm, _window(op, box, channels))
    if op.ifm2 is not None:
        needed = (box[0], box[2], channels) if op.kind is Kind.MATMUL else box
        yield from _in_memory(op.ifm2, needed)


def _in_memory(feature_map: FeatureMap, box: Box) -> Iterator[Part]:
    if feature_map.chain is None and all(first < last for first, last in box):
        yield feature_map, box


def _repeated(box: Box, broadcast: tuple[bool, bool, bool]) -> Box:
    rows, columns, channels = ((0, 1) if once else span for span, once in zip(box, broadcast, strict=True))
    return rows, columns, channels


def _window(op: BlockOp, box: Box, channels: Span) -> Box:
    """The part of the IFM under the kernel, as it is stored."""
    if not op.takes_all_channels:
        channels = box[2] if op.ifm_depth > 1 else (0, 1)
    height, width, _ = op.ifm_shape
    if op.resize is not None:
        return _neighbours(box[0], op.resize[0], height), _neighbours(box[1], op.resize[1], width), channels
    kernel, padding = op.kernel, op.padding
    rows = _under(box[0], kernel.stride_y, kernel.dilated_height, padding.top, height)
    columns = _under(box[1], kernel.stride_x, kernel.dilated_width, padding.left, width)
    if op.upscale:
        rows, columns = _before_upscaling(rows), _before_upscaling(columns)
    return rows, columns, channels


def _under(span: Span, stride: int, kernel: int, padding: int, size: int) -> Span:
    first, last = span
    return max(0, first * stride - padding), min(size, (last - 1) * stride + kernel - padding)


def _before_upscaling(span: Span) -> Span:
    return span[0] // 2, (span[1] + 1) // 2


def _neighbours(span: Span, axis: ResizeAxis, size: int) -> Span:
    """Both IFM positions that each OFM position lies between; beyond the edge, the edge."""
    first, last = ((place * axis.step + axis.offset) // axis.denominator for place in (span[0], span[1] - 1))
    return min(max(0, first), size - 1), min(max(0, last + 1), size - 1) + 1


@dataclass(frozen=True)
class Access:
    """Bytes of a region that are read or written; region None is the NPU's own memory."""

    region: int | None
    writes: bool
    runs: Runs


Accesses = tuple[Access, ...]


@dataclass(frozen=True)
class Meeting:
    """Bytes of a region that two operations touch, at least one of them to write."""

    region: int | None
    span: Span
    earlier_writes: bool
    later_writes: bool


def meeting(earlier: Iterable[Access], later: Iterable[Access]) -> Meeting | None:
    """Where two operations would disturb each other if both were at work, if anywhere.

    Regions are taken to lie apart from each other.
    """
    for first, second in itertools.product(earlier, later):
        if first.region == second.region and (first.writes or second.writes):
            common = overlap(first.runs, second.runs)
            if common is not None:
                return Meeting(first.region, common, first.writes, second.writes)
    return None


def accesses(op: Operation, config: NpuConfig) -> Accesses:
    """All that `op` reads and writes."""
    return tuple(_dma(op) if isinstance(op, DmaOp) else _block_operation(op, config))


def first_reads(op: BlockOp, config: NpuConfig, count: int) -> list[Accesses]:
    """What the first `count` blocks of the IFM read, in order.

    An OFM block that depends on more channels than an IFM block has takes several of them.
    """
    step = most_ifm_block_channels(op, config) if op.takes_all_channels else op.ifm_depth
    blocks = (inputs(op, box, part) for box in ofm_blocks(op) for part in _steps(op.ifm_depth, step))
    return [_touched(parts, writes=False) for parts in itertools.islice(blocks, count)]


def last_writes(op: BlockOp, count: int) -> list[Accesses]:
    """What the last `count` blocks of the OFM write, the very last one first."""
    if op.ofm.chain is not None or op.is_partial:
        return []
    return [_touched([(op.ofm, stored(op, box))], writes=True) for box in last_ofm_blocks(op, count)]


def has_small_memory(config: NpuConfig) -> bool:
    """Whether the shared RAM has no place set aside for look-up tables."""
    return config.generation == "u55" and config.own_bytes <= _SMALL_SHARED_RAM_BYTES


def overwrites_tables(op: BlockOp, config: NpuConfig) -> bool:
    """Whether the operation's own buffers may lie where the look-up tables are.

    Where the shared RAM has no place set aside for tables, an operation that uses none takes all of it.
    """
    return has_small_memory(config) and op.output.lut is None


def accumulators_end(op: BlockOp, config: NpuConfig) -> int:
    """The byte of the shared RAM behind the accumulators; 0 where they cannot reach the look-up tables."""
    if not has_small_memory(config):
        return 0
    start = op.accumulator_bank * _BANK_BYTES
    if op.kind is Kind.ELEMENTWISE:
        return start  # it has none; the IFM's buffers end there
    height, width, depth = op.block
    block_bytes = height * width * round_up(depth, 8) * op.accumulator_bits // 8
    banks = 2 * (round_up(block_bytes, _BANK_BYTES) // _BANK_BYTES)
    return start + round_up(banks, _ACCUMULATOR_BANKS[config.macs, op.accumulator_bits]) * _BANK_BYTES


def _touched(parts: Iterable[Part], *, writes: bool) -> Accesses:
    return tuple(
        Access(feature_map.region, writes, piece)
        for feature_map, box in parts
        for piece in bytes_of(feature_map, box)
    )


def result_writes(op: Operation) -> Iterator[Access]:
    """What `op` writes as its result. Of a transfer that scatters, all rows that its largest index allows."""
    if not isinstance(op, DmaOp):
        if op.ofm.chain is None and not op.is_partial:
            yield from _touched([(op.ofm, whole(op.stored_shape))], writes=True)
    elif all((*op.counts, op.length)):
        scatters = op.index is not None and op.index.scatters
        yield _rows(op, op.target_region, op.target, op.target_strides, indexed=scatters, writes=True)


def _block_operation(op: BlockOp, config: NpuConfig) -> Iterator[Access]:
    yield from _touched(inputs(op, whole(op.shape), (0, op.ifm_depth)), writes=False)
    yield from result_writes(op)
    for part in (op.weights, op.scales):
        for stream in part.streams if part is not None else ():
            if stream.length:
                yield Access(stream.region, False, Runs(stream.address, (), stream.length))
    lut = op.output.lut
    if lut is not None:
        yield Access(None, False, Runs(lut.address, (), lut.end - lut.address))
    elif overwrites_tables(op, config):
        yield Access(None, True, Runs(0, (), config.own_bytes))


def _dma(op: DmaOp) -> Iterator[Access]:
    if not all((*op.counts, op.length)):
        return
    index = op.index
    if index is not None:
        planes, rows = op.counts
        yield Access(index.region, False, runs(index.address, ((planes, index.plane_stride),), 4 * rows))
    gathers = index is not None and not index.scatters
    yield _rows(op, op.source_region, op.source, op.source_strides, indexed=gathers, writes=False)
    yield from result_writes(op)


def _rows(op: DmaOp, region: int | None, base: int, strides: Span, *, indexed: bool, writes: bool) -> Access:
    """One side of a transfer. Which rows an index names is known only when it is read: all that it may name."""
    planes, rows = op.counts
    if indexed and op.index is not None:
        rows = op.index.maximum + 1
    return Access(region, writes, runs(base, zip((planes, rows), strides, strict=True), op.length))
