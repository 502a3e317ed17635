"""Elementwise operations on values whose zero points are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.operation import ElementwiseMode, OperandScaling, Rounding
from ethosu_sdk.npu.output import rescale, shift_round

Int64 = npt.NDArray[np.int64]


def scale_operands(left: Int64, right: Int64, scaling: OperandScaling) -> tuple[Int64, Int64]:
    """Operands A and B of ADD or SUB on one scale."""
    if scaling.wide is None:
        return left * scaling.scale_a, right * scaling.scale_b
    if scaling.wide == "a":
        return rescale(left, scaling.scale_a, scaling.shift, scaling.rounding), right << scaling.partner_shift
    return left << scaling.partner_shift, rescale(right, scaling.scale_a, scaling.shift, scaling.rounding)


def count_leading_zeros(values: Int64) -> Int64:
    """Leading zeros of 32-bit values."""
    # frexp's exponent of a positive integer is its bit length; 32 bits are exact in float64.
    lengths = np.frexp(np.maximum(values, 0).astype(np.float64))[1].astype(np.int64)
    return np.where(values < 0, 0, 32 - lengths)


def shift_right(left: Int64, right: Int64) -> Int64:
    """`left` >> `right`, half up: Ethos-U55 rounds whatever the rounding mode."""
    return shift_round(left, np.clip(right, 0, 63), Rounding.NATURAL)


def shift_left(left: Int64, right: Int64) -> Int64:
    """`left` << `right`."""
    return np.left_shift(left, np.clip(right, 0, 63))


BINARY: Mapping[ElementwiseMode, Callable[[Int64, Int64], Int64]] = {
    ElementwiseMode.MUL: np.multiply,
    ElementwiseMode.ADD: np.add,
    ElementwiseMode.SUB: np.subtract,
    ElementwiseMode.MIN: np.minimum,
    ElementwiseMode.MAX: np.maximum,
    ElementwiseMode.SHR: shift_right,
    ElementwiseMode.SHL: shift_left,
}
UNARY: Mapping[ElementwiseMode, Callable[[Int64], Int64]] = {
    ElementwiseMode.ABS: np.abs,
    ElementwiseMode.CLZ: count_leading_zeros,
}
