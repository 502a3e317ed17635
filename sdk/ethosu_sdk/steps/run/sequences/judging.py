"""Whether each step of a sequence gave what is expected, within a tolerance that may grow from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.evidence.verdict import Check, Tolerance, compare

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class StepVerdict:
    """Whether a step's outputs are within the tolerance, and the largest difference (None: not a finite one)."""

    passed: bool
    max_abs_error: float | None


@dataclass(frozen=True)
class StepsVerdict:
    """The verdict of all steps: one check for each output, and by step. `first` is the number of the first step."""

    checks: tuple[Check, ...]
    rows: tuple[StepVerdict, ...]
    tolerance: Tolerance
    growth: float
    first: int = 0

    @property
    def first_beyond(self) -> int | None:
        """The first step beyond the tolerance."""
        return next((self.first + number for number, row in enumerate(self.rows) if not row.passed), None)


def allowed(tolerance: Tolerance, growth: float, step: int) -> Tolerance:
    """The tolerance of a step: `tolerance`, times 1 + `growth` · `step`."""
    return Tolerance(tolerance.atol * (1 + growth * step), tolerance.rtol * (1 + growth * step))


def judge(
    got: Sequence[Array], want: Sequence[Array], tolerance: Tolerance, growth: float, first: int = 0
) -> StepsVerdict:
    """The steps of outputs `got` against those of `want`; both have a leading axis of steps. The first of `got` has
    the number `first`, that of `want` is 0. A sequence that ended before the last step of `want` has not passed."""
    due = max(map(len, want), default=0)
    want = [array[first:] for array in want]
    count = min((len(array) for array in (*got, *want)), default=0)
    found = [
        [
            compare(f"output{index}", left[step], right[step], allowed(tolerance, growth, first + step))
            for step in range(count)
        ]
        for index, (left, right) in enumerate(zip(got, want, strict=True))
    ]
    checks = tuple(_check(index, rows, due, tolerance, growth, first) for index, rows in enumerate(found))
    verdicts = tuple(
        StepVerdict(
            all(rows[step].passed for rows in found),
            _error([array[step] for array in got], [array[step] for array in want]),
        )
        for step in range(count)
    )
    return StepsVerdict(checks, verdicts, tolerance, growth, first)


def _check(
    index: int, rows: Sequence[Check], due: int, tolerance: Tolerance, growth: float, first: int
) -> Check:
    name = f"output{index} is as expected"
    bad = [number for number, row in enumerate(rows) if not row.passed]
    rule = f"; times 1 + {growth:g} · step" if growth else ""
    if bad:
        words = (
            f"step {first + bad[0]} of {len(rows)} is the first beyond the tolerance: {rows[bad[0]].detail}"
        )
        return Check(name, False, f"{words}{rule}; {len(bad)} steps are beyond it")
    if first + len(rows) < due:
        return Check(name, False, f"the sequence ended after {first + len(rows)} steps, {due} are expected")
    which = f"step {first}, the last" if first else f"all {len(rows)} steps"
    return Check(name, True, f"{which}; {tolerance}{rule}")


def _error(got: Sequence[Array], want: Sequence[Array]) -> float | None:
    largest = 0.0
    for left, right in zip(got, want, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            return None
        with np.errstate(invalid="ignore"):
            difference = np.abs(left.astype(np.float64) - right.astype(np.float64))
        largest = max(largest, float(difference.max(initial=0.0)))
    return largest if np.isfinite(largest) else None
