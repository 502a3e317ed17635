"""Where two profiles differ: rows of operations joined by what they are in the model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from ethosu_sdk.records import common, operation_tree
from ethosu_sdk.records.common import Source
from ethosu_sdk.records.compare import FigureChange, OperatorChange
from ethosu_sdk.records.profile import Operation, Profile, Shapes, cycles
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.records.wording import short_operator

_SOURCES: tuple[Source, ...] = ("measured", "modelled", "estimated")
# Figure → unit and source of its rows; what is read and written by memory comes behind them.
_UNITS: dict[str, tuple[str, Source | None]] = {
    **{f"cycles.{source}": ("cycles", source) for source in _SOURCES},
    "instructions": ("instructions", "counted"),
    "calls": ("calls", None),
    "macs": ("operations", None),
    "weight_bytes": ("bytes", None),
    "scratch_bytes": ("bytes", "estimated"),
}
_TRAFFIC = "traffic."
# Figure of a record → the figures of its operators that add up to it, as patterns.
_PARTS = {
    "npu.cycles": ("cycles.measured", "cycles.modelled"),
    **{
        f"npu.counters.{port}_{way}_*": (f"traffic.*.port{number}.{moved}_bytes",)
        for port, number in (("AXI0", 0), ("AXI1", 1), ("SRAM", 0), ("EXT", 1))
        for way, moved in (("RD", "read"), ("WR", "write"))
    },
    "npu.counters.*": ("cycles.measured", "cycles.modelled"),
    **{f"profile.cycles.{source}": (f"cycles.{source}",) for source in _SOURCES},
    "compile.*.estimates.total_cycles": ("cycles.estimated",),
    "cpu.instructions": ("instructions",),
    "profile.cpu_instructions": ("instructions",),
    "cpu.operators": ("calls",),
    "profile.cpu_operators": ("calls",),
    "profile.macs": ("macs",),
}
# Figure of a record → the figure of its operators whose sum it is, but for what no operator stands for.
_SUMS = {
    "npu.cycles": "cycles.{source}",
    "npu.counters.NPU_ACTIVE": "cycles.{source}",
    **{f"profile.cycles.{source}": f"cycles.{source}" for source in _SOURCES},
    "cpu.instructions": "instructions",
    "profile.cpu_instructions": "instructions",
    "cpu.operators": "calls",
    "profile.cpu_operators": "calls",
}
OPERATOR_FIGURES = (*_UNITS, f"{_TRAFFIC}*")
Key = tuple[str, ...]


@dataclass
class Operator:
    """An operator of the model, or what Vela added, with the sums over its operations in an inference."""

    row: Operation
    figures: Counter[str] = field(default_factory=Counter)
    constants: list[str] = field(default_factory=list)  # digests, as far as a profile has them


def operators_of(profile: Profile) -> dict[Key, Operator]:
    """The operators of a profile, by what they are whatever else the program has."""
    found: dict[Key, Operator] = {}
    for key, row in zip(operator_keys(profile.operations), profile.operations, strict=True):
        operator = found.setdefault(key, Operator(row))
        operator.constants += [row.constants_sha256] if row.constants_sha256 is not None else []
        for name, value in _figures(row):
            operator.figures[name] += value
    return found


def operator_costs(profile: Profile, *, timed: bool) -> dict[Key, tuple[str, float]]:
    """What an inference takes for each operator, by what it is: its name for people, and seconds where `timed`, for
    which the profile has the time of an inference, else cycles of its processor."""
    time = headline(profile) if timed else None
    spent = operation_tree.Spent(time)
    found: dict[Key, tuple[str, float]] = {}
    for key, row in zip(operator_keys(profile.operations), profile.operations, strict=True):
        on_cpu, figures = row.runs_on == "CPU", operation_tree.figures_of(row, spent)
        if time is not None:
            cost = figures.get("time", 0) / 1e3
        elif on_cpu:
            cost = figures.get("cpu_cycles", 0)
        else:
            cost = figures.get("measured") or figures.get("modelled", 0)
        name = short_operator(row.name) if on_cpu else row.name if row.tosa is None else row.tosa.operator
        module = common.source_module(row.source)
        _, before = found.get(key, ("", 0))
        found[key] = f"{name} ({module})" if module else name, before + cost
    return found


def operator_keys(rows: Sequence[Operation]) -> list[Key]:
    """For each operation what it is: its line in the model, its TOSA operator, and which of those alike it is."""
    alike: defaultdict[Key, dict[tuple[int, ...], None]] = defaultdict(dict)
    found = [(_kind(row), _which(row)) for row in rows]
    for kind, which in sorted(found):
        alike[kind].setdefault(which)
    numbers = {kind: {which: str(n) for n, which in enumerate(order)} for kind, order in alike.items()}
    return [(*kind, numbers[kind][which]) for kind, which in found]


def _kind(row: Operation) -> Key:
    source = row.source
    # Not by the line, which moves when the model's file changes, or the file, which a variant has another one of.
    place = "" if source is None else source.module or source.function or ""
    if row.tosa is not None:
        return "NPU", row.tosa.operator, place
    if row.runs_on == "CPU":
        return "CPU", row.name, place
    shapes = row.shapes or Shapes()
    sizes = (shapes.ofm, shapes.kernel, shapes.stride)
    return ("NPU", row.name, *("x".join(map(str, part or ())) for part in sizes))


def _which(row: Operation) -> tuple[int, ...]:
    """What tells operators of the same kind apart, in their order."""
    if row.tosa is not None:
        return row.delegate or 0, row.tosa.index
    if row.scheduled is not None:
        return row.delegate or 0, row.scheduled
    return row.instruction, row.index


def _figures(row: Operation) -> Iterator[tuple[str, int]]:
    for source in _SOURCES:
        value = cycles(row.cycles, source)
        if value is not None:
            yield f"cycles.{source}", row.calls * value
    if row.runs_on == "CPU":
        yield "calls", row.calls
        if row.instructions is not None:
            yield "instructions", int(row.instructions.value)
        return
    for moved in row.traffic or ():
        yield f"{_TRAFFIC}{moved.memory}.port{moved.port}.{moved.direction}_bytes", row.calls * moved.bytes
    yield "macs", row.calls * (row.macs or 0)
    yield "weight_bytes", row.weights.encoded_bytes if row.weights is not None else 0
    yield "scratch_bytes", row.scratch_bytes or 0


def compare_operators(before: Profile, after: Profile) -> list[OperatorChange]:
    """The operators of two profiles that differ, those first whose cycles grew most."""
    old, new = operators_of(before), operators_of(after)
    rows = []
    for key in dict.fromkeys((*old, *new)):
        changed = list(_changed(old.get(key), new.get(key)))
        if changed or key not in old or key not in new or _has_other_constants(old[key], new[key]):
            rows.append(_row(old.get(key), new.get(key), changed))
    return sorted(rows, key=lambda row: [change_of(row, name) for name in OPERATOR_FIGURES], reverse=True)


def _row(old: Operator | None, new: Operator | None, changed: Sequence[FigureChange]) -> OperatorChange:
    known = new or old
    assert known is not None
    row = known.row
    only_in: Literal["before", "after"] | None = "after" if old is None else "before" if new is None else None
    return OperatorChange(
        runs_on=row.runs_on,
        name=row.name if row.tosa is None else row.tosa.operator,
        tensor=row.tosa.tensor if row.tosa is not None else None,
        source=row.source,
        only_in=only_in,
        constants="differ" if old and new and _has_other_constants(old, new) else None,
        figures=tuple(changed),
    )


def _has_other_constants(old: Operator, new: Operator) -> bool:
    """Whether two profiles that know of it read other weights, biases or scales for an operator."""
    return bool(old.constants and new.constants) and old.constants != new.constants


def _changed(old: Operator | None, new: Operator | None) -> Iterator[FigureChange]:
    sides = [Counter[str]() if side is None else side.figures for side in (old, new)]
    for name in (*_UNITS, *sorted({*sides[0], *sides[1]} - _UNITS.keys())):
        before, after = (side[name] for side in sides)
        if before != after:
            unit, source = _UNITS.get(name, ("bytes", "modelled"))
            yield FigureChange(
                name=name, unit=unit, source=source, before=before, after=after, change=after - before
            )


def change_of(row: OperatorChange, pattern: str) -> int:
    """By how much an operator's figures that fit `pattern` changed."""
    return sum(part.change for part in row.figures if fnmatchcase(part.name, pattern))


