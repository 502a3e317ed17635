"""Limits of the model: it refuses work that no real model needs, and sums that it could not compute exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethosu_sdk.npu.arrays import Int64
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import BlockOp, FeatureMap, Kind

_INT64_LARGEST = (1 << 63) - 1
_DOUBLE_ROUND_EXTRA = 1 << 30
_FLOAT64_EXACT = 1 << 53
# Multiply-accumulates or comparisons of one operation: ten times the largest of real models.
_MOST_STEPS = 1 << 36
_MOST_SUMS = 1 << 24  # that stay in the accumulators, eight bytes each


def check_sums(op: BlockOp) -> None:
    """Refuse more sums in the accumulators than a host should hold: hardware has far fewer."""
    height, width, depth = op.shape
    if height * width * depth > _MOST_SUMS:
        raise UnsupportedCommand(
            "SET_ACC_FORMAT", op.offset, 1, f"{height * width * depth:,} sums that stay in the accumulators"
        )


def check_work(op: BlockOp) -> None:
    """Refuse what no model needs and what would keep the host busy for minutes."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return
    height, width, depth = op.shape
    sides = op.kernel.height + op.kernel.width if op.kind is Kind.POOL else op.kernel.height * op.kernel.width
    steps = height * width * depth * sides * (op.ifm_depth if op.takes_all_channels else 1)
    if steps > _MOST_STEPS:
        raise UnsupportedCommand("SET_KERNEL_HEIGHT_M1", op.offset, op.kernel.height - 1, f"{steps} steps")


def check_exact(op: BlockOp, bound: int) -> None:
    """Refuse sums that float64 may round: 32-bit elements of an operation that is not emitted for them."""
    if bound >= _FLOAT64_EXACT:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "sums above 53 bits")


def check_pool(op: BlockOp) -> None:
    """Refuse elements so wide that int64 cannot hold their sums, or their sums times a reciprocal."""
    widest = 2 if op.divides else 4
    if op.ifm.dtype.itemsize > widest:
        raise UnsupportedCommand("SET_IFM_PRECISION", op.offset, op.ifm.dtype.itemsize, "pooled elements")


def check_width(op: BlockOp, accumulator: Int64, scale: Any, shift: Any) -> None:
    """Refuse sums that the accumulators do not hold and products that int64 does not: their result is not known."""
    if op.kind is Kind.ELEMENTWISE and not op.output.scaled:
        return
    high, low, limit = int(accumulator.max()), int(accumulator.min()), 1 << (op.accumulator_bits - 1)
    if op.kind is not Kind.ELEMENTWISE and not -limit <= low <= high < limit:
        raise UnsupportedCommand("SET_ACC_FORMAT", op.offset, op.accumulator_bits, "accumulator overflow")
    if op.output.scaled:
        check_product(op, "SET_OFM_SCALE", max(high, -low), int(np.max(scale)), int(np.max(shift)))


def check_product(op: BlockOp, register: str, largest: int, scale: int, shift: int) -> None:
    """Refuse a scaling whose product, with what rounding adds, may exceed int64."""
    if largest * scale + (1 << shift) + _DOUBLE_ROUND_EXTRA > _INT64_LARGEST:
        raise UnsupportedCommand(register, op.offset, scale, "product of more than 63 bits")


def largest_input(feature_map: FeatureMap) -> int:
    """The largest absolute value that an element can have once the zero point is subtracted."""
    limits = np.iinfo(feature_map.dtype)
    return max(abs(limits.min - feature_map.zero_point), abs(limits.max - feature_map.zero_point))
