"""Elementwise operations on values whose zero points are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ethosu_sdk.npu.arrays import Bool, Int64
from ethosu_sdk.npu.operation import ElementwiseMode, Rounding
from ethosu_sdk.npu.output import shift_round


def count_leading_zeros(values: Int64) -> Int64:
    """Leading zeros of 32-bit values."""
    # frexp's exponent of a positive integer is its bit length; 32 bits are exact in float64.
    lengths = np.frexp(np.maximum(values, 0).astype(np.float64))[1]
    return np.where(values < 0, 0, 32 - lengths).astype(np.int64)


def shift_right(left: Int64, right: Int64, rounding: Rounding) -> Int64:
    """`left` >> `right`, rounded."""
    return shift_round(left, np.clip(right, 0, 63), rounding)


def shift_right_logical(left: Int64, right: Int64, bits: int) -> Int64:
    """`left` >> `right` of values that have `bits` bits and no sign."""
    return np.asarray((left & (1 << bits) - 1) >> np.clip(right, 0, 63))


def shift_left(left: Int64, right: Int64) -> Int64:
    """`left` << `right`."""
    return np.left_shift(left, np.clip(right, 0, 63))


def divide(left: Int64, right: Int64) -> Int64:
    """`left` / `right`, towards zero. The caller knows that no divisor is 0."""
    return np.asarray(np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right)))


def _comparison(compare: Callable[[Int64, Int64], Bool]) -> Callable[[Int64, Int64], Int64]:
    """A comparison whose true is all ones."""

    def compared(left: Int64, right: Int64) -> Int64:
        return np.asarray(-compare(left, right).astype(np.int64))

    return compared


def and_not(left: Int64, right: Int64) -> Int64:
    """The bits of `left` that `right` does not have."""
    return np.asarray(left & ~right)


BINARY: Mapping[ElementwiseMode, Callable[[Int64, Int64], Int64]] = {
    ElementwiseMode.MUL: np.multiply,
    ElementwiseMode.ADD: np.add,
    ElementwiseMode.SUB: np.subtract,
    ElementwiseMode.MIN: np.minimum,
    ElementwiseMode.MAX: np.maximum,
    ElementwiseMode.SHL: shift_left,
    ElementwiseMode.DIV: divide,
    ElementwiseMode.EQ: _comparison(np.equal),
    ElementwiseMode.NE: _comparison(np.not_equal),
    ElementwiseMode.GE: _comparison(np.greater_equal),
    ElementwiseMode.GT: _comparison(np.greater),
    ElementwiseMode.AND: np.bitwise_and,
    ElementwiseMode.OR: np.bitwise_or,
    ElementwiseMode.XOR: np.bitwise_xor,
    ElementwiseMode.AND_NOT: and_not,
}
UNARY: Mapping[ElementwiseMode, Callable[[Int64], Int64]] = {
    ElementwiseMode.ABS: np.abs,
    ElementwiseMode.CLZ: count_leading_zeros,
    ElementwiseMode.NOT: np.bitwise_not,
}
