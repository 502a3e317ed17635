"""What operations compute: arrays in, accumulators out, and the output stage behind them. No registers, no memory."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import errors
from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.operation import (
    Array,
    Bool,
    Curve,
    ElementwiseMode,
    Int64,
    Kernel,
    Lut,
    Output,
    Padding,
    ResizeAxis,
    ResizeMode,
    Rounding,
)

Factor = Int64 | int

_ONE = np.int64(1)
_CACHED_ELEMENTS = 1 << 15  # that several steps compute one after the other
_LONG_ROW = 1 << 11
_FAR = 31  # shifts above this one round twice


def shift_round(
    values: Int64, shift: Factor, rounding: Rounding, sign_of: Int64 | None = None, early: int = 0
) -> Int64:
    """`values` / 2^`shift`, rounded. `sign_of` decides the sign rules (default: `values`).

    NATURAL is half up. DOUBLE is TOSA's DOUBLE_ROUND: for shifts above 31 another 2^30 is added or, for negative
    values, taken away before the shift (TOSA 1.0 specification, apply_scale_32). Of values that TFLite's kernels
    would have shifted left by `early` bits, that bit is `early` lower.
    """
    amount = np.asarray(shift, np.int64)
    if rounding is Rounding.DOWN:
        return np.asarray(values >> amount)
    sign = values if sign_of is None else sign_of
    if rounding is Rounding.TOWARDS_ZERO:
        return np.asarray((values + np.where(sign < 0, (_ONE << amount) - 1, 0)) >> amount)
    added = np.where(amount > 0, _ONE << np.maximum(amount - 1, 0), 0)
    far = amount > _FAR - early
    if rounding is Rounding.DOUBLE and far.any():
        # turns the addition into a subtraction for negative values
        total = (sign >> 63) * np.where(far, _ONE << _FAR - early, 0)
        total += values
        total += added + np.where(far, _ONE << _FAR - 1 - early, 0)
    elif rounding is Rounding.DOUBLE_UP:
        total = values + added + np.where(far, _ONE << _FAR - 1 - early, 0)
    elif rounding is Rounding.SYMMETRIC:
        total = values + added + np.where(amount > 0, sign >> 63, 0)
    else:
        total = values + added
    total >>= amount
    return np.asarray(total)


def rescale(values: Int64, scale: Factor, shift: Factor, rounding: Rounding, early: int = 0) -> Int64:
    """values * scale / 2^shift, rounded. The caller knows that the product fits int64."""
    return shift_round(values * np.asarray(scale, np.int64), shift, rounding, sign_of=values, early=early)


def finish(
    accumulator: Int64,
    output: Output,
    scale: Factor | None,
    shift: Factor | None,
    zero_point: int,
    dtype: np.dtype[Any],
    own_memory: npt.NDArray[np.uint8],
) -> npt.NDArray[Any]:
    """Accumulators of shape (height, width, depth) → the OFM's elements, in `dtype`, neither reversed nor transposed.

    `scale` and `shift` are scalars or one value per channel; `own_memory` is the NPU's, with its tables. Values
    that do not fit `dtype` wrap, as a store of the low bits does. 32-bit results take no zero point: the softmax of
    Vela 3.9 to 4.5 leaves that of an earlier operation in the register.
    """
    values = accumulator
    if output.scaled and scale is not None and shift is not None:
        values = rescale(values, scale, shift, output.rounding, output.early)
    if output.curve is not None:
        points = _CURVES[output.curve] if output.lut is None else _points(output.lut, own_memory)
        values = curved(values, output.curve, points)
    if dtype.itemsize <= 2 or output.lut is not None:
        values = values + zero_point
    if output.clamp is not None:
        np.clip(values, *output.clamp, out=values)
    if output.lut is not None and output.curve is None:
        values = look_up(values, output.lut, own_memory)
    return values.astype(dtype)


@dataclass(frozen=True)
class ChannelScaling:
    """What the output stage does to each channel's sums, of 32 bits without their bias. `steps` has a row for what is
    added first, the scale, what is added then (which rounds, and is the zero point), the shift, and the bits of a
    negative sum that are added beside; no row is that where it is 0. `largest` bounds the absolute values of the
    first three."""

    steps: Int64
    largest: tuple[int, int, int]

    @classmethod
    def of_scales(
        cls, bias: Int64, scale: Int64, shift: Int64, rounding: Rounding, zero_point: int
    ) -> ChannelScaling:
        """For NATURAL and DOUBLE, as `finish` rounds."""
        added = np.where(shift > 0, _ONE << np.maximum(shift - 1, 0), 0) + (np.int64(zero_point) << shift)
        rows = [bias, scale, added, shift]
        far = shift > _FAR
        if rounding is Rounding.DOUBLE and far.any():
            added += np.where(far, _ONE << _FAR - 1, 0)
            rows.append(np.where(far, -_ONE << _FAR, 0))  # of a negative number of 32 bits: -2^31
        most = (abs(zero_point) + 1 << int(shift.max())) + (1 << _FAR)
        return cls(np.stack(rows), (int(np.abs(bias).max()), int(scale.max()), most))

    def holds(self, largest_sum: int) -> bool:
        """Whether sums up to this one have 32 bits with their bias, and all products 63."""
        bias, scale, added = self.largest
        return largest_sum + bias < _INT32_SAFE and (
            (largest_sum + bias) * scale + added <= np.iinfo(np.int64).max
        )

    def finish(self, sums: Array, clamp: tuple[int, int] | None, result: Array) -> None:
        """Put the OFM's elements into `result`, computed in parts that stay in the cache."""
        height, width, depth = sums.shape
        together = _together(width, depth)
        shape = (height, width // together, together * depth)
        rows, given = result.reshape(shape), sums.reshape(shape)
        steps = self.steps.reshape(-1, 1, depth).repeat(together, 1)
        bias, scale, added, shift, *sign = steps.reshape(len(steps), -1)
        high = max(1, _CACHED_ELEMENTS // (width * depth))
        for top in range(0, height, high):
            values = given[top : top + high].astype(np.int64)
            values += bias
            below = [values & bits for bits in sign]
            values *= scale
            values += added
            for row in below:
                values += row
            values >>= shift
            if clamp is not None:
                np.maximum(values, clamp[0], out=values)
                np.minimum(values, clamp[1], out=values)
            rows[top : top + high] = values


@functools.lru_cache(1024)
def _together(width: int, depth: int) -> int:
    """How many positions of a row are taken as one: NumPy's inner loops are as long as what all rows share."""
    return next(part for part in range(max(1, _LONG_ROW // depth), 0, -1) if not width % part)


def arranged(elements: npt.NDArray[Any], output: Output) -> npt.NDArray[Any]:
    """All elements of an OFM as they are stored: reversed, transposed."""
    if output.reverse is not None:
        elements = np.flip(elements, output.reverse)
    return elements if output.transpose is None else elements.transpose(output.transpose)


def look_up(values: Int64, lut: Lut, own_memory: npt.NDArray[np.uint8]) -> Int64:
    """Replace every value by its table entry.

    With 16-bit indices, a result of 16 bits is rounded; one of 32 bits keeps the seven bits of the fraction.
    """
    limits = np.iinfo(lut.index)
    index = np.clip(values, limits.min, limits.max) - limits.min
    if lut.index.itemsize == 1:
        return np.asarray(_table(lut, own_memory).view(lut.result).astype(np.int64)[index])
    points = _points(lut, own_memory)
    entry, fraction = index >> 7, index & 127
    fine = (points[entry, 0] << 7) + points[entry, 1] * fraction
    return np.asarray(fine if lut.result.itemsize == 4 else (fine + 64) >> 7)


def _table(lut: Lut, own_memory: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    if not 0 <= lut.address <= lut.end <= own_memory.size:
        raise BusError(
            f"a look-up table of {lut.end - lut.address} bytes at {lut.address:#x} of the NPU's memory does not exist"
        )
    return own_memory[lut.address : lut.end]


def _points(lut: Lut, own_memory: npt.NDArray[np.uint8]) -> Int64:
    """Base and slope at 512 places."""
    return np.asarray(_table(lut, own_memory).view("<i2").astype(np.int64).reshape(-1, 2))


# The places (in steps of 1/24) where TFLite's table of the logistic function is one higher than the rounded function.
_RAISED = (
    4,
    8,
    12,
    14,
    15,
    16,
    17,
    19,
    20,
    21,
    22,
    25,
    27,
    28,
    29,
    30,
    31,
    33,
    34,
    35,
    37,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    49,
    50,
    54,
    62,
    63,
    64,
    66,
    82,
    86,
    93,
    100,
    103,
    112,
    116,
    135,
    255,
)


def _sigmoid_points() -> Int64:
    """What TFLite's 16-bit kernels interpolate: the logistic function by 65536, less its half, in steps of 1/24."""
    upper = np.round(65536 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64) - 32768
    upper[list(_RAISED)] += 1
    base = np.concatenate([[-upper[-1]], -upper[:0:-1], upper])
    return np.stack([base, np.append(np.diff(base), 0)], axis=1)


def _saturated(points: Int64) -> Int64:
    """The points with flat ends, one step short of 0 and 1: how TFLite's logistic function ends."""
    ends = np.array([-32766, 0]), np.array([32766, 0])
    return np.concatenate([np.tile(ends[0], (2, 1)), points[2:-1], ends[1][np.newaxis]])


_CURVES = {Curve.TANH: _sigmoid_points(), Curve.SIGMOID: _saturated(_sigmoid_points())}


def curved(values: Int64, curve: Curve, points: Int64) -> Int64:
    """tanh or the logistic function of `values` / 12288, in units of 2^-15, as TFLite's 16-bit kernels compute them.

    The same points serve both: tanh(x) is twice the logistic function of 2x, less 1. Ties go away from the middle.
    """
    bits = 8 if curve is Curve.TANH else 9
    most = (256 << bits) - 1
    place = np.clip(values, -most, most)
    entry = (place >> bits) + 256
    fine = (points[entry, 0] << bits) + points[entry, 1] * (place & ((1 << bits) - 1))
    if curve is Curve.TANH:
        return np.asarray((fine + 128 + (place >> 63)) >> 8)
    return np.asarray((fine + (1 << 24) + 512 + (place >> 63)) >> 10)


def upscaled(values: Array, mode: int, height: int, width: int) -> Array:
    """`values` doubled along height and width, cut to the size: 1 repeats, 2 puts zeros between, 0 does nothing."""
    if mode == 0:
        return values
    if mode == 1:
        return values.repeat(2, 0).repeat(2, 1)[:height, :width]
    result = np.zeros((2 * values.shape[0], 2 * values.shape[1], values.shape[2]), values.dtype)
    result[::2, ::2] = values
    return result[:height, :width]


def padded(values: Array, padding: Padding, fill: int) -> Array:
    """`values` with rows and columns of `fill` around."""
    if not padding.any:
        return values
    height, width, depth = values.shape
    around = (height + padding.top + padding.bottom, width + padding.left + padding.right, depth)
    result: Array = np.full(around, fill, values.dtype)
    result[padding.top : padding.top + height, padding.left : padding.left + width] = values
    return result


def windows(values: Array, kernel: Kernel) -> Array:
    """A view of (OFM height, OFM width, depth, kernel height, kernel width)."""
    if kernel.height == kernel.width == 1:
        return values[:: kernel.stride_y, :: kernel.stride_x, :, np.newaxis, np.newaxis]
    spans = (kernel.dilated_height, kernel.dilated_width)
    view = np.lib.stride_tricks.sliding_window_view(values, spans, axis=(0, 1))  # type: ignore[call-overload]
    return np.asarray(
        view[:: kernel.stride_y, :: kernel.stride_x, :, :: kernel.dilation_y, :: kernel.dilation_x]
    )


def taps(values: Array, kernel: Kernel, axis: int) -> Iterator[Array]:
    """Along axis 0 or 1: for each of the kernel's elements, a view of what it meets at all OFM positions."""
    size, stride, dilation = (
        (kernel.height, kernel.stride_y, kernel.dilation_y),
        (kernel.width, kernel.stride_x, kernel.dilation_x),
    )[axis]
    count = (values.shape[axis] - (size - 1) * dilation - 1) // stride + 1
    for element in range(size):
        errors.check()
        part = slice(element * dilation, element * dilation + (count - 1) * stride + 1, stride)
        yield values[part] if axis == 0 else values[:, part]


# Convolution, on values whose zero points are gone.

_FLOAT32_EXACT = 1 << 24  # every integer up to here is a float32
_INT32_SAFE = 1 << 31
_COLUMN_ELEMENTS = 1 << 20  # of the unrolled input at a time: it stays in the cache
_UNCHECKED = 64  # pieces between two looks at the clock
_ONE_THREAD = 1 << 18  # multiply-accumulates that OpenBLAS does not share between threads


def largest_sum(weights: npt.NDArray[np.int16]) -> int:
    """The largest sum of absolute weights, of (OFM, height, width, IFM), over one OFM channel: together with the
    largest absolute input it bounds every partial sum, whatever the order of the additions."""
    return int(np.abs(weights).sum(axis=(1, 2, 3), dtype=np.int64).max(initial=0))


def exact_float(largest_sum: int) -> type[np.float32] | type[np.float64]:
    """The narrowest float type in which no partial sum up to `largest_sum` is rounded.

    float64 holds 53 bits; 16-bit inputs times 9-bit weights need 2^28 terms to get there, more than fit memory.
    """
    return np.float32 if largest_sum < _FLOAT32_EXACT else np.float64


def convolve(values: Array, weights: npt.NDArray[np.float32], kernel: Kernel) -> Array:
    """Sums of products, (OFM height, OFM width, OFM depth). `values` is padded, zero points subtracted, of a type
    that holds every sum; `weights` (OFM, height, width, IFM)."""
    matrix = weights.reshape(weights.shape[0], -1).astype(values.dtype, copy=False).T
    columns = windows(values, kernel).transpose(0, 1, 3, 4, 2)
    height, width = columns.shape[:2]
    result = np.empty((height, width, matrix.shape[1]), values.dtype)
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
        for number, top in enumerate(range(0, rows, high)):
            if not number % _UNCHECKED:
                errors.check()
            piece = result[top : top + high, first : first + wide]
            np.matmul(left[top : top + high], right[:, first : first + wide], out=piece)
    return result


def convolve_depthwise(values: Array, weights: npt.NDArray[np.float32], kernel: Kernel) -> Array:
    """One kernel per channel. `values` is (rows, columns, OFM depth), of a type that holds every sum, `weights` (OFM,
    height, width, 1).

    An IFM of one channel is used for all.
    """
    height = (values.shape[0] - kernel.dilated_height) // kernel.stride_y + 1
    width = (values.shape[1] - kernel.dilated_width) // kernel.stride_x + 1
    depth, stride = weights.shape[0], kernel.stride_x
    # For each column that a stride begins with, all that lie strides behind it: a row of the OFM is then multiplied
    # with what lies together in memory.
    wide: Array = np.broadcast_to(values, (*values.shape[:2], depth))
    phases = [np.ascontiguousarray(wide[:, first::stride]) for first in range(min(stride, wide.shape[1]))]
    step, together = max(1, _CACHED_ELEMENTS // (width * depth)), _together(width, depth)
    total: Array = np.empty((height, width // together, together * depth), values.dtype)
    product: Array = np.empty((min(step, height), *total.shape[1:]), values.dtype)
    places = list(itertools.product(range(kernel.height), range(kernel.width)))
    taps = np.tile(weights.reshape(depth, -1).T.astype(values.dtype), together)
    for start in range(0, height, step):
        errors.check()
        sums = total[start : start + step]
        products = sums
        for (y, x), tap in zip(places, taps, strict=True):
            top = start * kernel.stride_y + y * kernel.dilation_y
            left, phase = divmod(x * kernel.dilation_x, stride)
            rows = slice(top, top + (len(sums) - 1) * kernel.stride_y + 1, kernel.stride_y)
            np.multiply(phases[phase][rows, left : left + width].reshape(sums.shape), tap, out=products)
            if products is not sums:
                sums += products
            products = product[: len(sums)]
    return total.reshape(height, width, depth)


def multiply_batches(pairs: Iterable[tuple[Array, Array]], largest: int) -> Int64:
    """For each pair of `values` (columns, K) and a `matrix` (OFM depth, K): their product, (columns, OFM depth).

    `largest` bounds the product of two elements. Shape of the result: (pairs, columns, OFM depth).
    """
    products = []
    for values, matrix in pairs:
        kind = exact_float(values.shape[1] * largest)
        products.append(multiply(values.astype(kind), matrix.astype(kind).T).astype(np.int64))
    return np.stack(products)


# Pooling.

LOWEST = -(1 << 40)  # below every value: padding never is a maximum


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
    return np.asarray(index << 16 | best & 0xFFFF)


def average_of_valid(values: Int64, kernel: Kernel, padding: Padding) -> Int64:
    """The mean of what lies under the kernel without the padding, by TOSA's reciprocal.

    TOSA 1.0, reciprocal_scale: with k bits in count - 1, multiply by ((2^30 + 1) << k) // count and shift by
    30 + k, half up. Exact division would differ by one for negative ties.
    """
    counts = total(np.ones((*values.shape[:2], 1), np.int64), kernel, padding)
    bits = np.frexp((counts - 1).astype(np.float64))[1].astype(np.int64)  # the bit length
    multiplier = (((np.int64(1) << 30) + 1) << bits) // counts
    return shift_round(total(values, kernel, padding) * multiplier, 30 + bits, Rounding.NATURAL)


# Elementwise operations, on values whose zero points are gone.


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
    ElementwiseMode.AND_NOT: lambda left, right: np.asarray(left & ~right),
}
UNARY: Mapping[ElementwiseMode, Callable[[Int64], Int64]] = {
    ElementwiseMode.ABS: np.abs,
    ElementwiseMode.CLZ: count_leading_zeros,
    ElementwiseMode.NOT: np.bitwise_not,
}


# RESIZE: interpolation between the IFM's elements.


def resize(
    values: Array, mode: ResizeMode, axes: tuple[ResizeAxis, ResizeAxis], height: int, width: int
) -> Int64:
    """`values` (rows, columns, depth) at `height` x `width` positions.

    BILINEAR weights both neighbours by their distance; its sums carry both denominators as a factor.
    """
    for axis_number, (axis, count) in enumerate(zip(axes, (height, width), strict=True)):
        values = _resized(values, mode, axis_number, axis, count)
    return values.astype(np.int64)


def _resized(values: Array, mode: ResizeMode, axis_number: int, axis: ResizeAxis, count: int) -> Array:
    """`values` at `count` positions along one axis; beyond the edge, the edge."""
    position = np.arange(count, dtype=np.int64) * axis.step + axis.offset
    first, way = position // axis.denominator, position % axis.denominator
    last = values.shape[axis_number] - 1
    if mode is not ResizeMode.BILINEAR:  # the nearer neighbour, at half way the second
        return values.take(np.clip(first + (2 * way >= axis.denominator), 0, last), axis_number)
    shape = [1, 1, 1]
    shape[axis_number] = count
    weight = way.reshape(shape)
    low = values.take(np.clip(first, 0, last), axis_number)
    high = values.take(np.clip(first + 1, 0, last), axis_number)
    return np.asarray(low * (axis.denominator - weight) + high * weight)