def operator_behind(metric: str, rows: Sequence[OperatorChange]) -> OperatorChange | None:
    """Of the operators that differ, the one whose figures made `metric` grow most; None where it has no parts.
    Of outputs one that has other weights, biases or scales."""
    if metric.startswith("outputs."):
        return next((row for row in rows if row.constants is not None), None)
    if metric.startswith(f"profile.{_TRAFFIC}"):
        parts: tuple[str, ...] = (metric.removeprefix("profile."),)
    else:
        parts = next((parts for name, parts in _PARTS.items() if fnmatchcase(metric, name)), ())
    for pattern in parts:
        grown = [row for row in rows if change_of(row, pattern) > 0]
        if grown:
            return max(grown, key=lambda row: change_of(row, pattern))
    return None


def part_of_sum(metric: str, source: str) -> str | None:
    """The figure of operators whose sum `metric` of a record is; None when it is no such sum."""
    if metric.startswith(f"profile.{_TRAFFIC}"):
        return metric.removeprefix("profile.")
    return _SUMS[metric].format(source=source) if metric in _SUMS else None


def fits_pattern(row: OperatorChange, pattern: str) -> bool:
    """Whether an operator of the record is one of `pattern`: by its kind and, behind an @, its module or tensor."""
    kind, _, place = pattern.partition("@")
    places = (common.source_module(row.source), row.tensor or "")
    return fnmatchcase(row.name, kind) and (not place or any(fnmatchcase(name, place) for name in places))


def named_operators(profile: Profile) -> list[OperatorChange]:
    """All operators of a profile, as rows of the record without figures."""
    return [_row(None, operator, []) for operator in operators_of(profile).values()]


def pattern_of(row: OperatorChange) -> str:
    """The pattern that fits an operator alone, or those alike."""
    module = common.source_module(row.source) or row.tensor
    return f"{row.name}@{module}" if module else row.name


def operator_words(row: OperatorChange) -> str:
    """An operator for people: what it is, and where in the model."""
    module, line = common.source_module(row.source), common.source_function(row.source)
    known = ", ".join(filter(None, (f"module {module}" if module else "", line)))
    return row.name + (f" ({known})" if known else "")
