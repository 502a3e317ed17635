"""Pooling: sums, averages, extremes and where they are."""

from __future__ import annotations

import numpy as np

from ethosu_sdk.npu.arrays import Array, Int64
from ethosu_sdk.npu.operation import Kernel, Padding, Rounding
from ethosu_sdk.npu.ops.window import padded, taps
from ethosu_sdk.npu.output import shift_round

LOWEST = -(1 << 40)  # below every value: padding never is a maximum
_INDEX_SHIFT = 16
_VALUE_MASK = 0xFFFF


def maximum(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The largest value under the kernel; padding does not count."""
    return _reduce(np.maximum, padded(values, padding, LOWEST), kernel)


def minimum(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The smallest value under the kernel; padding does not count."""
    return _reduce(np.minimum, padded(values, padding, -LOWEST), kernel)


def total(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The sum under the kernel; padding counts 0."""
    return _reduce(np.add, padded(values, padding, 0), kernel)


def _reduce(operation: np.ufunc, values: Array, kernel: Kernel) -> Int64:
    """Rows first, then columns: the cost is the sum of the kernel's sides, not their product."""
    for axis in (0, 1):
        first, *others = taps(values, kernel, axis)
        values = first
        if others:
            values = first.copy()
            for other in others:
                operation(values, other, out=values)
    return values


def reduce_depth(values: Int64) -> Int64:
    """The sum over all channels, as one channel."""
    return np.asarray(values.sum(axis=2, keepdims=True))


def argmax(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """Where under a kernel of one row or one column the first maximum is: index << 16 | its value's low bits."""
    data = padded(values, padding, LOWEST)
    axis = 0 if kernel.width == 1 else 1
    across, along = (1, 0) if axis == 0 else (0, 1)
    best, *others = taps(next(taps(data, kernel, across)), kernel, along)
    index = np.zeros(best.shape, np.int64)
    for position, other in enumerate(others, 1):
        better = other > best
        best, index = np.where(better, other, best), np.where(better, position, index)
    return np.asarray(index << _INDEX_SHIFT | best & _VALUE_MASK)


def average_of_valid(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The mean of what lies under the kernel without the padding, by TOSA's reciprocal.

    TOSA 1.0, reciprocal_scale: with k bits in count - 1, multiply by ((2^30 + 1) << k) // count and shift by
    30 + k, half up. Exact division would differ by one for negative ties.
    """
    counts = total(np.ones((*values.shape[:2], 1), np.int64), kernel, padding)
    bits = np.frexp((counts - 1).astype(np.float64))[1].astype(np.int64)  # the bit length
    multiplier = (((np.int64(1) << 30) + 1) << bits) // counts
    return shift_round(total(values, kernel, padding) * multiplier, 30 + bits, Rounding.NATURAL)
