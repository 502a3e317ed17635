"""What a sweep found: cells by what they keep, the best of each model, targets that fit all models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ethosu_sdk.records import Record
from ethosu_sdk.sweep.goals import figures
from ethosu_sdk.sweep.goals.reading import Goals, named

# How a cell stands. Those from WINNER to UNRANKED keep every constraint.
WINNER, PARETO, DOMINATED, UNRANKED = "winner", "pareto", "dominated", "not ranked"
BROKEN, UNJUDGED, NO_RESULT = "broken", "not judged", "no result"
STANDINGS = (WINNER, PARETO, DOMINATED, UNRANKED, BROKEN, UNJUDGED, NO_RESULT)
KEEPING = (WINNER, PARETO, DOMINATED, UNRANKED)
PASS, FAIL = "pass", "fail"


@dataclass(frozen=True)
class Miss:
    """A constraint, by its place in the list, that a cell does not keep: `by` is how far its value is off."""

    constraint: int
    figure: str
    value: float
    limit: float
    by: float
    source: str = ""
    clock_mhz: float | None = None

    @property
    def share(self) -> float:
        """How far off, as a share of the limit; of 1 for a limit of less."""
        return self.by / max(abs(self.limit), 1.0)

    def to_json(self) -> Record:
        """As a record has it."""
        return {
            "constraint": self.constraint,
            "value": self.value,
            "limit": self.limit,
            "by": self.by,
            **({"percent": round(100 * self.by / abs(self.limit), 4)} if self.limit else {}),
            **({"source": self.source} if self.source else {}),
            "text": self.text,
        }

    @property
    def text(self) -> str:
        """It as a sentence reads it."""
        more = f" (by {100 * self.by / abs(self.limit):,.1f} %)" if self.limit else ""
        sign = ">" if self.value > self.limit else "<"
        value, limit = (figures.shown(self.figure, number) for number in (self.value, self.limit))
        return f"{named(self.figure, self.clock_mhz)} {value} {sign} {limit}{more}"


@dataclass(frozen=True)
class Judged:
    """A cell. `missing` says why constraints or goals could not be judged; `values` are those of the goals."""

    cell: str
    model: str
    target: str
    standing: str
    status: str = "pass"
    misses: tuple[Miss, ...] = ()
    missing: tuple[str, ...] = ()
    values: tuple[figures.Value, ...] = ()
    source: str = ""

    @property
    def keeps(self) -> bool:
        """Whether it keeps every constraint."""
        return self.standing in KEEPING

    def to_json(self) -> Record:
        """As a record has it."""
        return {
            "cell": self.cell,
            "standing": self.standing,
            **({"source": self.source} if self.source else {}),
            **({"misses": [row.to_json() for row in self.misses]} if self.misses else {}),
            **({"missing": list(self.missing)} if self.missing else {}),
        }


@dataclass(frozen=True)
class Ranking:
    """Cells of a model that are ranked against each other: all of one source, where a goal has sources."""

    source: str
    pareto: tuple[str, ...]
    winners: tuple[str, ...]

    def to_json(self) -> Record:
        """As a record has it."""
        source = {"source": self.source} if self.source else {}
        return {**source, "pareto": list(self.pareto), "winners": list(self.winners)}


@dataclass(frozen=True)
class ModelVerdict:
    """One model. Without `winners`, `reason` says why there is none, and `nearest` which cell misses least."""

    model: str
    cells: tuple[Judged, ...]
    rankings: tuple[Ranking, ...]
    reason: str = ""
    nearest: Judged | None = None
    notes: tuple[str, ...] = ()

    @property
    def winners(self) -> tuple[str, ...]:
        """The best cells: several when they are equal in every goal, none where they cannot be ranked."""
        return self.rankings[0].winners if len(self.rankings) == 1 else ()

    @property
    def is_kept(self) -> bool:
        """Whether a cell of it keeps every constraint."""
        return any(row.keeps for row in self.cells)

    def to_json(self) -> Record:
        """As a record has it."""
        nearest: Record = {}
        if self.nearest is not None:
            misses = [row.to_json() for row in self.nearest.misses]
            nearest = {"nearest": {"cell": self.nearest.cell, "misses": misses}}
        return {
            "model": self.model,
            "counts": counts(self.cells),
            "rankings": [row.to_json() for row in self.rankings],
            "winners": list(self.winners),
            **({"no_winner": {"reason": self.reason, **nearest}} if self.reason else {}),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class TargetVerdict:
    """One target: the models that keep the constraints on it in a cell at least, and the others by why not."""

    target: str
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    not_judged: tuple[str, ...]
    no_result: tuple[str, ...]
    not_swept: tuple[str, ...]

    @property
    def is_kept_by_all(self) -> bool:
        """Whether every model of the sweep keeps the constraints on it."""
        return not (self.broken or self.not_judged or self.no_result or self.not_swept)

    def to_json(self) -> Record:
        """As a record has it."""
        names = ("kept", "broken", "not_judged", "no_result", "not_swept")
        return {
            "target": self.target,
            "every_model": self.is_kept_by_all,
            **{name: list(getattr(self, name)) for name in names},
        }


@dataclass(frozen=True)
class Verdict:
    """All models and targets of a sweep."""

    goals: Goals
    models: tuple[ModelVerdict, ...]
    targets: tuple[TargetVerdict, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def status(self) -> str:
        """`pass` when every model keeps all constraints somewhere."""
        return PASS if self.models and all(row.is_kept for row in self.models) else FAIL

    def to_json(self) -> Record:
        """As a record has it."""
        return {
            "status": self.status,
            **self.goals.to_json(),
            "counts": counts([cell for model in self.models for cell in model.cells]),
            "models": [row.to_json() for row in self.models],
            "targets": [row.to_json() for row in self.targets],
            "notes": list(self.notes),
            "cells": [cell.to_json() for model in self.models for cell in model.cells],
        }


def counts(cells: Sequence[Judged]) -> Record:
    """The number of cells by standing."""
    found = Counter(row.standing for row in cells)
    return {
        "cells": len(cells),
        "kept": sum(found[name] for name in KEEPING),
        "broken": found[BROKEN],
        "not_judged": found[UNJUDGED],
        "no_result": found[NO_RESULT],
    }
