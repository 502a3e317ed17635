"""Figures as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MOST_DIGITS = 6  # decimals of numbers that hardly differ
_TWO_PLACES = 10  # a number from here on has one decimal
_LEAST_PERCENT = 0.1
_EXACT_PERCENT = 10  # below, a percentage has a decimal


def shape(sizes: Sequence[int]) -> str:
    """Sizes as text, such as ``8x8x16``."""
    return "x".join(map(str, sizes))


def numbers(*values: float) -> list[str]:
    """Numbers with their thousands apart and as many decimals as show that they differ: ``0.087``, ``0.051``."""
    if all(value == int(value) for value in values):
        return [f"{value:,.0f}" for value in values]
    digits = max(map(_decimals, values))
    while digits < _MOST_DIGITS and len({f"{value:.{digits}f}" for value in values}) < len(set(values)):
        digits += 1
    return [f"{value:,.{digits}f}" for value in values]


def _decimals(value: float) -> int:
    """Decimals of three digits at least, two of them significant."""
    size = abs(value)
    if not size or size >= _TWO_PLACES:
        return 1
    return min(max(2 if size >= 1 else 3, 1 - math.floor(math.log10(size))), _MOST_DIGITS)


def percent(share: float) -> str:
    """A share of 1 as a percentage; what is there is never 0 %."""
    value = 100 * share
    if 0 < value < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT} %"
    return f"{value:.{0 if not value or value >= _EXACT_PERCENT else 1}f} %"
