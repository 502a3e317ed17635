"""Constraints that a cell must keep and goals that rank the cells that do: their figures, and the tables in
SWEEP.toml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, get_args

from msgspec import Meta, Struct

from ethosu_sdk.base.toml_source import Place, TomlSource
from ethosu_sdk.records.sweep import Constraint, FigureName, Goal, RankedSource, Want

Row = Mapping[str, object]

MIN: Final = "min"
MAX: Final = "max"
TIME: Final = "time_ms"
CYCLES: Final = "npu_cycles"
INFERENCE: Final = "inference_ms"
SOURCES: tuple[RankedSource, ...] = get_args(RankedSource)
MOST = 1e15  # a double holds every integer up to here
_MS_PER_UNIT = {"": 1.0, "s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
_BYTES = {"": 1.0, "bytes": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_BYTES |= {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_PLAIN = {"": 1.0}
_DB = "dB"
_DECIBELS = {"": 1.0, _DB: 1.0}
_QUANTITY = re.compile(r"([+-]?\d{1,15}(?:\.\d{1,9})?) ?([A-Za-zµ]{0,8}|%)")


@dataclass(frozen=True)
class Figure:
    """A figure: `units` are those that a limit may be given in; `better` is what a goal wants of it."""

    name: FigureName
    title: str
    unit: str
    units: Mapping[str, float]
    better: Want = MIN

    @property
    def has_source(self) -> bool:
        """Whether it is measured, modelled or estimated, and not simply so."""
        return self.name in (TIME, CYCLES)


FIGURES: dict[str, Figure] = {
    row.name: row
    for row in (
        Figure("sram_bytes", "SRAM", "bytes", _BYTES),
        Figure("dram_bytes", "DRAM", "bytes", _BYTES),
        Figure("flash_bytes", "flash", "bytes", _BYTES),
        Figure("program_bytes", "program", "bytes", _BYTES),
        Figure(TIME, "NPU time", "ms", _MS_PER_UNIT),
        Figure(INFERENCE, "time of an inference", "ms", _MS_PER_UNIT),
        Figure(CYCLES, "NPU cycles", "cycles", _PLAIN),
        Figure("npu_macs", "MACs of an inference", "MACs", _PLAIN),
        Figure("macs", "MACs per cycle of the NPU", "", _PLAIN),
        Figure("operators_npu", "operators on the NPU", "", _PLAIN, MAX),
        Figure("operators_cpu", "operators on the CPU", "", _PLAIN),
        Figure("cpu_calls", "calls of operators on the CPU", "", _PLAIN),
        Figure("sqnr_db", "SQNR", _DB, _DECIBELS, MAX),
        Figure("top1", "share of right answers", "", {"": 1.0, "%": 0.01}, MAX),
        Figure("check_sqnr_db", "SQNR of the check of the compilation", _DB, _DECIBELS, MAX),
    )
}


@dataclass(frozen=True)
class Value:
    """A figure of a cell; without `number`, `why` says what is missing."""

    number: float | None = None
    source: RankedSource | None = None
    why: str = ""


def figure_value(row: Row, name: str, clock_mhz: float | None) -> Value:
    """The figure called `name` of the cell `row`; a time at `clock_mhz`, where that is given, from its cycles."""
    if not FIGURES[name].has_source:
        return _figure_number(row, name)
    source = next((known for known in SOURCES if known == row.get("npu_cycles_source")), None)
    if source is None:
        return Value(why=f"{name} has no source")
    if row.get("operators_npu") == 0 or row.get(CYCLES) == 0:
        return Value(why=f"{name} is of the NPU alone, on which nothing ran")
    found = _figure_number(row, CYCLES if clock_mhz else name)
    if found.number is None:
        return found
    return Value(found.number / (clock_mhz * 1e3) if clock_mhz else found.number, source)


def _figure_number(row: Row, name: str) -> Value:
    found, in_db = row.get(name), FIGURES[name].unit == _DB
    if found is None:
        return Value(why=f"{name} is not known")
    is_nan = isinstance(found, float) and math.isnan(found)
    if not isinstance(found, (int, float)) or isinstance(found, bool) or is_nan:
        return Value(why=f"{name} is not a number")
    is_noiseless = in_db and found == math.inf  # equal outputs
    if not is_noiseless and (abs(found) > MOST or (found < 0 and not in_db)):
        return Value(why=f"{name} is out of range")
    return Value(found)


def parse_quantity(text: object, units: Mapping[str, float]) -> float | None:
    """A number, or a text of a number and one of `units`, in the first unit; None for what is neither."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if abs(text) <= MOST else None
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        return None
    number = float(found[1]) * units[found[2]]
    return number if abs(number) <= MOST else None


