"""Outputs of two executions compared: pass or fail within a tolerance, and figures over many samples. A pair has a
reference r and a candidate c of the same shape. All sums run over every element of every sample, in float64;
docs/guide/accuracy.md gives the formulas. A figure is a float: infinite where the formula says so, NaN where it says
nothing, and :meth:`Comparison.reason` then tells why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

HISTOGRAM_LSB = 16  # differences up to this many LSBs are counted each by itself


@dataclass(frozen=True)
class Check:
    """One thing that was checked, with the figures that decide it."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Tolerance:
    """|got - want| <= atol + rtol * |want|; if both are 0, all bits must be equal."""

    atol: float = 0.0
    rtol: float = 0.0

    @property
    def exact(self) -> bool:
        return self.atol == 0.0 and self.rtol == 0.0

    def __str__(self) -> str:
        parts = (f"{self.atol:g}" if self.atol else "", f"{self.rtol:g} * |expected|" if self.rtol else "")
        return f"allowed: {' + '.join(filter(None, parts)) or 'no difference'}"


def compare_outputs(got: Sequence[Array], want: Sequence[Array], tolerance: Tolerance) -> list[Check]:
    """One check per output, in order."""
    if len(got) != len(want):
        return [Check("expected outputs", False, f"{len(got)} outputs where {len(want)} are expected")]
    return [
        compare(f"output{index} is as expected", left, right, tolerance)
        for index, (left, right) in enumerate(zip(got, want, strict=True))
    ]


def compare(name: str, got: Array, want: Array, tolerance: Tolerance) -> Check:
    """Whether `got` is `want` within `tolerance`; shape and dtype must always be the same."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return Check(
            name, False, f"{got.dtype}{list(got.shape)} where {want.dtype}{list(want.shape)} is expected"
        )
    if got.tobytes() == want.tobytes():
        return Check(name, True, f"all {got.size} elements equal, bit for bit; {tolerance}")
    left, right = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        difference = np.abs(left - right)
    allowed = tolerance.atol + tolerance.rtol * np.abs(right)
    # What is not finite must be the same: a share of infinity would allow everything, NaN compares false.
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    bad = ~(same | (np.isfinite(right) & (difference <= allowed)))
    if tolerance.exact:
        bad = different_bits(got, want)
    finite = difference[np.isfinite(difference)]
    largest = float(finite.max()) if finite.size else float("inf")
    detail = f"{int(bad.sum())} of {got.size} elements differ, largest difference {largest:g}"
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        detail += f", first at {list(first)}: {got[first]} instead of {want[first]}"
    return Check(name, not bad.any(), f"{detail}; {tolerance}")


def different_bits(got: Array, want: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape and type are not the same, bit for bit."""
    width = got.dtype.itemsize
    left = np.ascontiguousarray(got).reshape(-1).view(np.uint8).reshape(-1, width)
    right = np.ascontiguousarray(want).reshape(-1).view(np.uint8).reshape(-1, width)
    return np.asarray((left != right).any(axis=1).reshape(got.shape))


