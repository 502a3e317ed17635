"""Weights and scales: from their streams to arrays that the operators can use.

The order of the weights in a stream is that of ethos-u-vela 5.1.0's encoder for Ethos-U55 and Ethos-U65. A stream
must decode to exactly as many weights as that order has, with zeros in all places that pad it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import WeightOrderError
from ethosu_sdk.npu.operation import BlockOp, Kind

Order = npt.NDArray[np.int32]
Weights = npt.NDArray[np.int16]

SCALE_BYTES = 10
_SUBKERNEL = 8  # the kernel is walked in parts of at most 8x8, dilation included
_IFM_MICRO_DEPTH = 8
_PADDING = -1


@dataclass(frozen=True)
class OrderKey:
    """Everything that the order of a weight stream depends on."""

    depth: int  # OFM channels
    height: int
    width: int
    ifm_depth: int  # 1 for depthwise
    block_depth: int
    ofm_micro_depth: int
    depthwise: bool
    part_kernel_first: bool
    ifm_bits: int
    dilation_y: int
    dilation_x: int


def order_key(op: BlockOp, config: NpuConfig) -> OrderKey:
    """The order of `op`'s weights."""
    depthwise = op.kind is Kind.DEPTHWISE
    return OrderKey(
        depth=op.shape[2],
        height=op.kernel.height,
        width=op.kernel.width,
        ifm_depth=1 if depthwise else op.ifm_depth,
        block_depth=op.block[2],
        ofm_micro_depth=config.weight_ofm_depth,
        depthwise=depthwise,
        part_kernel_first=op.kernel.part_kernel_first,
        ifm_bits=8 * op.ifm.dtype.itemsize,
        dilation_y=op.kernel.dilation_y,
        dilation_x=op.kernel.dilation_x,
    )


@functools.lru_cache(maxsize=512)
def weight_order(key: OrderKey) -> Order:
    """For every place of the stream, the index of its weight in (OFM, height, width, IFM), or -1 for padding."""
    ifm_block = 16 if key.part_kernel_first or key.ifm_bits == 16 else 32
    pieces = []
    for ofm_start in range(0, key.depth, key.block_depth):
        for ifm_start in range(0, 1 if key.depthwise else key.ifm_depth, ifm_block):
            for y in range(0, key.height, _SUBKERNEL // key.dilation_y):
                for x in range(0, key.width, _SUBKERNEL // key.dilation_x):
                    pieces.append(_subkernel_order(key, ofm_start, ifm_start, y, x, ifm_block))
    return np.concatenate(pieces)


def _subkernel_order(
    key: OrderKey, ofm_start: int, ifm_start: int, y_start: int, x_start: int, ifm_block: int
) -> Order:
    """The part of the order that belongs to one OFM block, IFM block and sub-kernel.

    Axes, outermost first: IFM micro-blocks (part-kernel-first), OFM micro-blocks, kernel elements, IFM
    micro-blocks (depth-first), OFM channels of a micro-block, IFM channels of a micro-block.
    """
    rows = min(key.height - y_start, _SUBKERNEL // key.dilation_y)
    columns = min(key.width - x_start, _SUBKERNEL // key.dilation_x)
    ofm_count = min(key.block_depth, key.depth - ofm_start)
    element = np.arange(_rounded(rows * columns, _element_rounding(key)))
    if key.depthwise:
        outer = inner = np.array([0])
        micro = np.array([0])
    else:
        micro = np.arange(_IFM_MICRO_DEPTH)
        clipped = min(ifm_block, key.ifm_depth - ifm_start)
        outer = np.arange(0, clipped, _IFM_MICRO_DEPTH) if key.part_kernel_first else np.array([0])
        inner = np.array([0]) if key.part_kernel_first else np.arange(0, ifm_block, _IFM_MICRO_DEPTH)
    ofm_blocks = np.arange(0, ofm_count, key.ofm_micro_depth)
    outer_axis, ofm_axis, element_axis, inner_axis, ofm_lane, ifm_lane = np.ix_(
        outer, ofm_blocks, element, inner, np.arange(key.ofm_micro_depth), micro
    )
    channel = ofm_start + ofm_axis + ofm_lane
    source = ifm_start + outer_axis + inner_axis + ifm_lane
    row, column = element_axis // columns, element_axis % columns
    index = ((channel * key.height + y_start + row) * key.width + x_start + column) * key.ifm_depth + source
    valid = (source < key.ifm_depth) & (channel < key.depth) & (row < rows)
    return np.where(valid, index, _PADDING).astype(np.int32).reshape(-1)


def _element_rounding(key: OrderKey) -> int:
    if key.depthwise:
        return 4
    if key.part_kernel_first:
        return 2 if key.ifm_bits == 16 else 4
    return 1


def _rounded(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def arrange(stream: Weights, key: OrderKey, offset: int) -> Weights:
    """A decoded stream as (OFM, height, width, IFM). WeightOrderError when it does not fit the order.

    `offset` is that of the operation, for the message.
    """
    # Registers may claim any size: the order is worked out only for what the stream can hold.
    needed = key.depth * key.height * key.width * key.ifm_depth
    if stream.size < needed:
        raise WeightOrderError(
            f"the operation at byte {offset} needs {needed} weights, its stream holds {stream.size}"
        )
    order = weight_order(key)
    if stream.size != order.size:
        raise WeightOrderError(
            f"the operation at byte {offset} needs {order.size} weights, its stream holds {stream.size}"
        )
    padding = order < 0
    if stream[padding].any():
        raise WeightOrderError(f"the weights of the operation at byte {offset} are not in the expected order")
    weights = np.zeros(key.depth * key.height * key.width * key.ifm_depth, np.int16)
    weights[order[~padding]] = stream[~padding]
    return weights.reshape(key.depth, key.height, key.width, key.ifm_depth)


@dataclass(frozen=True)
class Scales:
    """Bias, scale and shift of every OFM channel; int64 arrays."""

    bias: npt.NDArray[np.int64]
    scale: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]


def unpack_scales(data: npt.NDArray[np.uint8], depth: int) -> Scales:
    """`depth` entries of ten bytes: bias 40 bits signed, scale 32 bits unsigned, shift 6 bits."""
    rows = data[: SCALE_BYTES * depth].reshape(depth, SCALE_BYTES).astype(np.int64)

    def number(first: int, last: int) -> Any:
        return sum(rows[:, byte] << 8 * (byte - first) for byte in range(first, last))

    bias = number(0, 5)
    bias = np.where(bias >> 39, bias - (1 << 40), bias)
    return Scales(bias, number(5, 9), rows[:, 9] & 63)
