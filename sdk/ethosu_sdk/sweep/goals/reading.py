"""Read `[[constraints]]` and `[[goals]]` of a sweep's TOML file, which is not trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any

from msgspec import Meta, Struct

from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import TomlSource
from ethosu_sdk.records import sweep
from ethosu_sdk.records.sweep import FigureName, Want
from ethosu_sdk.sweep.goals import figures

CONSTRAINTS, GOALS = "constraints", "goals"
_MOST_PERCENT = 1000.0
_Name = Annotated[str, Meta(max_length=200, pattern=r"\A[^*]*(?:\*[^*]*){0,8}\Z")]
_Names = Annotated[
    list[_Name],
    Meta(
        min_length=1,
        max_length=64,
        extra={"words": "a list of 1 to 64 names, of 200 characters and 8 '*' at most"},
    ),
]


class _Constraint(Struct, forbid_unknown_fields=True):
    figure: FigureName
    max: Any = None
    min: Any = None
    clock_mhz: Any = None
    models: _Names | None = None
    systems: _Names | None = None


class _Goal(Struct, forbid_unknown_fields=True):
    figure: FigureName
    want: Want | None = None
    clock_mhz: Any = None
    tolerance_percent: Annotated[float, Meta(ge=0, le=_MOST_PERCENT)] = 0.0


ConstraintTables = Annotated[
    list[_Constraint], Meta(max_length=64, extra={"words": "at most 64 tables [[constraints]]"})
]
GoalTables = Annotated[list[_Goal], Meta(max_length=8, extra={"words": "at most 8 tables [[goals]]"})]


@dataclass(frozen=True)
class Constraint:
    """A figure's limits. `models` and `systems` are patterns of what it is for; none of them: for all."""

    figure: FigureName
    most: float | None = None
    least: float | None = None
    clock_mhz: float | None = None
    models: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    def is_for(self, model: str, system: str) -> bool:
        """Whether the cells of `model` on `system` (empty: on none) must keep it."""
        return _fits(model, self.models) and _fits(system, self.systems)

    @property
    def whom(self) -> str:
        """What it is for; empty: for all."""
        return " on ".join(", ".join(part) for part in (self.models, self.systems) if part)

    def to_record(self) -> sweep.Constraint:
        """As a record has it."""
        return sweep.Constraint(
            figure=self.figure,
            min=self.least,
            max=self.most,
            clock_mhz=self.clock_mhz,
            models=self.models or None,
            systems=self.systems or None,
            text=self.text,
        )

    @property
    def text(self) -> str:
        """It as a sentence reads it."""
        limits = [f"≥ {figures.shown(self.figure, self.least)}"] if self.least is not None else []
        limits += [f"≤ {figures.shown(self.figure, self.most)}"] if self.most is not None else []
        whom = f" ({self.whom})" if self.whom else ""
        return f"{named(self.figure, self.clock_mhz)} {' and '.join(limits)}{whom}"


@dataclass(frozen=True)
class Goal:
    """A figure that should be least or most. Cells within `tolerance_percent` of the best are as good as it."""

    figure: FigureName
    want: Want
    clock_mhz: float | None = None
    tolerance_percent: float = 0.0

    def to_record(self) -> sweep.Goal:
        """As a record has it."""
        return sweep.Goal(
            figure=self.figure,
            want=self.want,
            clock_mhz=self.clock_mhz,
            tolerance_percent=self.tolerance_percent or None,
            text=self.text,
        )

    @property
    def text(self) -> str:
        """It as a sentence reads it."""
        kind = "least" if self.want == figures.MIN else "most"
        within = f" (equal within {self.tolerance_percent:g} %)" if self.tolerance_percent else ""
        return f"{kind} {named(self.figure, self.clock_mhz)}{within}"


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


ALIKE_PERCENT = 1.0  # figures that differ by less do not tell which cell is better
DEFAULT_GOALS = (
    Goal("sram_bytes", figures.MIN, tolerance_percent=ALIKE_PERCENT),
    Goal(figures.TIME, figures.MIN, tolerance_percent=ALIKE_PERCENT),
)


