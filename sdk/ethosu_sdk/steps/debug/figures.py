"""The figures of a layer: its range, and how far it is from what PyTorch computes. Arrays in, numbers out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.evidence.accuracy import Comparison
from ethosu_sdk.records.debug import Range

Array = NDArray[Any]

_MOST_AXES = 5  # beyond them, orders of axes are too many to try


def value_range(values: Array) -> Range:
    """The range of a tensor of whole numbers as stored."""
    limits = np.iinfo(values.dtype)
    least, largest = int(values.min()), int(values.max())
    return Range(
        least=least,
        largest=largest,
        low_share=_share(values == limits.min),
        high_share=_share(values == limits.max),
        used_share=(largest - least + 1) / (int(limits.max) - int(limits.min) + 1),
        distinct=_distinct(values),
    )


def _distinct(values: Array) -> int:
    if values.dtype.itemsize > 2:
        return int(np.unique(values).size)
    unsigned = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").ravel()
    return int(np.count_nonzero(np.bincount(unsigned)))


def _share(found: Array) -> float:
    return float(np.count_nonzero(found)) / found.size


@dataclass(frozen=True)
class Distance:
    """How far a tensor is from a reference. `sqnr_db` is infinite for equal ones, and NaN where it says nothing.

    `even_db` is that of a reference whose rounding errors are evenly spread over a step: more cannot be relied on.
    """

    elements: int
    differing: int
    sqnr_db: float
    cosine: float
    largest_error: float
    mean_error: float
    even_db: float = math.inf

    @property
    def shown_db(self) -> float:
        """The SQNR as it is shown, which is what is judged: a person reads the same."""
        return round(self.sqnr_db, 1)


def distance(values: Array, reference: Array, step: float) -> Distance:
    """Of `values` from `reference`, both in real units."""
    compared = Comparison(step)
    compared.add(0, reference, values)
    error = values.astype(np.float64) - reference.astype(np.float64)
    power = float(np.mean(np.square(reference, dtype=np.float64)))
    return Distance(
        elements=compared.elements,
        differing=compared.elements - compared.equal,
        sqnr_db=compared.sqnr_db,
        cosine=compared.cosine,
        largest_error=compared.max_abs_error,
        mean_error=float(np.mean(error)),
        even_db=10 * math.log10(power / (step * step / 12)) if power and step else math.inf,
    )


@dataclass(frozen=True)
class Own:
    """What one tensor's quantisation costs by itself: the SQNR in dB when the float model's values are rounded to its
    steps, and when they are clipped to its range. Infinite where that costs nothing."""

    rounding_db: float
    clipping_db: float


def own(values: Array, scale: float, zero_point: int, dtype: str) -> Own | None:
    """Of the float model's `values`; None when they are zero everywhere or not finite."""
    exact = values.astype(np.float64)
    power = float(np.mean(np.square(exact)))
    if not power or not math.isfinite(power):
        return None
    limits = np.iinfo(dtype)
    steps = exact / scale + zero_point
    inside = np.clip(steps, limits.min, limits.max)
    noises = (
        np.mean(np.square((np.rint(inside) - inside) * scale)),
        np.mean(np.square((steps - inside) * scale)),
    )
    return Own(*(10 * math.log10(power / noise) if noise else math.inf for noise in map(float, noises)))


def real(stored: Array, scale: float, zero_point: int) -> Array:
    """Stored values in real units."""
    result: Array = (stored.astype(np.float64) - zero_point) * scale
    return result


def arrangements(shape: Sequence[int], wanted: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Orders of the axes of `shape` that give it `wanted`, axes of one element left out of account; the order as it
    is first, then with channels last. Where none does and the number of elements is the same, these two."""
    if prod(shape) != prod(wanted):
        return
    rank = len(shape)
    plain = tuple(range(rank))
    last = (*plain[:1], *plain[2:], 1) if rank >= 3 else plain
    squeezed = [size for size in wanted if size != 1]
    orders = itertools.permutations(plain) if rank <= _MOST_AXES else iter((plain, last))
    fitting = [order for order in orders if [shape[axis] for axis in order if shape[axis] != 1] == squeezed]
    unique: dict[tuple[int, ...], tuple[int, ...]] = {}
    for order in sorted(fitting, key=lambda row: (row != plain, row != last, row)):
        unique.setdefault(tuple(axis for axis in order if shape[axis] != 1), order)
    yield from unique.values() if unique else dict.fromkeys((plain, last))


def is_usual(order: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether an order of the axes of `shape` is that as it is, or that with channels last."""
    plain = tuple(range(len(shape)))
    orders = (order, plain, (*plain[:1], *plain[2:], *plain[1:2]))
    ours, *usual = ([axis for axis in row if shape[axis] != 1] for row in orders)
    return ours in usual


def keeps_form(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether one of :func:`arrangements` is sure to be the tensor's: its axes are those of `shape` in some order, or
    leading ones are joined and the last one stays."""
    sizes, others = ([size for size in row if size != 1] for row in (shape, wanted))
    return sorted(sizes) == sorted(others) or (sizes[-1:] == others[-1:] and prod(sizes) == prod(others))
