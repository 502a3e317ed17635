"""Whether rounding explains how far an execution is from its reference, and the figures of one output in a link of
the chain. The reference is compared with the execution, and with trials: runs of the reference in which every value
was rounded another way. What the worst trial shows, times a factor, and one step of the output's own, is what
rounding explains. docs/guide/accuracy.md gives the formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ethosu_sdk.records.compile import Figure, LinkOutput, TiesUp

Array = npt.NDArray[Any]

_FACTOR = 2.0  # in amplitude: four times the power
_LARGEST_FACTOR = 4.0  # of the largest error: the tail of a distribution says less than its mean
_FLOAT_STEP = 2.0**-20  # of the largest value, where there is no quantisation
_COUNT_SIGMAS = 3.0


@dataclass(frozen=True)
class Distance:
    """One output of an execution against its reference. `rms` and `largest` are of the errors, in the output's unit;
    None for truth values and integers, of which `differing` counts those that are not the same. `not_finite` elements
    are NaN or infinite in the execution alone; `left_out` are so in the reference or a trial, and not judged. `step`
    is the least difference that counts; `sample` the number of the inputs."""

    elements: int
    equal: int
    left_out: int
    not_finite: int
    step: float
    sqnr_db: float
    rms: Figure | None
    largest: Figure | None
    differing: Figure | None
    ties_up: TiesUp | None = None
    sample: int = 0

    @property
    def explained(self) -> bool:
        figures = (self.rms, self.largest, self.differing)
        return not self.not_finite and all(row is None or row.executed <= row.limit for row in figures)

    @property
    def detail(self) -> str:
        return self._words() + (f" (sample {self.sample})" if self.sample else "")

    def _words(self) -> str:
        if self.elements == self.equal:
            return f"all {self.elements:,} elements are equal"
        if self.not_finite:
            return f"{self.not_finite:,} of {self.elements:,} elements are NaN or infinite, not by rounding"
        if self.differing is not None:
            row = self.differing
            return f"{row.executed:,.0f} of {self.elements:,} elements differ, rounding explains {row.limit:,.0f}"
        assert self.rms is not None
        assert self.largest is not None
        row, name = self.rms, "rms"
        if not self.explained and row.executed <= row.limit:
            row, name = self.largest, "largest"
        words = f"error {row.executed / self.step:.3g} steps ({name}), rounding explains {row.limit / self.step:.3g}"
        if not self.step:
            words = f"error {row.executed:.3g} ({name}), rounding explains {row.limit:.3g}"
        if self.ties_up is not None and self.ties_up.equal == self.elements:
            words += "; with ties rounded up, as the NPU does, all elements are equal"
        return words


def distance(
    executed: Array, reference: Array, trials: Sequence[Array], step: float | None, *, exact: bool = False
) -> Distance:
    """How far `executed` is from `reference`, arrays of one shape and in one unit, and how far rounding explains.
    `step` is that of the output's quantisation, 1 where integers are quantised values themselves. Without rounding on
    the way (`exact`) every element must be the same."""
    if reference.dtype.kind != "f" and step is None:
        return _counted(executed, reference, trials, exact=exact)
    e, r, t = (array.astype(np.float64) for array in (executed, reference, np.stack(trials)))
    same = (e == r) | (np.isnan(e) & np.isnan(r))
    usable = np.isfinite(r) & np.isfinite(t).all(axis=0)
    broken = usable & ~np.isfinite(e)
    kept = usable & ~broken
    size = max(int(kept.sum()), 1)
    largest_value = float(np.abs(r[kept]).max(initial=0.0))
    least = max(step or 0.0, _FLOAT_STEP * largest_value)
    with np.errstate(invalid="ignore", over="ignore"):  # of elements that are not kept
        error, around = e - r, [row - r for row in t]
    noise = _rms(error, kept, size)
    rounding = max(_rms(row, kept, size) for row in around)
    worst = max(float(np.abs(row[kept]).max(initial=0.0)) for row in around)
    signal = _rms(r, kept, size)
    ratio = math.inf if not noise else -math.inf
    if signal and noise:
        ratio = 20.0 * math.log10(signal / noise)
    return Distance(
        elements=r.size,
        equal=int(same.sum()),
        left_out=int((~usable).sum()),
        not_finite=int(broken.sum()),
        step=least,
        sqnr_db=ratio,
        rms=Figure(executed=noise, rounding=rounding, limit=math.hypot(_FACTOR * rounding, least)),
        largest=Figure(
            executed=float(np.abs(error[kept]).max(initial=0.0)),
            rounding=worst,
            limit=_LARGEST_FACTOR * worst + 2.0 * least,
        ),
        differing=None,
    )


def exact_distance(executed: Array, reference: Array, step: float | None) -> Distance:
    """How far `executed` is from a `reference` whose every element it must have."""
    given, wanted = executed.astype(np.float64), reference.astype(np.float64)
    found = distance(given, wanted, [wanted], step)
    assert found.rms is not None
    assert found.largest is not None
    return replace(
        found,
        rms=msgspec.structs.replace(found.rms, limit=0.0),
        largest=msgspec.structs.replace(found.largest, limit=0.0),
    )


def moved(reference: Array, other: Array, trial: Array) -> Array:
    """`reference` as far from itself as `trial` is from `other`, where it was not tried itself."""
    if reference.dtype.kind == "b":
        return np.logical_xor(reference, np.logical_xor(trial, other))
    with np.errstate(invalid="ignore", over="ignore"):
        apart: Array = reference + (trial - other)
    return apart


def near(executed: Array, ties_up: Array, step: float) -> TiesUp:
    """How near `executed` is to the reference with ties rounded up. Values that are dequantised in another order of
    float32 operations are the same: less than a hundredth of a `step` apart."""
    with np.errstate(invalid="ignore"):  # infinity less infinity, which the second line counts
        error = np.abs(executed.astype(np.float64) - ties_up.astype(np.float64))
    same = (error <= step / 100) | (executed == ties_up) | (np.isnan(executed) & np.isnan(ties_up))
    return TiesUp(equal=int(same.sum()), largest=float(error[np.isfinite(error)].max(initial=0.0)))


def _rms(values: npt.NDArray[np.float64], kept: npt.NDArray[np.bool_], size: int) -> float:
    chosen = values[kept]
    return math.sqrt(float(chosen @ chosen) / size)


def _counted(executed: Array, reference: Array, trials: Sequence[Array], *, exact: bool) -> Distance:
    """Of integers and truth values, which are classes or indices as a rule, only equality says something."""
    found = int((executed != reference).sum())
    rounding = 0 if exact else max(int((row != reference).sum()) for row in trials)
    spread = 0.0 if exact else _COUNT_SIGMAS * math.sqrt(reference.size)
    return Distance(
        elements=reference.size,
        equal=reference.size - found,
        left_out=0,
        not_finite=0,
        step=1.0,
        sqnr_db=math.nan,
        rms=None,
        largest=None,
        differing=Figure(executed=found, rounding=rounding, limit=_FACTOR**2 * rounding + spread),
    )


def linked_output(index: int, name: str, executed: Array, reference: Array) -> LinkOutput:
    """The figures of one output in a link of the chain, from arrays of one shape. Integers and truth values have no
    difference and no ratio, nor has a ratio what has no noise or no signal."""
    same = int(equal_elements(executed, reference).sum())
    if reference.dtype.kind != "f":
        return LinkOutput(index=index, name=name, elements=reference.size, equal=same)
    e, r = executed.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(e) & np.isfinite(r)
    error, signal = (e - r)[finite], r[finite]
    noise, power = float(error @ error), float(signal @ signal)
    return LinkOutput(
        index=index,
        name=name,
        elements=reference.size,
        equal=same,
        largest=float(np.abs(error).max(initial=0.0)),
        sqnr_db=10.0 * math.log10(power / noise) if noise and power else None,
    )


def equal_elements(one: Array, other: Array) -> Any:
    same = one == other
    if other.dtype.kind == "f":
        same |= np.isnan(one) & np.isnan(other)
    return same
