"""Compares outputs with expected outputs: facts first, then pass or fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


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
        """Whether every bit must be the same."""
        return self.atol == 0.0 and self.rtol == 0.0

    def __str__(self) -> str:
        parts = (f"{self.atol:g}" if self.atol else "", f"{self.rtol:g} * |expected|" if self.rtol else "")
        return f"allowed: {' + '.join(filter(None, parts)) or 'no difference'}"


def compare_outputs(
    got: Sequence[npt.NDArray[Any]], want: Sequence[npt.NDArray[Any]], tolerance: Tolerance
) -> list[Check]:
    """One check per output, in order."""
    if len(got) != len(want):
        return [Check("expected outputs", False, f"{len(got)} outputs where {len(want)} are expected")]
    return [
        compare(f"output{index} is as expected", left, right, tolerance)
        for index, (left, right) in enumerate(zip(got, want, strict=True))
    ]


def compare(name: str, got: npt.NDArray[Any], want: npt.NDArray[Any], tolerance: Tolerance) -> Check:
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


def different_bits(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape and type are not the same, bit for bit."""
    width = got.dtype.itemsize
    left = np.ascontiguousarray(got).reshape(-1).view(np.uint8).reshape(-1, width)
    right = np.ascontiguousarray(want).reshape(-1).view(np.uint8).reshape(-1, width)
    return np.asarray((left != right).any(axis=1).reshape(got.shape))
