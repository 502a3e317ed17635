"""What `ethosu-sdk compare` shows on a terminal, made from its record alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import Ranked, escape
from ethosu_sdk.plain_text import counted
from ethosu_sdk.readers.compare import operators
from ethosu_sdk.records.compare import (
    Comparison,
    Comparisons,
    FigureChange,
    MetricChange,
    MetricStatus,
    OperatorChange,
)

_MOST_ROWS = 20
_GIVE_WAY = ("unit", "source", "where", "change")  # in a narrow terminal, the first one first
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_STATUSES: dict[MetricStatus, str] = {
    "regression": "worse",
    "improved": "better",
    "missing": "in only one run",
    "tolerated": "worse within the tolerance",
    "differs": "different and not judged",
}
_COLOURS = {"regression": "red", "improved": "green", "missing": "yellow"}
METRIC_HEADINGS = ("figure", "before", "after", "change", "", "unit", "where")
OPERATOR_HEADINGS = ("operator", "figure", "before", "after", "change", "", "source")
DIMENSION_HEADINGS = ("differs", "before", "after", "")


def tables(record: Comparisons, rows: int | None) -> list[RenderableType]:
    """Each comparison: what differs, figure by figure and operator by operator. `rows` limits the operators."""
    parts: list[RenderableType] = []
    for comparison in record.comparisons:
        parts += (
            ["", *_comparison(record, comparison, rows)] if parts else _comparison(record, comparison, rows)
        )
    return [*parts, *(f"{escape(row.name)}: {escape(row.reason)}" for row in record.failed)]


def title(record: Comparisons, comparison: Comparison) -> str:
    """What is compared with what, in a line."""
    names = {row.label: row.name for row in record.subjects}
    before, after = comparison.before, comparison.after
    return f"{before} ({names[before]}) → {after} ({names[after]})"


def _comparison(record: Comparisons, comparison: Comparison, rows: int | None) -> Iterator[RenderableType]:
    yield f"[bold]{escape(title(record, comparison))}[/bold]: {escape(summary(comparison))}"
    parts = (
        _table(DIMENSION_HEADINGS, dimension_rows(comparison)),
        _table(METRIC_HEADINGS, metric_rows(comparison), has_numbers=True),
        _table(OPERATOR_HEADINGS, operator_rows(comparison, rows or _MOST_ROWS), has_numbers=True),
    )
    for table in parts:
        if table.row_count:
            yield from ("", table)
    left = len(comparison.operators) - (rows or _MOST_ROWS)
    if left > 0:
        more = counted(left, "more operator")
        yield f"and {more} with differences, in the record; --rows shows more"


def summary(comparison: Comparison) -> str:
    """A comparison in a line."""
    if comparison.status == "blocked":
        return "cannot be compared"
    counts = Counter(row.status for row in comparison.metrics)
    compared = f"{counted(comparison.compared, 'figure')} of {', '.join(comparison.kinds)} compared"
    if not comparison.metrics and not comparison.operators:
        return f"no difference, {compared}"
    worse = sum(1 for _ in _worse_operators(comparison))
    at_operators = [f"{worse} at operators worse than their rules tolerate"] if worse else []
    told = (f"{counts[name]} {words}" for name, words in _STATUSES.items() if counts[name])
    return ", ".join((compared, *told, *at_operators))


def _worse_operators(comparison: Comparison) -> Iterator[tuple[OperatorChange, FigureChange]]:
    """Operators with a figure that is worse than its rule tolerates, and the figure."""
    for row in comparison.operators:
        yield from ((row, part) for part in row.figures if part.status == "regression")


def _table(headings: Sequence[str], rows: Iterator[Sequence[str]], *, has_numbers: bool = False) -> Table:
    """A table. With `has_numbers`, what was before and after are figures, and stand on the right."""
    table = Ranked(box=None, pad_edge=False, drop=_GIVE_WAY)
    for heading in headings:
        is_number = has_numbers and heading in ("before", "after", "change", "")
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_coloured(cell) for cell in row))
    return table


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell)
    return f"[{colour}]{cell}[/{colour}]" if colour else escape(cell)


def dimension_rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """The dimensions in which two runs differ."""
    for row in comparison.dimensions:
        if row.status != "same":
            yield (
                row.name,
                *_parting(row.before, row.after),
                row.status + (f": {row.reason}" if row.reason else ""),
            )


def _parting(before: str, after: str) -> tuple[str, str]:
    """Two lists of words, without those that both have."""
    parts = [text.split(", ") for text in (before, after)]
    own = [[part for part in mine if part not in other] for mine, other in (parts, parts[::-1])]
    return _short_digests(", ".join(own[0]) or "nothing more"), _short_digests(
        ", ".join(own[1]) or "nothing more"
    )


def metric_rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """The figures that differ: what is worse first."""
    order = ("regression", "missing", "improved", "tolerated", "differs")
    for row in sorted(comparison.metrics, key=lambda row: order.index(row.status)):
        unit = " ".join(filter(None, (row.unit, f"({row.source})" if row.source is not None else "")))
        operator = row.detail or ""
        if row.operator is not None:
            where = operators.words(comparison.operators[row.operator])
            operator = f"{operator}, {_others(comparison)} {where}".lstrip(", ") if _is_output(row) else where
        values = (number(row.before), number(row.after))
        yield row.name, *values, _change(row), row.status, unit, operator


def _is_output(row: MetricChange) -> bool:
    return row.name.startswith("outputs.")


def _others(comparison: Comparison) -> str:
    """What is said of the operator whose constants may have changed an output."""
    count = sum(row.constants is not None for row in comparison.operators)
    return "other weights or scales" + (f" at {count} operators, such as" if count > 1 else " at")


def _change(row: MetricChange | FigureChange) -> str:
    if row.change is None:
        return ""
    percent = f" ({row.percent:+.2f} %)" if row.percent is not None else ""
    return f"{number(row.change, sign='+')}{percent}"


def operator_rows(comparison: Comparison, most: int) -> Iterator[tuple[str, ...]]:
    """The operators that differ, a row for each figure."""
    for row in comparison.operators[:most]:
        name = operators.words(row)
        name += f", only {row.only_in}" if row.only_in is not None else ""
        for part in row.figures:
            values = (number(part.before), number(part.after))
            yield name, part.name, *values, _change(part), part.status or "", part.source or ""
            name = ""
        if row.constants is not None:
            yield name, "weights, biases, scales", "", "", "", "differ", ""


def number(value: float | str | None, sign: str = "") -> str:
    """A figure as text; texts as they are, with short digests; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return _short_digests(value)
    if isinstance(value, float) and not value.is_integer():
        return f"{value:{sign},.6g}"
    return f"{int(value):{sign},}"