class Comparison:
    """The distance between reference and candidate, sample by sample; `lsb`: the output's quantisation step."""

    def __init__(self, lsb: float | None = None) -> None:
        self._lsb = lsb
        self._signal = self._noise = self._candidate = self._product = 0.0
        self._bins = np.zeros(2 * HISTOGRAM_LSB + 3, np.int64)
        self._max_error = 0.0
        self._unusable = {"reference": 0, "candidate": 0}
        self.max_error_sample = 0
        self.elements = 0
        self.equal = 0

    def add(self, sample: int, reference: Array, candidate: Array) -> None:
        """Take one sample in; both arrays are of numbers, with one shape."""
        r, c = reference.astype(np.float64).ravel(), candidate.astype(np.float64).ravel()
        self.elements += r.size
        self.equal += int(np.count_nonzero(reference == candidate))
        for name, values in (("reference", r), ("candidate", c)):
            self._unusable[name] += int(np.count_nonzero(~np.isfinite(values)))
        if any(self._unusable.values()):
            return
        error = c - r
        with np.errstate(over="ignore"):  # an overflow becomes infinite, which the figures then report
            self._signal += float(r @ r)
            self._candidate += float(c @ c)
            self._product += float(r @ c)
            self._noise += float(error @ error)
        worst = float(np.abs(error).max(initial=0.0))
        if worst > self._max_error:
            self._max_error, self.max_error_sample = worst, sample
        if self._lsb is not None:
            steps = np.clip(np.rint(error / self._lsb), -HISTOGRAM_LSB - 1, HISTOGRAM_LSB + 1)
            places = steps.astype(np.int64) + HISTOGRAM_LSB + 1
            self._bins += np.bincount(places, minlength=self._bins.size)

    @property
    def sqnr_db(self) -> float:
        """10 log10(sum r² / sum (c - r)²), in dB: infinite for equal values, minus infinite for a reference of
        zeros."""
        if self._blocked() or self.elements == 0:
            return math.nan
        if self._noise == 0.0:
            return math.inf
        return 10.0 * (math.log10(self._signal) - math.log10(self._noise)) if self._signal else -math.inf

    @property
    def cosine(self) -> float:
        """sum r c / sqrt(sum r² sum c²), from -1 to 1; NaN when either side is zero everywhere."""
        scale = math.sqrt(self._signal) * math.sqrt(self._candidate)
        if self._blocked() or scale == 0.0:
            return math.nan
        return max(-1.0, min(1.0, self._product / scale))

    @property
    def max_abs_error(self) -> float:
        """max |c - r|, in the output's unit; `max_error_sample` is the first sample that has it."""
        return math.nan if self._blocked() or self.elements == 0 else self._max_error

    @property
    def histogram(self) -> dict[int, int] | None:
        """How many elements differ by how many LSBs, round((c - r) / LSB); -17 and 17 stand for all beyond 16.
        Only counts above 0; None without a step or with values that are not finite."""
        if self._lsb is None or self._blocked():
            return None
        return {
            int(place) - HISTOGRAM_LSB - 1: int(self._bins[place]) for place in np.flatnonzero(self._bins)
        }

    def reason(self, figure: str) -> str:
        if blocked := self._blocked():
            return blocked
        if self.elements == 0:
            return "the output has no elements"
        if figure == "sqnr_db" and self._noise == 0.0:
            return "the two are equal: there is no noise, and the ratio is infinite"
        zero = "reference" if self._signal == 0.0 else "candidate"
        return f"the {zero} is zero everywhere"

    def _blocked(self) -> str:
        for name, count in self._unusable.items():
            if count:
                return f"the {name} has values that are not finite"
        if not all(map(math.isfinite, (self._signal, self._candidate, self._noise))):
            return "the values are too large to square"
        return ""


class Top1:
    """How often the candidate's largest score is the labelled class."""

    def __init__(self) -> None:
        self.right = 0
        self.total = 0
        self.ties = 0
        self._nan = 0

    def add(self, labels: npt.NDArray[np.integer[Any]], candidate: Array) -> None:
        """Take one sample in: `labels` are class indices [B], `candidate` scores [B, C]. Of equal scores the lowest
        index counts, as for NumPy's argmax; `ties` counts how often there were such."""
        self.right += int(np.count_nonzero(predictions(candidate) == labels))
        self.total += labels.size
        largest = candidate.max(axis=1, keepdims=True)
        self.ties += int(np.count_nonzero((candidate == largest).sum(axis=1) > 1))
        self._nan += int(np.count_nonzero(np.isnan(largest))) if candidate.dtype.kind == "f" else 0

    @property
    def share(self) -> float:
        """right / total, from 0 to 1; NaN when there was nothing to count or a score was NaN."""
        return math.nan if self._nan or not self.total else self.right / self.total

    @property
    def reason(self) -> str:
        """Why `share` is NaN."""
        return "a score is not a number" if self._nan else "there are no samples"


def predictions(scores: Array) -> npt.NDArray[np.int64]:
    """The index of the largest of each row of `scores` [B, C]; of equal ones the lowest."""
    return np.asarray(scores.argmax(axis=1), np.int64)
