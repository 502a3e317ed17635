"""Pooling: sums, averages, maxima."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.operation import Kernel, Padding, Rounding
from ethosu_sdk.npu.ops.window import padded, windows
from ethosu_sdk.npu.output import shift_round

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
LOWEST = -(1 << 40)  # below every value: padding never is a maximum


def maximum(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The largest value under the kernel; padding does not count."""
    return np.asarray(windows(padded(values, padding, LOWEST), kernel).max(axis=(3, 4)))


def total(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The sum under the kernel; padding counts 0."""
    data = padded(values, padding, 0)
    if kernel.height == kernel.width == 1:
        return data[:: kernel.stride_y, :: kernel.stride_x]
    return np.asarray(windows(data, kernel).sum(axis=(3, 4)))


def reduce_depth(values: Int64) -> Int64:
    """The sum over all channels, as one channel."""
    return np.asarray(values.sum(axis=2, keepdims=True))


def average_of_valid(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The mean of what lies under the kernel without the padding, by TOSA's reciprocal.

    TOSA 1.0, reciprocal_scale: with k bits in count - 1, multiply by ((2^30 + 1) << k) // count and shift by
    30 + k, half up. Exact division would differ by one for negative ties.
    """
    inside = np.ones((*values.shape[:2], 1), np.int64)
    counts = windows(padded(inside, padding, 0), kernel).sum(axis=(3, 4))
    bits = np.frompyfunc(lambda count: int(count - 1).bit_length(), 1, 1)(counts).astype(np.int64)
    multiplier = (((np.int64(1) << 30) + 1) << bits) // counts
    return shift_round(total(values, kernel, padding) * multiplier, 30 + bits, Rounding.NATURAL)