def _short_digests(text: str) -> str:
    """`text` with its digests cut."""
    return _DIGEST.sub(r"\1…", text)


def reasons(comparison: Comparison) -> list[str]:
    """Why a comparison is blocked, or what is worse in it and where, a line each."""
    if comparison.status == "blocked":
        rows = (row for row in dimension_rows(comparison) if not row[3].startswith("allowed"))
        return [
            f"{name}: {before} and {after}{why.removeprefix('blocks')}" for name, before, after, why in rows
        ]
    found = []
    for row in metric_rows(comparison):
        if row[4] == "regression":
            name, before, after, change, _, unit, where = row
            detail = where if name.startswith("outputs.") else where and f"most of it at {where}"
            text = f"{name}: {before} → {after} {unit}".rstrip() + (f", {change}" if change else "")
            found.append(text + (f", {detail}" if detail else ""))
    return found + [_reason(row, part) for row, part in _worse_operators(comparison)]


def _reason(row: OperatorChange, part: FigureChange) -> str:
    """How much worse an operator is than its rule tolerates."""
    source = f" ({part.source})" if part.source is not None else ""
    values = f"{number(part.before)} → {number(part.after)} {part.unit}{source}, {_change(part)}"
    return f"{operators.words(row)}: {part.name} {values}, tolerated {number(part.tolerated or 0)}"