def parse_clock(text: object) -> float | None:
    """A clock in MHz; None for what is none."""
    found = parse_quantity(text, {"": 1.0, "MHz": 1.0, "GHz": 1e3, "kHz": 1e-3})
    return found if found is not None and 1e-3 <= found <= 1e5 else None


def shown_figure(name: str, number: float) -> str:
    """A number with the unit of the figure called `name`, as it stands in a sentence."""
    unit = FIGURES[name].unit
    if math.isinf(number):
        text = "∞"
    elif float(number).is_integer():
        text = f"{int(number):,}"
    else:
        text = f"{number:,.3f}" if abs(number) >= 1 else f"{number:.3g}"
    return f"{text} {unit}".rstrip()


CONSTRAINTS, GOALS = "constraints", "goals"
_PATTERNS = {"words": "a list of 1 to 64 names, of 200 characters and 8 '*' at most"}
_NamePatterns = Annotated[
    list[Annotated[str, Meta(max_length=200, pattern=r"\A[^*]*(?:\*[^*]*){0,8}\Z")]],
    Meta(min_length=1, max_length=64, extra=_PATTERNS),
]


class _Constraint(Struct, forbid_unknown_fields=True):
    figure: FigureName
    max: Any = None
    min: Any = None
    clock_mhz: Any = None
    models: _NamePatterns | None = None
    systems: _NamePatterns | None = None


class _Goal(Struct, forbid_unknown_fields=True):
    figure: FigureName
    want: Want | None = None
    clock_mhz: Any = None
    tolerance_percent: Annotated[float, Meta(ge=0, le=1000.0)] = 0.0


ConstraintTables = Annotated[
    list[_Constraint], Meta(max_length=64, extra={"words": "at most 64 tables [[constraints]]"})
]
GoalTables = Annotated[list[_Goal], Meta(max_length=8, extra={"words": "at most 8 tables [[goals]]"})]


ALIKE_PERCENT = 1.0  # figures that differ by less do not tell which cell is better


def figure_title(figure: str, clock_mhz: float | None) -> str:
    """A figure by its title, with the clock that it is for."""
    return FIGURES[figure].title + (f" at {clock_mhz:g} MHz" if clock_mhz else "")


def make_goal(
    figure: FigureName, want: Want, clock_mhz: float | None = None, tolerance_percent: float = ALIKE_PERCENT
) -> Goal:
    """A goal with its text. Cells within `tolerance_percent` of the best are as good as it."""
    kind = "least" if want == MIN else "most"
    within = f" (equal within {tolerance_percent:g} %)" if tolerance_percent else ""
    return Goal(
        figure=figure,
        want=want,
        clock_mhz=clock_mhz,
        tolerance_percent=tolerance_percent or None,
        text=f"{kind} {figure_title(figure, clock_mhz)}{within}",
    )


def default_goals(time: FigureName, clock_mhz: float | None = None) -> tuple[Goal, ...]:
    """Least SRAM, then the least of a `time`."""
    return make_goal("sram_bytes", MIN), make_goal(time, MIN, clock_mhz)


