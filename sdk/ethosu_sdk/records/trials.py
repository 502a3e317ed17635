"""Changes of a program that can be tried, what came of them, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.records.advice import CandidateKind, Judge, OutputsState, TrialState


@dataclass(frozen=True)
class Candidate:
    """A change: `options` are fields of the options of `compile` with other values, `lines` follow the model's file.
    `parts` are the names of the changes that it combines; one of a single change. `limits` say what it asks of the
    user. `replaces` names the operators that it computes in another way; with `keeps_results` it computes the same in
    floating point."""

    name: str
    kind: CandidateKind
    change: str
    options: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    replaces: frozenset[str] = frozenset()
    keeps_results: bool = True

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", (self.name,))

    def fits_with(self, other: Candidate) -> bool:
        """Whether both can be made: they set no option twice, and are no parts of each other."""
        return not (
            set(self.parts) & set(other.parts)
            or self.options.keys() & other.options.keys()
            or self.replaces & other.replaces
        )

    def with_(self, other: Candidate) -> Candidate:
        """Both changes together, of the graver kind, the lines of this one first."""
        kinds: Sequence[CandidateKind] = ("target", "weights", "precision", "model", "program")
        return Candidate(
            name=f"{self.name}+{other.name}",
            kind=next(kind for kind in kinds if kind in (self.kind, other.kind)),
            change=f"{self.change}; {other.change}",
            options={**self.options, **other.options},
            lines=(*self.lines, *other.lines),
            limits=(*self.limits, *(row for row in other.limits if row not in self.limits)),
            parts=(*self.parts, *other.parts),
            replaces=self.replaces | other.replaces,
            keeps_results=self.keeps_results and other.keeps_results,
        )


@dataclass(frozen=True)
class Measured:
    """A program that ran: cycles of an inference, None where the simulator does not count them, and bytes. `time_ms`
    is known where both clocks are. `cpu_calls` are the calls on the CPU that compute, by operator. `fits` says
    whether the board has the memory."""

    npu_cycles: int | None
    cpu_cycles: int | None
    time_ms: float | None
    sram_bytes: int
    flash_bytes: int
    fits: bool
    cpu_calls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Distance:
    """Outputs against others: `equal` of `elements` are the same; SQNR in dB, infinite without noise."""

    elements: int
    equal: int
    sqnr_db: float


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate: the figures, its outputs against those of the program (`changed`) and of the model in
    floating point (`exact`); or the `reason` why it failed. `why_no_distance` says why an output has none."""

    candidate: Candidate
    measured: Measured | None = None
    changed: Distance | None = None
    exact: Distance | None = None
    why_no_distance: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Tries:
    """The program as it is (`exact`: its distance from floating point), what came of each candidate, and the names of
    those that were not tried, because the user stopped it."""

    before: Measured
    exact: Distance | None
    simulator: str
    outcomes: tuple[Outcome, ...]
    left: tuple[str, ...] = ()
    is_stopped: bool = False


_WORTH = 0.01  # of the time or cycles: less is not worth a change
_WORTH_MORE = 0.001  # of it, for one change more beside those that save more
_WORTH_SIZE = 0.10  # of SRAM or flash
CLOSE_DB = 1.0  # that the distance from floating point may lose, as calibration may lose or win it
BROKEN_DB = 20.0  # `debug` says of a layer below it that it breaks
_CLOSER_DB = 6.0  # one bit
# In which trials are listed; closer ones stand with smaller ones.
_ORDER: Sequence[TrialState] = ("better", "smaller", "unjudged", "same", "worse", "broken", "failed")


def judge_of(before: Measured) -> Judge:
    """What changes of a program are judged by: whether it fits, where it does not; else its time as far as it is
    known."""
    if not before.fits:
        return "fit"
    if before.time_ms is not None:
        return "time of an inference"
    return "NPU cycles" if before.cpu_cycles is None else "NPU and CPU cycles"


def trial_cost(before: Measured, row: Measured) -> float | None:
    """Time or cycles of `row`, by the figure of `before`; None where the CPU's part is not comparable."""
    if before.time_ms is not None:
        return row.time_ms
    npu = row.npu_cycles or 0
    if before.cpu_cycles is not None:
        return None if row.cpu_cycles is None else npu + row.cpu_cycles
    return npu if row.cpu_calls == before.cpu_calls else None


