"""Convolution and depthwise convolution on values whose zero points are gone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.arrays import Array, Int64
from ethosu_sdk.npu.operation import Kernel
from ethosu_sdk.npu.ops.window import windows

_FLOAT32_EXACT = 1 << 24  # every integer up to here is a float32
_INT32_SAFE = 1 << 31
_COLUMN_ELEMENTS = 1 << 20  # of the unrolled input at a time: it stays in the cache
_ONE_THREAD = 1 << 18  # multiply-accumulates that OpenBLAS does not share between threads


@dataclass(frozen=True)
class ConvWeights:
    """Convolution weights as a matrix of (kernel height x kernel width x IFM, OFM).

    `largest_sum` is the largest sum of absolute weights over one OFM channel: together with the largest absolute
    input it bounds every partial sum, whatever the order of the additions.
    """

    matrix: npt.NDArray[np.int16]
    largest_sum: int

    @classmethod
    def of(cls, weights: npt.NDArray[np.int16]) -> ConvWeights:
        """From weights of (OFM, height, width, IFM)."""
        flat = weights.reshape(weights.shape[0], -1)
        return cls(flat.T, int(np.abs(flat).sum(axis=1, dtype=np.int64).max(initial=0)))


def exact_float(largest_sum: int, largest_input: int) -> type[np.float32] | type[np.float64]:
    """The narrowest float type in which no partial sum can be rounded.

    float64 holds 53 bits; 16-bit inputs times 9-bit weights need 2^28 terms to get there, more than fit memory.
    """
    return np.float32 if largest_sum * largest_input < _FLOAT32_EXACT else np.float64


def convolve(values: Array, weights: ConvWeights, kernel: Kernel, largest_input: int) -> Int64:
    """Sums of products, (OFM height, OFM width, OFM depth). `values` is padded, zero points subtracted."""
    kind = exact_float(weights.largest_sum, largest_input)
    matrix = weights.matrix.astype(kind)
    columns = windows(values.astype(kind), kernel).transpose(0, 1, 3, 4, 2)
    height, width = columns.shape[:2]
    result = np.empty((height, width, matrix.shape[1]), np.int64)
    wide = min(width, max(1, _COLUMN_ELEMENTS // matrix.shape[0]))
    high = max(1, _COLUMN_ELEMENTS // (wide * matrix.shape[0]))
    for top, left in itertools.product(range(0, height, high), range(0, width, wide)):
        part = columns[top : top + high, left : left + wide]
        product = multiply(part.reshape(-1, matrix.shape[0]), matrix)
        result[top : top + high, left : left + wide] = product.reshape(*part.shape[:2], -1)
    return result


def multiply(left: Array, right: Array) -> Array:
    """The matrix product of two float arrays, in pieces that the BLAS computes on the calling thread.

    OpenBLAS shares larger products between threads that wait for each other: on a busy machine each product
    then takes a scheduler's time slice, many times the arithmetic.
    """
    rows, inner = left.shape
    columns = right.shape[1]
    wide = min(columns, max(8, _ONE_THREAD // (inner * min(rows, 64))))
    high = max(1, _ONE_THREAD // (inner * wide))
    result: Array = np.empty((rows, columns), left.dtype)
    for first in range(0, columns, wide):
        for top in range(0, rows, high):
            deadline.check()
            piece = result[top : top + high, first : first + wide]
            np.matmul(left[top : top + high], right[:, first : first + wide], out=piece)
    return result


def convolve_depthwise(
    values: Array, weights: npt.NDArray[np.int16], kernel: Kernel, largest_input: int
) -> Int64:
    """One kernel per channel. `values` is (rows, columns, OFM depth), `weights` (OFM, height, width, 1).

    An IFM of one channel is used for all.
    """
    height = (values.shape[0] - kernel.dilated_height) // kernel.stride_y + 1
    width = (values.shape[1] - kernel.dilated_width) // kernel.stride_x + 1
    bound = int(np.abs(weights).sum(axis=(1, 2, 3), dtype=np.int64).max(initial=0)) * largest_input
    kind: npt.DTypeLike = np.int32 if bound < _INT32_SAFE else np.int64
    data: Array = values.astype(kind)
    taps: Array = weights.astype(kind)
    total: Array = np.zeros((height, width, weights.shape[0]), kind)
    for row in range(kernel.height):
        for column in range(kernel.width):
            deadline.check()
            top, left = row * kernel.dilation_y, column * kernel.dilation_x
            part = data[
                top : top + (height - 1) * kernel.stride_y + 1 : kernel.stride_y,
                left : left + (width - 1) * kernel.stride_x + 1 : kernel.stride_x,
            ]
            total += part * taps[:, row, column, 0]
    return np.asarray(total.astype(np.int64))


def multiply_batches(pairs: Iterable[tuple[Array, Array]], largest: int) -> Int64:
    """For each pair of `values` (columns, K) and a `matrix` (OFM depth, K): their product, (columns, OFM depth).

    `largest` bounds the product of two elements. Shape of the result: (pairs, columns, OFM depth).
    """
    products = []
    for values, matrix in pairs:
        kind = exact_float(values.shape[1] * largest, 1)
        products.append(multiply(values.astype(kind), matrix.astype(kind).T).astype(np.int64))
    return np.stack(products)
