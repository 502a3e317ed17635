"""Changes of a program that can be tried, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.records.advice import CandidateKind


@dataclass(frozen=True)
class Candidate:
    """A change: `options` are fields of the options of `compile` with other values, `lines` follow the model's file.

    `parts` are the names of the changes that it combines; one of a single change. `limits` say what it asks of the
    user. `replaces` names the operators that it computes in another way; with `keeps_results` it computes the same in
    floating point.
    """

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
        """Both changes together, the lines of this one first."""
        kinds = sorted({self.kind, other.kind}, key=_GRAVEST.index)
        return Candidate(
            name=f"{self.name}+{other.name}",
            kind=kinds[0],
            change=f"{self.change}; {other.change}",
            options={**self.options, **other.options},
            lines=(*self.lines, *other.lines),
            limits=(*self.limits, *(row for row in other.limits if row not in self.limits)),
            parts=(*self.parts, *other.parts),
            replaces=self.replaces | other.replaces,
            keeps_results=self.keeps_results and other.keeps_results,
        )


_GRAVEST: Sequence[CandidateKind] = ("target", "weights", "precision", "model", "program")


@dataclass(frozen=True)
class Measured:
    """A program that ran: cycles of an inference, None where the simulator does not count them, and bytes.

    `time_ms` is known where both clocks are. `cpu_calls` are the calls on the CPU that compute, by operator. `fits`
    says whether the board has the memory.
    """

    npu_cycles: int | None
    cpu_cycles: int | None
    time_ms: float | None
    sram_bytes: int
    flash_bytes: int
    fits: bool
    cpu_calls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Distance:
    """Outputs of an execution against others: `equal` of `elements` are the same; SQNR in dB, infinite without
    noise."""

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
