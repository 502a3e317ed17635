"""The blocks that an operation works in: which part of its feature maps each one reads and writes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.geometry import most_ifm_block_channels
from ethosu_sdk.npu.hazards.ranges import Box, Span
from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Kind, PoolMode, ResizeAxis

Part = tuple[FeatureMap, Box]


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


def ifm_blocks(op: BlockOp, config: NpuConfig) -> Iterator[tuple[Part, ...]]:
    """What the blocks of the IFM bring in, in the order of work.

    An OFM block that depends on more channels than an IFM block has takes several of them.
    """
    step = most_ifm_block_channels(op, config) if op.takes_all_channels else op.ifm_depth
    for box in ofm_blocks(op):
        for channels in _steps(op.ifm_depth, step):
            yield tuple(inputs(op, box, channels))


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