def trial_gain(before: Measured, outcome: Outcome) -> float | None:
    """The share of the time or cycles that is saved, negative where more is needed; None where it is not known."""
    if outcome.measured is None:
        return None
    whole, after = trial_cost(before, before), trial_cost(before, outcome.measured)
    return None if not whole or after is None else 1 - after / whole


def outputs_state(exact: Distance | None, outcome: Outcome) -> OutputsState:
    """How the outputs changed; `exact` is the distance of the program as it is from floating point."""
    changed, now = outcome.changed, outcome.exact
    if changed is not None and changed.equal == changed.elements:
        return "equal"
    if changed is not None and changed.sqnr_db == -math.inf:
        return "broken"  # another shape, or values that are not finite
    if exact is None or now is None:
        return "unknown"
    lost = exact.sqnr_db - now.sqnr_db
    if lost <= CLOSE_DB or math.isnan(lost):  # both without noise
        return "close" if outcome.candidate.keeps_results else "lossy"
    return "broken" if now.sqnr_db < BROKEN_DB else "lossy"


def trial_state(before: Measured, exact: Distance | None, outcome: Outcome) -> TrialState:
    after = outcome.measured
    if after is None:
        return "failed"
    if outputs_state(exact, outcome) == "broken":
        return "broken"
    if judge_of(before) == "fit":
        is_smaller = after.sram_bytes <= (1 - _WORTH_SIZE) * before.sram_bytes
        return "better" if after.fits else "smaller" if is_smaller else "same"
    return _by_cost(before, exact, outcome) if after.fits else "worse"


def _by_cost(before: Measured, exact: Distance | None, outcome: Outcome) -> TrialState:
    saved, after = trial_gain(before, outcome), outcome.measured
    if saved is None or after is None:
        return "unjudged"
    if saved >= _WORTH:
        return "better"
    if _is_smaller(before, after):
        return "smaller"
    if (
        exact is not None
        and outcome.exact is not None
        and outcome.exact.sqnr_db - exact.sqnr_db >= _CLOSER_DB
    ):
        return "closer"
    return "worse" if saved <= -_WORTH else "same"


def _is_smaller(before: Measured, after: Measured) -> bool:
    sram, flash = before.sram_bytes, before.flash_bytes
    is_less = after.sram_bytes + after.flash_bytes < sram + flash
    less_sram = after.sram_bytes <= (1 - _WORTH_SIZE) * sram and is_less
    less_flash = after.flash_bytes <= (1 - _WORTH_SIZE) * flash and after.sram_bytes <= sram
    return after != before and (less_sram or less_flash)


def ranked_trials(before: Measured, exact: Distance | None, outcome: Outcome) -> tuple[int, float]:
    """For sorting: the best first, those that failed last."""
    state = trial_state(before, exact, outcome)
    place = _ORDER.index("smaller" if state == "closer" else state)
    after = outcome.measured
    if after is None:
        return place, 0.0
    saved = trial_gain(before, outcome)
    return place, -(saved if saved is not None else 1 - after.sram_bytes / max(1, before.sram_bytes))


def combinable(before: Measured, exact: Distance | None, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The trials that save something and keep program, target and outputs, best first; none where none is better."""
    found = [
        row
        for row in outcomes
        if row.candidate.kind in ("program", "model")
        and (trial_state(before, exact, row) == "better" or (trial_gain(before, row) or 0.0) > 0)
        and outputs_state(exact, row) in ("equal", "close")
    ]
    found.sort(key=lambda row: ranked_trials(before, exact, row))
    return found if found and trial_state(before, exact, found[0]) == "better" else []


def is_better(before: Measured, best: Outcome, other: Outcome) -> bool:
    """Whether `other` costs so much less than `best` that it is worth one more change."""
    if best.measured is None or other.measured is None or not other.measured.fits:
        return False
    one, two = trial_cost(before, best.measured), trial_cost(before, other.measured)
    return one is not None and two is not None and two <= (1 - _WORTH_MORE) * one