@dataclass(frozen=True)
class Goals:
    """All constraints, and the goals in their order; `are_default` when the file has none."""

    constraints: tuple[Constraint, ...] = ()
    goals: tuple[Goal, ...] = DEFAULT_GOALS
    are_default: bool = True

    @property
    def figures(self) -> set[FigureName]:
        """What is judged."""
        return {row.figure for row in self.constraints} | {row.figure for row in self.goals}

    def idle(self, cells: Iterable[tuple[str, str]]) -> list[Constraint]:
        """Constraints that are for none of `cells`, (model, system) each: a name that was mistyped, or a model that
        went."""
        names = list(cells)
        return [row for row in self.constraints if not any(row.is_for(*pair) for pair in names)]


def named(figure: str, clock_mhz: float | None) -> str:
    """A figure by its title, with the clock that it is for."""
    return figures.FIGURES[figure].title + (f" at {clock_mhz:g} MHz" if clock_mhz else "")


def parse(source: TomlSource, constraint_tables: ConstraintTables, goal_tables: GoalTables) -> Goals:
    """The constraints and goals in a file's tables. InputError, with the line, for what says none."""
    constraints = tuple(
        _constraint(source, row, (CONSTRAINTS, index)) for index, row in enumerate(constraint_tables)
    )
    goals = tuple(_goal(source, row, (GOALS, index)) for index, row in enumerate(goal_tables))
    keys = [(goal.figure, goal.clock_mhz) for goal in goals]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise source.wrong((GOALS, index), f"there is a goal for {named(*key)} already")
    return Goals(constraints, goals or _default(constraints), not goals)


def _default(constraints: Iterable[Constraint]) -> tuple[Goal, ...]:
    """Least SRAM, then least time: of an inference where that is limited, else of the NPU."""
    if any(row.figure == figures.INFERENCE for row in constraints):
        return (DEFAULT_GOALS[0], replace(DEFAULT_GOALS[1], figure=figures.INFERENCE))
    return DEFAULT_GOALS


def _constraint(source: TomlSource, row: _Constraint, place: Place) -> Constraint:
    name = row.figure
    most = _limit(source, row.max, name, (*place, "max"))
    least = _limit(source, row.min, name, (*place, "min"))
    if most is None and least is None:
        raise source.wrong(place, f"the constraint on {name} has no limit", "give it a max or a min")
    if most is not None and least is not None and least > most:
        raise source.wrong((*place, "min"), f"no {name} is above its min and below its max")
    clock_mhz = _clock_of(source, row.clock_mhz, name, place)
    return Constraint(name, most, least, clock_mhz, tuple(row.models or ()), tuple(row.systems or ()))


def _goal(source: TomlSource, row: _Goal, place: Place) -> Goal:
    want = row.want or figures.FIGURES[row.figure].better
    clock_mhz = _clock_of(source, row.clock_mhz, row.figure, place)
    return Goal(row.figure, want, clock_mhz, row.tolerance_percent)


def _limit(source: TomlSource, text: object, name: str, place: Place) -> float | None:
    figure = figures.FIGURES[name]
    number = figures.quantity(text, figure.units)
    in_db = figure.unit == "dB"
    if text is not None and (number is None or (number < 0 and not in_db)):
        units = ", ".join(unit for unit in figure.units if unit)
        hint = (
            f'a number, or a text of a number and one of the units {units}: "2 {figure.unit}"'
            if units
            else ""
        )
        what = "a number of decibels" if in_db else f"a number from 0 to {figures.MOST:g}"
        raise source.wrong(place, f"{place[-1]} of {name} must be {what}", hint)
    return number


def _clock_of(source: TomlSource, text: object, name: str, place: Place) -> float | None:
    if text is None:
        return None
    where = (*place, "clock_mhz")
    if name != figures.TIME:
        raise source.wrong(where, f"clock_mhz applies only to {figures.TIME}, not to {name}")
    found = figures.clock(text)
    if found is None:
        raise source.wrong(where, "clock_mhz must be a number of MHz, such as 500")
    return found
