"""A line for every operator on the CPU: why it is there, what it costs, what would replace it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ethosu_sdk.readers.advise.constraints import constraint
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.readers.advise.rules.operators import with_sites
from ethosu_sdk.readers.advise.rules.replacements import REPLACEMENTS
from ethosu_sdk.records.advice import CpuCall
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results import source_place

_AT_THE_BORDER = "conversion between floating point and quantised values"
_FOR_AN_OPERATOR = "conversion for an operator on the CPU"
_IO = "--io int8, where the application has integers"
_WITH_IT = "falls away with that operator"
_SAME = "the same"


@dataclass
class _Line:
    """The calls of one operator at one place, and their share of the conversions and delegate starts around them.
    `is_border`: only conversions are around it, at an input or output of the program."""

    is_border: bool
    rows: list[Operation] = field(default_factory=list)
    border_cycles: float | None = None


class Placed(NamedTuple):
    """A line with the instructions of the program that it stands for."""

    call: CpuCall
    instructions: tuple[int, ...]


def lines(facts: Facts) -> tuple[CpuCall, ...]:
    """A line for each CPU operator and place, what costs most first."""
    return tuple(row.call for row in placed(facts))


def placed(facts: Facts) -> tuple[Placed, ...]:
    """The same lines, each with its instructions."""
    found: dict[tuple[str, str, bool], _Line] = {}
    starts = {row.index: row.cpu_cycles for row in facts.profile.delegates}
    groups = _groups(with_sites(facts))
    has_npu = facts.compiled.target is not None
    for number, (runs_on, rows) in enumerate(groups):
        if runs_on == "NPU":
            continue
        computing = [row for row in rows if not cpu.is_conversion(row) and not cpu.is_write_back(row)]
        around = [row for row in rows if cpu.is_conversion(row)]
        after = groups[number + 1][1][0] if 0 < number < len(groups) - 1 else None
        start = starts.get(after.delegate) if after is not None and after.delegate is not None else None
        border = _cycles(around) + (0 if start is None else int(start.value))
        for row in rows:
            is_border = not computing or not has_npu
            key = (row.name, source_place.place(row.source), is_border)
            line = found.setdefault(key, _Line(is_border=is_border))
            line.rows.append(row)
            if row in computing and border and has_npu:
                line.border_cycles = (line.border_cycles or 0) + border / len(computing)
    parts = [
        Placed(_line(facts, row), tuple(entry.instruction for entry in row.rows)) for row in found.values()
    ]
    return tuple(sorted(parts, key=lambda row: _cost(row.call), reverse=True))


def _groups(rows: Iterable[Operation]) -> list[tuple[str, tuple[Operation, ...]]]:
    return [(key, tuple(part)) for key, part in itertools.groupby(rows, key=lambda row: row.runs_on)]


def _cycles(rows: Sequence[Operation]) -> int:
    return sum(int(row.cpu_cycles.value) for row in rows if row.cpu_cycles is not None)


def _line(facts: Facts, line: _Line) -> CpuCall:
    first = line.rows[0]
    counted = [int(row.instructions.value) for row in line.rows if row.instructions is not None]
    why, limit, instead, results = _words(facts, line)
    return CpuCall(
        name=first.name,
        calls=sum(row.calls for row in line.rows),
        where=source_place.place(first.source) or None,
        why=why,
        constraint=limit or None,
        instructions=sum(counted) if counted else None,
        cycles=_cycles(line.rows) or None,
        border_cycles=None if line.border_cycles is None else round(line.border_cycles),
        replacement=instead or None,
        results=results or None,
    )


def _words(facts: Facts, line: _Line) -> tuple[str, str, str, str]:
    """Why it runs on the CPU, what the NPU takes of it, what replaces it, and what becomes of the results."""
    first = line.rows[0]
    if cpu.is_conversion(first):
        if line.is_border:
            return _AT_THE_BORDER, "", _IO, _SAME
        return _FOR_AN_OPERATOR, "", _WITH_IT, ""
    why = first.reason or "the NPU does not take it"
    target = facts.compiled.target
    if target is None:
        return why, "", "", ""
    known = constraint(first.name, target.npu)
    kind = first.source.module_type if first.source is not None else None
    module = REPLACEMENTS.get(kind or "")
    limit = "" if known is None else f"{target.npu} takes {known.text} ({known.source})"
    instead = module.words if module is not None else "" if known is None else known.instead
    results = known.results if known is not None else _SAME if module is not None else ""
    int8 = _on_int8(facts, first)
    return why, limit, "; or ".join(filter(None, (instead, int8))), results


def _on_int8(facts: Facts, row: Operation) -> str:
    """What the Cortex-M backend computes it with; nothing where it does not."""
    place = source_place.place(row.source)
    found = (
        site.cortex_m
        for operator in facts.compiled.cpu_operators
        if operator.name == row.name
        for site in operator.sites
        if site.cortex_m and source_place.place(site.source) == place
    )
    name = next(found, None)
    return "" if name is None else f"{name} on the CPU (--fallback cortex-m)"


def _cost(line: CpuCall) -> tuple[float, float]:
    return (line.cycles or 0) + (line.border_cycles or 0), line.instructions or 0
