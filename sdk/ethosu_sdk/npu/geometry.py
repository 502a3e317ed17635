"""How feature maps lie in memory, and how operations cut them up: facts that several parts of the model need."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Kind, Shape

BRICK = 16  # channels of a brick of NHCWB16
_SUBKERNEL = 8  # rows and columns that a kernel's elements may span which are walked in one go


def subkernel(dilation: int) -> int:
    """Rows or columns of a kernel that are walked in one go."""
    return _SUBKERNEL // dilation


def ceil_div(value: int, divisor: int) -> int:
    """`value` / `divisor`, rounded up."""
    return -(-value // divisor)


def round_up(value: int, granule: int) -> int:
    """The next multiple of `granule`."""
    return ceil_div(value, granule) * granule


def volume(shape: Shape) -> int:
    """Elements of a shape."""
    return shape[0] * shape[1] * shape[2]


def divided(shape: Shape, part: Shape) -> Shape:
    """How many of `part` cover `shape` along each axis."""
    return ceil_div(shape[0], part[0]), ceil_div(shape[1], part[1]), ceil_div(shape[2], part[2])


def tiles(feature_map: FeatureMap, height: int, width: int) -> Iterator[tuple[slice, slice, int]]:
    """(rows, columns, address of their first element) of up to four tiles."""
    for column, (start, stop) in enumerate(_cut(feature_map.width0, width)):
        first = feature_map.height1 if column else feature_map.height0
        for row, (top, bottom) in enumerate(_cut(first, height)):
            yield slice(top, bottom), slice(start, stop), feature_map.bases[2 * row + column]


def _cut(first: int, total: int) -> Iterator[tuple[int, int]]:
    yield 0, min(first, total)
    if first < total:
        yield first, total


def bricks(feature_map: FeatureMap, depth: int) -> Iterator[tuple[slice, int, int]]:
    """(channels, channels per brick, byte offset): whole bricks first, then what is left of the last one."""
    if not feature_map.bricks:
        yield slice(0, depth), depth, 0
        return
    whole = depth // BRICK * BRICK
    if whole:
        yield slice(0, whole), BRICK, 0
    if whole < depth:
        yield slice(whole, depth), depth - whole, whole // BRICK * feature_map.stride_c


def is_part_kernel(op: BlockOp) -> bool:
    """Whether a convolution takes its kernel's positions before its IFM's channels."""
    return op.kind is Kind.CONV and op.kernel.part_kernel_first


def most_ifm_block_channels(op: BlockOp, config: NpuConfig) -> int:
    """Channels of a whole IFM block where every OFM channel depends on all of them.

    No register holds them; ethos-u-vela 5.1.0 chooses them by these rules.
    """
    if is_part_kernel(op):
        return 16
    itemsize = op.ifm.dtype.itemsize
    if config.generation == "u55":
        return 16 if itemsize == 2 else 32
    sparse = op.weights is not None and op.weights.sparse
    if itemsize == 4 or (config.macs <= 256 and op.micro_block[2] == 16 and not sparse):
        return 32
    return 128 if sparse and itemsize == 1 else 64
