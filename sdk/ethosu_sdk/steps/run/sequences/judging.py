"""Whether each step of a sequence gave what is expected, within a tolerance that may grow from step to step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """The verdict of all steps: one check for each output, and by number those steps that could be judged."""

    checks: tuple[Check, ...]
    rows: Mapping[int, StepVerdict]
    tolerance: Tolerance
    growth: float

    @property
    def first_beyond(self) -> int | None:
        """The first step beyond the tolerance."""
        return min((number for number, row in self.rows.items() if not row.passed), default=None)


@dataclass(frozen=True)
class _Rule:
    """What is allowed, and how many steps there are to be."""

    tolerance: Tolerance
    growth: float
    due: int

    @property
    def growing(self) -> str:
        """How the tolerance grows, in words."""
        return f"; times 1 + {self.growth:g} · step" if self.growth else ""


def allowed(tolerance: Tolerance, growth: float, step: int) -> Tolerance:
    """The tolerance of a step: `tolerance`, times 1 + `growth` · `step`."""
    return Tolerance(tolerance.atol * (1 + growth * step), tolerance.rtol * (1 + growth * step))


def judge(
    got: Sequence[Array],
    want: Sequence[Array],
    tolerance: Tolerance,
    growth: float,
    unsent: Sequence[Sequence[bool]] = (),
) -> StepsVerdict:
    """The steps of outputs `got` against those of `want`; both have a leading axis of steps.

    Of the first steps the board may have sent CRCs alone: `unsent` says of each, by output, whether it is that of the
    expected bytes. If not, the step is beyond a tolerance of 0, and cannot be judged within another. A sequence that
    ended before the last step of `want` has not passed.
    """
    first, rule = len(unsent), _Rule(tolerance, growth, max(map(len, want), default=0))
    want = [array[first:] for array in want]
    count = min((len(array) for array in (*got, *want)), default=0)
    found = [
        [*(_by_crc(step[index], tolerance) for step in unsent), *_compared(index, pair, rule, first, count)]
        for index, pair in enumerate(zip(got, want, strict=True))
    ]
    checks = tuple(_check(index, rows, rule, first) for index, rows in enumerate(found))
    errors = [0.0 if all(step) else None for step in unsent]
    errors += [_error([row[step] for row in got], [row[step] for row in want]) for step in range(count)]
    rows = {}
    for step, error in enumerate(errors):
        judged = [row[step] for row in found]
        if None not in judged:
            rows[step] = StepVerdict(all(row is not None and row.passed for row in judged), error)
    return StepsVerdict(checks, rows, tolerance, growth)


def _by_crc(is_same: bool, tolerance: Tolerance) -> Check | None:
    if not is_same and not tolerance.exact:
        return None
    return Check("", is_same, f"the CRC-32 of its bytes is not the expected one; {tolerance}")


def _compared(index: int, pair: tuple[Array, Array], rule: _Rule, first: int, count: int) -> Iterator[Check]:
    got, want = pair
    for step in range(count):
        yield compare(
            f"output{index}", got[step], want[step], allowed(rule.tolerance, rule.growth, first + step)
        )


def _check(index: int, rows: Sequence[Check | None], rule: _Rule, first: int) -> Check:
    name = f"output{index} is as expected"
    bad = [number for number, row in enumerate(rows) if row is not None and not row.passed]
    unknown = sum(row is None for row in rows)
    if bad:
        reason = rows[bad[0]]
        assert reason is not None
        words = f"step {bad[0]} of {len(rows)} is the first beyond the tolerance: {reason.detail}"
        return Check(name, False, f"{words}{rule.growing}; {len(bad)} steps are beyond it")
    if len(rows) < rule.due:
        return Check(name, False, f"the sequence ended after {len(rows)} steps, {rule.due} are expected")
    by_crc = first - unknown
    which = f"all {len(rows)} steps"
    if first:
        which = f"step {first}, the last, of {len(rows)}"
        which += f"; {by_crc} others by the CRC-32 of their bytes" if by_crc else ""
        which += f"; {unknown} were not judged, for the board sent their CRC-32 alone" if unknown else ""
    return Check(name, True, f"{which}; {rule.tolerance}{rule.growing}")


def _error(got: Sequence[Array], want: Sequence[Array]) -> float | None:
    largest = 0.0
    for left, right in zip(got, want, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            return None
        with np.errstate(invalid="ignore"):
            difference = np.abs(left.astype(np.float64) - right.astype(np.float64))
        largest = max(largest, float(difference.max(initial=0.0)))
    return largest if np.isfinite(largest) else None
