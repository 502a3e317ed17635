"""The blocks in which an operation is carried out, as far as its cost depends on them."""

from __future__ import annotations

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.geometry import ceil_div, divided, most_ifm_block_channels, round_up, subkernel
from ethosu_sdk.npu.operation import BlockOp, Kind, Shape
from ethosu_sdk.npu.timing.tables import IFM_UNITS

_UNIT_BYTES = 16  # of the depth of an IFM unit
_MOST_EXTENTS = 4096  # along an axis that are worked out one by one: streams may be hostile


def _micro_block(op: BlockOp) -> Shape:
    """One row of four instead of two rows of two, where the OFM has but one row of an even number of columns."""
    height, width, depth = op.micro_block
    if height == 2 and op.kind is Kind.CONV and op.kernel.height == 1 and op.shape[0] == 1:
        return (1, 4, depth) if op.shape[1] % 2 == 0 else op.micro_block
    return height, width, depth


def _whole_units(op: BlockOp, depth: int) -> int:
    """`depth` filled up to the units in which Ethos-U85 keeps the IFM."""
    itemsize = op.ifm.dtype.itemsize
    # Nothing is known about micro-blocks that Vela never chooses.
    units = IFM_UNITS.get(op.micro_block, ((*op.micro_block[:2], 1),) * 3)
    unit = units[(depth * itemsize > 16) + (depth * itemsize > 32)]
    return round_up(depth, unit[2] * _UNIT_BYTES // itemsize)


def counts(op: BlockOp) -> Shape:
    """OFM blocks along each axis."""
    return divided(op.shape, op.block)


def micro_blocks(op: BlockOp, config: NpuConfig) -> int:
    """Micro-blocks of all OFM blocks: each block is filled up with them for itself."""
    micro = op.micro_block if config.generation == "u85" else _micro_block(op)
    found = 1
    for size, block, part in zip(op.shape, op.block, micro, strict=True):
        whole, rest = divmod(size, block)
        found *= whole * ceil_div(block, part) + ceil_div(rest, part)
    return found


def ifm_spans(op: BlockOp, axis: int, config: NpuConfig) -> list[tuple[int, int]]:
    """The rows (axis 0) or columns (axis 1) of the stored IFM that OFM blocks along that axis read: (first, count).

    Rows that two blocks need (the halo) are read twice. On Ethos-U55 and Ethos-U65, so are those that two parts of a
    kernel need which is larger than 8x8, dilation included. Padding is not read.
    """
    kernel, size = op.kernel, op.ifm_shape[axis]
    stride, dilation = ((kernel.stride_y, kernel.dilation_y), (kernel.stride_x, kernel.dilation_x))[axis]
    length = (kernel.height, kernel.width)[axis]
    before = (op.padding.top, op.padding.left)[axis]
    factor = 2 if op.upscale else 1
    walked = length if config.generation == "u85" else subkernel(dilation)
    count, parts = ceil_div(op.shape[axis], op.block[axis]), ceil_div(length, walked)
    if count * parts > _MOST_EXTENTS:  # no network has so many: the borders do not matter
        span = (op.block[axis] - 1) * stride + min(length, walked) * dilation
        return [(0, count * parts * ceil_div(min(size, span), factor))]
    spans = []
    for start in range(0, op.shape[axis], op.block[axis]):
        end = min(start + op.block[axis], op.shape[axis])
        for part in range(0, length, walked):
            last_element = min(part + walked, length) - 1
            first = max(0, start * stride - before + part * dilation)
            last = min(size, (end - 1) * stride - before + last_element * dilation + 1)
            spans.append((first // factor, max(0, ceil_div(last, factor) - first // factor)))
    return spans


def ifm_block_depth(op: BlockOp, config: NpuConfig) -> int:
    """Channels of an IFM block, where every OFM channel depends on all of them."""
    depth = most_ifm_block_channels(op, config) if op.takes_all_channels else op.block[2]
    if config.generation == "u85":
        return depth if op.kind in (Kind.CONV, Kind.MATMUL) else _whole_units(op, depth)
    if not op.takes_all_channels:
        return depth
    return round_up(min(op.ifm_depth, depth), 4 if op.ifm.dtype.itemsize == 2 else 8)


def subkernels(op: BlockOp) -> int:
    """Parts in which a kernel is walked that is larger than 8x8, dilation included. Each reads its IFM for itself."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return 1
    kernel = op.kernel
    high, wide = subkernel(kernel.dilation_y), subkernel(kernel.dilation_x)
    return ceil_div(kernel.height, high) * ceil_div(kernel.width, wide)
