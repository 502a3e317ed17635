"""The output stage: scaling with rounding, zero point, clamp, table look-up. Arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.operation import Output, Rounding

Int64 = npt.NDArray[np.int64]
Factor = Int64 | int

_ONE = np.int64(1)
LUT_SLOT_BYTES = 256
_LUT_BYTES = 2048


def shift_round(values: Int64, shift: Factor, rounding: Rounding, sign_of: Int64 | None = None) -> Int64:
    """`values` / 2^`shift`, rounded. `sign_of` decides the sign rule of DOUBLE (default: `values`).

    NATURAL is half up. DOUBLE is TOSA's DOUBLE_ROUND: for shifts above 31 another 2^30 is added or, for negative
    values, taken away before the shift (TOSA 1.0 specification, apply_scale_32).
    """
    amount = np.asarray(shift, np.int64)
    half = np.where(amount > 0, _ONE << np.maximum(amount - 1, 0), 0)
    if rounding is Rounding.DOUBLE:
        sign = values if sign_of is None else sign_of
        extra = np.where(sign >= 0, _ONE << 30, -(_ONE << 30))
        half = half + np.where(amount > 31, extra, 0)
    result: Int64 = (values + half) >> amount
    return result


def rescale(values: Int64, scale: Factor, shift: Factor, rounding: Rounding) -> Int64:
    """values * scale / 2^shift, rounded. The product of 32 and 32 bits (or 48 and 15) fits int64."""
    return shift_round(values * np.asarray(scale, np.int64), shift, rounding, sign_of=values)


def finish(
    accumulator: Int64,
    output: Output,
    scale: Factor | None,
    shift: Factor | None,
    zero_point: int,
    dtype: np.dtype[Any],
    lut: npt.NDArray[np.uint8],
) -> npt.NDArray[Any]:
    """Accumulators of shape (height, width, depth) → the OFM's elements, in `dtype`.

    `scale` and `shift` are scalars or one value per channel; `lut` is the shared RAM from slot 0 on. Values that
    do not fit `dtype` wrap, as a store of the low bits does.
    """
    values = accumulator
    if output.scaled and scale is not None and shift is not None:
        values = rescale(values, scale, shift, output.rounding)
    values = values + zero_point
    if output.clamp is not None:
        values = np.clip(values, *output.clamp)
    if output.lut is not None:
        values = look_up(values, output.lut, dtype, lut)
    return values.astype(dtype)


def look_up(values: Int64, slot: int, dtype: np.dtype[Any], lut: npt.NDArray[np.uint8]) -> Int64:
    """Replace every value by its table entry.

    8-bit results index 256 bytes by the value, 32-bit results 256 words by an int8 value; 16-bit results
    interpolate between 512 points: base in the low half of each word, slope in the high half.
    """
    start = slot * LUT_SLOT_BYTES
    if dtype.itemsize == 1:
        table = _table(lut, start, 256).view(dtype).astype(np.int64)
        return np.asarray(table[np.clip(values + 128 if dtype.kind == "i" else values, 0, 255)])
    if dtype.itemsize == 4:
        words32 = _table(lut, start, 1024).view("<i4").astype(np.int64)
        return np.asarray(words32[np.clip(values + 128, 0, 255)])
    words = _table(lut, start, _LUT_BYTES).view("<i2").astype(np.int64).reshape(-1, 2)
    index = np.clip(values + 32768, 0, 65535)
    entry, fraction = index >> 7, index & 127
    return np.asarray(((words[entry, 0] << 7) + words[entry, 1] * fraction + 64) >> 7)


def _table(lut: npt.NDArray[np.uint8], start: int, length: int) -> npt.NDArray[np.uint8]:
    if start + length > lut.size:
        raise BusError(f"a look-up table of {length} bytes in slot {start // LUT_SLOT_BYTES} does not exist")
    return lut[start : start + length]
