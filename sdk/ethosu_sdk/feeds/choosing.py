"""Chooses an index by numbers: the largest, or one drawn by weights. The same bits on every machine.

The firmware's half is firmware/app/choosing.cpp. Numbers are float32; weights are whole numbers, so that neither an
exponential function nor the order of a sum matters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.errors import SimulationError

Array = npt.NDArray[Any]

DTYPES = ("uint8", "int8", "int16", "float32")  # of numbers that are chosen from
_MASK = (1 << 64) - 1
_FRACTION_BITS = 16
_SMALLEST = np.float32(-32.0 * 65536.0)  # a weight below 2^-32 is none
# 2^(32 - 2^(bit - 16)), rounded down, for each bit of a fraction.
POWERS = (
    *(4294921870, 4294876444, 4294785595, 4294603902, 4294240539, 4293513906, 4292061009, 4289156690),
    *(4283353945, 4271771996, 4248701964, 4202935003, 4112874773, 3938502375, 3611622602, 3037000499),
)


def greatest(numbers: Array) -> int:
    """The index of the largest of `numbers` [n], of equal ones the lowest. SimulationError where one is NaN."""
    row = numbers.astype(np.float32)
    if np.isnan(row).any():
        raise SimulationError("a value to choose from is no number")
    return int(row.argmax())


def factor(temperature: float, scale: float) -> np.float32:
    """What a number's distance from the largest is multiplied with: 65536 steps halve the weight."""
    return np.float32(min(65536.0 * math.log2(math.e) * scale / temperature, float(np.finfo(np.float32).max)))


def drawn(numbers: Array, multiplier: np.float32, top_k: int, bits: int) -> int:
    """The index of `numbers` [n] that the 64 random `bits` choose.

    Number i has the weight 2^((x[i] - max) * multiplier / 65536); only the `top_k` largest (0: all; of equal ones
    those with the lowest indices) have one. SimulationError where one is NaN, or the largest is infinite.
    """
    row = numbers.astype(np.float32)
    largest = row[greatest(row)]
    if not np.isfinite(largest):
        raise SimulationError("the largest value to choose from is infinite")
    candidates = np.arange(row.size)
    if 0 < top_k < row.size:
        candidates = np.sort(np.argsort(-row, kind="stable")[:top_k])
    with np.errstate(over="ignore"):
        exponents = (row[candidates] - largest) * multiplier
    weighty = exponents > _SMALLEST
    candidates, steps = candidates[weighty], (-exponents[weighty]).astype(np.uint64)
    weights = np.full(steps.shape, 0xFFFF_FFFF, np.uint64)
    for bit, power in enumerate(POWERS):
        halved = (weights * np.uint64(power)) >> np.uint64(32)
        weights = np.where((steps >> np.uint64(bit)) & np.uint64(1), halved, weights)
    weights >>= steps >> np.uint64(_FRACTION_BITS)
    sums = np.cumsum(weights, dtype=np.uint64)
    return int(candidates[np.searchsorted(sums, np.uint64(bits % int(sums[-1])), side="right")])


def random_bits(seed: int, draw: int) -> int:
    """64 random bits: number `draw` of SplitMix64's sequence for `seed` (Steele, Lea and Flood, OOPSLA 2014)."""
    bits = (seed + (draw + 1) * 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
    return bits ^ bits >> 31