def is_for(constraint: Constraint, model: str, system: str) -> bool:
    """Whether the cells of `model` on `system` (empty: on none) must keep it."""
    return all(
        patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)
        for name, patterns in ((model, constraint.models), (system, constraint.systems))
    )


def cells_of(models: Iterable[str] | None, systems: Iterable[str] | None) -> str:
    """The cells that a constraint is for; empty: all."""
    return " on ".join(", ".join(part) for part in (models, systems) if part)


@dataclass(frozen=True)
class Goals:
    """All constraints, and the goals in their order; `are_default` when the file has none."""

    constraints: tuple[Constraint, ...] = ()
    goals: tuple[Goal, ...] = default_goals(TIME)
    are_default: bool = True

    @property
    def figures(self) -> set[FigureName]:
        return {row.figure for row in self.constraints} | {row.figure for row in self.goals}


def parse_goals(source: TomlSource, constraint_tables: ConstraintTables, goal_tables: GoalTables) -> Goals:
    """The constraints and goals in a file's tables. InputError, with the line, for what says none."""
    tables = enumerate(constraint_tables)
    constraints = tuple(_parse_constraint(source, row, (CONSTRAINTS, index)) for index, row in tables)
    goals: list[Goal] = []
    for index, row in enumerate(goal_tables):
        clock_mhz = _clock_of(source, row.clock_mhz, row.figure, (GOALS, index))
        want = row.want or FIGURES[row.figure].better
        goals.append(make_goal(row.figure, want, clock_mhz, row.tolerance_percent))
    keys = [(goal.figure, goal.clock_mhz) for goal in goals]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise source.wrong((GOALS, index), f"there is a goal for {figure_title(*key)} already")
    is_inference_limited = any(row.figure == INFERENCE for row in constraints)
    default = default_goals(INFERENCE if is_inference_limited else TIME)
    return Goals(constraints, tuple(goals) or default, not goals)


def _parse_constraint(source: TomlSource, row: _Constraint, place: Place) -> Constraint:
    name = row.figure
    most = _limit(source, row.max, name, (*place, "max"))
    least = _limit(source, row.min, name, (*place, "min"))
    if most is None and least is None:
        raise source.wrong(place, f"the constraint on {name} has no limit", "give it a max or a min")
    if most is not None and least is not None and least > most:
        raise source.wrong((*place, "min"), f"no {name} is above its min and below its max")
    clock_mhz = _clock_of(source, row.clock_mhz, name, place)
    limits = [f"≥ {shown_figure(name, least)}"] if least is not None else []
    limits += [f"≤ {shown_figure(name, most)}"] if most is not None else []
    whom = cells_of(row.models, row.systems)
    return Constraint(
        figure=name,
        min=least,
        max=most,
        clock_mhz=clock_mhz,
        models=None if row.models is None else tuple(row.models),
        systems=None if row.systems is None else tuple(row.systems),
        text=f"{figure_title(name, clock_mhz)} {' and '.join(limits)}{f' ({whom})' if whom else ''}",
    )


def _limit(source: TomlSource, text: object, name: str, place: Place) -> float | None:
    figure = FIGURES[name]
    number = parse_quantity(text, figure.units)
    in_db = figure.unit == _DB
    if text is not None and (number is None or (number < 0 and not in_db)):
        units = ", ".join(unit for unit in figure.units if unit)
        hint = f'a number, or a text of a number and one of the units {units}: "2 {figure.unit}"'
        what = "a number of decibels" if in_db else f"a number from 0 to {MOST:g}"
        raise source.wrong(place, f"{place[-1]} of {name} must be {what}", hint if units else "")
    return number


def _clock_of(source: TomlSource, text: object, name: str, place: Place) -> float | None:
    if text is None:
        return None
    where = (*place, "clock_mhz")
    if name != TIME:
        raise source.wrong(where, f"clock_mhz applies only to {TIME}, not to {name}")
    found = parse_clock(text)
    if found is None:
        raise source.wrong(where, "clock_mhz must be a number of MHz, such as 500")
    return found
