"""The output stage: scale, round, add the zero point, clamp, look up, reverse, transpose. Arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.arrays import Int64
from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.operation import Lut, Output, Rounding

Factor = Int64 | int

_ONE = np.int64(1)
_FAR = 31  # shifts above this one round twice
_TABLE_ENTRIES = 256
_POINTS = 512  # of an interpolated table


def shift_round(values: Int64, shift: Factor, rounding: Rounding, sign_of: Int64 | None = None) -> Int64:
    """`values` / 2^`shift`, rounded. `sign_of` decides the sign rule of DOUBLE (default: `values`).

    NATURAL is half up. DOUBLE is TOSA's DOUBLE_ROUND: for shifts above 31 another 2^30 is added or, for negative
    values, taken away before the shift (TOSA 1.0 specification, apply_scale_32).
    """
    amount = np.asarray(shift, np.int64)
    if rounding is Rounding.DOWN:
        return np.asarray(values >> amount)
    added = np.where(amount > 0, _ONE << np.maximum(amount - 1, 0), 0)
    far = amount > _FAR
    if rounding is Rounding.DOUBLE and far.any():
        sign = values if sign_of is None else sign_of
        total = (sign >> 63) * np.where(far, _ONE << 31, 0)  # turns +2^30 into -2^30 for negative values
        total += values
        total += added + np.where(far, _ONE << 30, 0)
    else:
        total = values + added
    total >>= amount
    return np.asarray(total)


def rescale(values: Int64, scale: Factor, shift: Factor, rounding: Rounding) -> Int64:
    """values * scale / 2^shift, rounded. The caller knows that the product fits int64."""
    return shift_round(values * np.asarray(scale, np.int64), shift, rounding, sign_of=values)


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
    that do not fit `dtype` wrap, as a store of the low bits does.
    """
    values = accumulator
    if output.scaled and scale is not None and shift is not None:
        values = rescale(values, scale, shift, output.rounding)
    values = values + zero_point
    if output.clamp is not None:
        np.clip(values, *output.clamp, out=values)
    if output.lut is not None:
        values = look_up(values, output.lut, own_memory)
    return values.astype(dtype)


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
        table = _table(own_memory, lut.address, _TABLE_ENTRIES * lut.result.itemsize)
        return np.asarray(table.view(lut.result).astype(np.int64)[index])
    points = _table(own_memory, lut.address, 4 * _POINTS).view("<i2").astype(np.int64).reshape(-1, 2)
    entry, fraction = index >> 7, index & 127
    fine = (points[entry, 0] << 7) + points[entry, 1] * fraction
    return np.asarray(fine if lut.result.itemsize == 4 else (fine + 64) >> 7)


def _table(own_memory: npt.NDArray[np.uint8], start: int, length: int) -> npt.NDArray[np.uint8]:
    if not 0 <= start <= own_memory.size - length:
        raise BusError(f"a look-up table of {length} bytes at {start:#x} of the NPU's memory does not exist")
    return own_memory[start : start + length]
