"""What a sweep found: cells by what they keep, the best of each model, targets that fit all models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ethosu_sdk.records import sweep
from ethosu_sdk.records.sweep import Miss, Ranking, Source, Standing, TargetVerdict
from ethosu_sdk.sweep.goals import figures
from ethosu_sdk.sweep.goals.reading import Goals

# How a cell stands. Those from WINNER to UNRANKED keep every constraint.
WINNER: Final = "winner"
PARETO: Final = "pareto"
DOMINATED: Final = "dominated"
UNRANKED: Final = "not ranked"
BROKEN: Final = "broken"
UNJUDGED: Final = "not judged"
NO_RESULT: Final = "no result"
STANDINGS: tuple[Standing, ...] = get_args(Standing)
KEEPING: tuple[Standing, ...] = (WINNER, PARETO, DOMINATED, UNRANKED)


@dataclass(frozen=True)
class Judged:
    """A cell. `missing` says why constraints or goals could not be judged; `values` are those of the goals."""

    cell: str
    model: str
    target: str
    standing: Standing
    status: str = "pass"
    misses: tuple[Miss, ...] = ()
    missing: tuple[str, ...] = ()
    values: tuple[figures.Value, ...] = ()
    source: Source | None = None

    @property
    def keeps(self) -> bool:
        """Whether it keeps every constraint."""
        return self.standing in KEEPING

    def to_record(self) -> sweep.CellVerdict:
        """As a record has it."""
        return sweep.CellVerdict(
            cell=self.cell,
            standing=self.standing,
            source=self.source,
            misses=self.misses or None,
            missing=self.missing or None,
        )


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

    def to_record(self) -> sweep.ModelVerdict:
        """As a record has it."""
        row = self.nearest
        nearest = None if row is None else sweep.Nearest(cell=row.cell, misses=row.misses)
        return sweep.ModelVerdict(
            model=self.model,
            counts=counts(self.cells),
            rankings=self.rankings,
            winners=self.winners,
            no_winner=sweep.NoWinner(reason=self.reason, nearest=nearest) if self.reason else None,
            notes=self.notes,
        )


@dataclass(frozen=True)
class Verdict:
    """All models and targets of a sweep."""

    goals: Goals
    models: tuple[ModelVerdict, ...]
    targets: tuple[TargetVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Literal["pass", "fail"]:
        """`pass` when every model keeps all constraints somewhere."""
        return "pass" if self.models and all(row.is_kept for row in self.models) else "fail"

    def to_record(self) -> sweep.Verdict:
        """As a record has it."""
        cells = [cell for model in self.models for cell in model.cells]
        return sweep.Verdict(
            status=self.status,
            constraints=tuple(row.to_record() for row in self.goals.constraints),
            goals=tuple(row.to_record() for row in self.goals.goals),
            default_goals=self.goals.are_default,
            counts=counts(cells),
            models=tuple(row.to_record() for row in self.models),
            targets=self.targets,
            notes=self.notes,
            cells=tuple(cell.to_record() for cell in cells),
        )


def counts(cells: Sequence[Judged]) -> sweep.VerdictCounts:
    """The number of cells by standing."""
    found = Counter(row.standing for row in cells)
    return sweep.VerdictCounts(
        cells=len(cells),
        kept=sum(found[name] for name in KEEPING),
        broken=found[BROKEN],
        not_judged=found[UNJUDGED],
        no_result=found[NO_RESULT],
    )
