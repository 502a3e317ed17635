"""Read `[[constraints]]` and `[[goals]]` of a sweep's TOML file, which is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ethosu_sdk.errors import InputError
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import short
from ethosu_sdk.records import sweep
from ethosu_sdk.records.sweep import FigureName, Want
from ethosu_sdk.sweep.goals import figures
from ethosu_sdk.targets import suggestion

Locate = Callable[[Place], str]

TABLES = CONSTRAINTS, GOALS = "constraints", "goals"
_MOST_CONSTRAINTS, _MOST_GOALS, _MOST_PATTERNS = 64, 8, 64
_MOST_CHARACTERS, _MOST_STARS = 200, 8
_PATTERNS = {"models": '["zoo:ds_cnn", "*.py"]', "systems": '["alif-e8-hp"]'}  # with an example each
_MEMBERS = {
    CONSTRAINTS: ("figure", "max", "min", "clock_mhz", *_PATTERNS),
    GOALS: ("figure", "want", "clock_mhz", "tolerance_percent"),
}
_MOST_PERCENT = 1000.0


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


def parse(tables: Mapping[str, Any], locate: Locate) -> Goals:
    """The constraints and goals in `tables`. InputError, with the line, for what says none."""
    constraints = tuple(
        _constraint(row, place, locate)
        for row, place in _rows(tables, CONSTRAINTS, _MOST_CONSTRAINTS, locate)
    )
    goals = tuple(_goal(row, place, locate) for row, place in _rows(tables, GOALS, _MOST_GOALS, locate))
    keys = [(goal.figure, goal.clock_mhz) for goal in goals]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise InputError(f"{locate((GOALS, index))}: there is a goal for {named(*key)} already")
    return Goals(constraints, goals or _default(constraints), not goals)


def _default(constraints: Iterable[Constraint]) -> tuple[Goal, ...]:
    """Least SRAM, then least time: of an inference where that is limited, else of the NPU."""
    if any(row.figure == figures.INFERENCE for row in constraints):
        return (DEFAULT_GOALS[0], replace(DEFAULT_GOALS[1], figure=figures.INFERENCE))
    return DEFAULT_GOALS


def _rows(
    tables: Mapping[str, Any], name: str, most: int, locate: Locate
) -> Iterable[tuple[Mapping[str, Any], Place]]:
    rows = tables.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{locate((name,))}: {name} must be tables", f"write [[{name}]] above each")
    if len(rows) > most:
        raise InputError(f"{locate((name, most))}: a sweep has at most {most} {name}")
    for index, row in enumerate(rows):
        for key in row:
            if key not in _MEMBERS[name]:
                what = f"{locate((name, index, key))}: [[{name}]] has no '{short(key)}'"
                raise InputError(what, suggestion(key, _MEMBERS[name]))
        yield row, (name, index)


def _constraint(row: Mapping[str, Any], place: Place, locate: Locate) -> Constraint:
    name = _figure(row, place, locate)
    limits = {key: _limit(row[key], name, (*place, key), locate) for key in ("max", "min") if key in row}
    if not limits:
        raise InputError(f"{locate(place)}: the constraint on {name} has no limit", "give it a max or a min")
    most, least = limits.get("max"), limits.get("min")
    if most is not None and least is not None and least > most:
        raise InputError(f"{locate((*place, 'min'))}: no {name} is above its min and below its max")
    models, systems = (_patterns(row, (*place, key), locate) for key in _PATTERNS)
    return Constraint(name, most, least, _clock_of(row, name, place, locate), models, systems)


def _goal(row: Mapping[str, Any], place: Place, locate: Locate) -> Goal:
    name = _figure(row, place, locate)
    want = row.get("want", figures.FIGURES[name].better)
    if want not in (figures.MIN, figures.MAX):
        raise InputError(f"{locate((*place, 'want'))}: want must be 'min' or 'max'")
    within = row.get("tolerance_percent", 0)
    percent = None if isinstance(within, str) else figures.quantity(within, {})
    if percent is None or not 0 <= percent <= _MOST_PERCENT:
        where = locate((*place, "tolerance_percent"))
        raise InputError(f"{where}: tolerance_percent must be a number from 0 to {_MOST_PERCENT:g}")
    return Goal(name, want, _clock_of(row, name, place, locate), percent)


def _figure(row: Mapping[str, Any], place: Place, locate: Locate) -> FigureName:
    name = row.get("figure")
    if name is None:
        what = f"{locate(place)}: a table of [[{place[0]}]] needs a figure"
        raise InputError(what, 'such as figure = "sram_bytes"')
    if not isinstance(name, str) or name not in figures.FIGURES:
        text = short(name) if isinstance(name, str) else type(name).__name__
        what = f"{locate((*place, 'figure'))}: there is no figure '{text}'"
        raise InputError(what, suggestion(text, figures.FIGURES))
    return figures.FIGURES[name].name


def _limit(text: object, name: str, place: Place, locate: Locate) -> float:
    figure = figures.FIGURES[name]
    number = figures.quantity(text, figure.units)
    in_db = figure.unit == "dB"
    if number is None or (number < 0 and not in_db):
        units = ", ".join(unit for unit in figure.units if unit)
        hint = (
            f'a number, or a text of a number and one of the units {units}: "2 {figure.unit}"'
            if units
            else ""
        )
        what = f"{place[-1]} of {name} must be a number from 0 to {figures.MOST:g}"
        if in_db:
            what = f"{place[-1]} of {name} must be a number of decibels"
        raise InputError(f"{locate(place)}: {what}", hint)
    return number


def _clock_of(row: Mapping[str, Any], name: str, place: Place, locate: Locate) -> float | None:
    if "clock_mhz" not in row:
        return None
    where = (*place, "clock_mhz")
    if name != figures.TIME:
        raise InputError(f"{locate(where)}: clock_mhz applies only to {figures.TIME}, not to {name}")
    found = figures.clock(row["clock_mhz"])
    if found is None:
        raise InputError(f"{locate(where)}: clock_mhz must be a number of MHz, such as 500")
    return found


def _patterns(row: Mapping[str, Any], place: Place, locate: Locate) -> tuple[str, ...]:
    """The names or patterns of the member at the end of `place`; none where it is absent."""
    key = str(place[-1])
    names = row.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{locate(place)}: {key} must be a list of names", f"{key} = {_PATTERNS[key]}")
    if key in row and not names:
        raise InputError(f"{locate(place)}: {key} is empty", "leave it out for all of them")
    if len(names) > _MOST_PATTERNS or any(
        len(name) > _MOST_CHARACTERS or name.count("*") > _MOST_STARS for name in names
    ):
        raise InputError(
            f"{locate(place)}: {key} takes at most {_MOST_PATTERNS} names of {_MOST_CHARACTERS} characters"
        )
    return tuple(names)
