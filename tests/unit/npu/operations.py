"""Decoded operations written by hand: nothing is special but what a test names."""

from dataclasses import replace
from typing import Any

import numpy as np

from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Kernel, Kind, Output, Padding, Rounding, Shape

INT8, INT16, INT32 = (np.dtype(name) for name in ("<i1", "<i2", "<i4"))
FAR = 1 << 16  # more than any side: a feature map in one tile


def dense(base: int, shape: Shape, dtype: np.dtype[Any] = INT8, region: int = 1) -> FeatureMap:
    """A dense NHWC feature map in one tile."""
    _, width, depth = shape
    size = dtype.itemsize
    bases = (base, 0, 0, 0)
    return FeatureMap(region, bases, FAR, FAR, FAR, width * depth * size, depth * size, 0, dtype, False, 0)


def element_address(feature_map: FeatureMap, y: int, x: int, c: int) -> int:
    """Where an element lies, by the rules of tiles and layouts."""
    size = feature_map.dtype.itemsize
    right = x >= feature_map.width0
    rows_above = feature_map.height1 if right else feature_map.height0
    below = y >= rows_above
    base = feature_map.bases[2 * below + right]
    row, column = y - rows_above * below, x - feature_map.width0 * right
    if feature_map.bricks:
        brick, lane = divmod(c, 16)
        return base + row * feature_map.stride_y + brick * feature_map.stride_c + (column * 16 + lane) * size
    return base + row * feature_map.stride_y + column * feature_map.stride_x + c * size


def operation(kind: Kind, shape: Shape, ifm: FeatureMap, ofm: FeatureMap, **changes: Any) -> BlockOp:
    """An operation with a kernel of one element, in one block of the OFM's `shape`, and with some members changed."""
    plain = BlockOp(
        offset=0,
        kind=kind,
        mode=None,
        shape=shape,
        ifm=ifm,
        ifm_depth=shape[2],
        ofm=ofm,
        kernel=Kernel(1, 1, 1, 1, 1, 1, part_kernel_first=False),
        padding=Padding(0, 0, 0, 0),
        upscale=0,
        weights=None,
        scales=None,
        output=Output(True, 1, 0, Rounding.NATURAL, None),
        operands=(),
        ifm2=None,
        accumulates=False,
        divides=False,
        resize=None,
        block=shape,
        micro_block=(1, 2, 8),
        accumulator_bits=32,
        blockdep=0,
    )
    return replace(plain, **changes)
