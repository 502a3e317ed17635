"""What `ethosu-sdk compare` shows on a terminal, made from its record alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.readers.compare import operators
from ethosu_sdk.records import Record

_MOST_ROWS = 20
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_COLOURS = {"regression": "red", "improved": "green", "missing": "yellow"}
METRIC_HEADINGS = ("figure", "before", "after", "change", "", "unit", "where")
OPERATOR_HEADINGS = ("operator", "figure", "before", "after", "change", "", "source")
DIMENSION_HEADINGS = ("differs", "before", "after", "")


def tables(record: Record, rows: int | None) -> list[RenderableType]:
    """Each comparison: what differs, figure by figure and operator by operator. `rows` limits the operators."""
    parts: list[RenderableType] = []
    for comparison in record["comparisons"]:
        parts += (
            ["", *_comparison(record, comparison, rows)] if parts else _comparison(record, comparison, rows)
        )
    return [*parts, *(f"{escape(row['name'])}: {escape(row['reason'])}" for row in record["failed"])]


def title(record: Record, comparison: Record) -> str:
    """What is compared with what, in a line."""
    names = {row["label"]: row["name"] for row in record["subjects"]}
    before, after = comparison["before"], comparison["after"]
    return f"{before} ({names[before]}) → {after} ({names[after]})"


def _comparison(record: Record, comparison: Record, rows: int | None) -> Iterator[RenderableType]:
    yield f"[bold]{escape(title(record, comparison))}[/bold]: {escape(summary(comparison))}"
    parts = (
        _table(DIMENSION_HEADINGS, dimension_rows(comparison)),
        _table(METRIC_HEADINGS, metric_rows(comparison), has_numbers=True),
        _table(OPERATOR_HEADINGS, operator_rows(comparison, rows or _MOST_ROWS), has_numbers=True),
    )
    for table in parts:
        if table.row_count:
            yield from ("", table)
    left = len(comparison["operators"]) - (rows or _MOST_ROWS)
    if left > 0:
        yield f"and {left} more operators that differ: they are in the record, and --rows shows more"


def summary(comparison: Record) -> str:
    """A comparison in a line."""
    if comparison["status"] == "blocked":
        return "cannot be compared"
    counts = dict.fromkeys(("regression", "improved", "missing", "tolerated", "differs"), 0)
    for row in comparison["metrics"]:
        counts[row["status"]] += 1
    compared = f"{comparison['compared']} figures of {', '.join(comparison['kinds'])} compared"
    if not comparison["metrics"] and not comparison["operators"]:
        return f"no difference, {compared}"
    words = {
        "regression": "worse",
        "improved": "better",
        "missing": "in one alone",
        "tolerated": "worse within the tolerance",
        "differs": "different and not judged",
    }
    worse = sum(1 for _ in _worse_operators(comparison))
    at_operators = [f"{worse} at operators worse than their rules tolerate"] if worse else []
    told = (f"{count} {words[name]}" for name, count in counts.items() if count)
    return ", ".join((compared, *told, *at_operators))


def _worse_operators(comparison: Record) -> Iterator[tuple[Record, Record]]:
    """Operators with a figure that is worse than its rule tolerates, and the figure."""
    for row in comparison["operators"]:
        yield from ((row, part) for part in row["figures"] if part.get("status") == "regression")


def _table(headings: Sequence[str], rows: Iterator[Sequence[str]], *, has_numbers: bool = False) -> Table:
    """A table. With `has_numbers`, what was before and after are figures, and stand on the right."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        is_number = has_numbers and heading in ("before", "after", "change", "")
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_coloured(cell) for cell in row))
    return table


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell)
    return f"[{colour}]{cell}[/{colour}]" if colour else escape(cell)


def dimension_rows(comparison: Record) -> Iterator[tuple[str, ...]]:
    """What two runs do not have in common."""
    for row in comparison["dimensions"]:
        if row["status"] != "same":
            before, after = _parting(row["before"], row["after"])
            yield (
                row["name"],
                before,
                after,
                row["status"] + (f": {row['reason']}" if "reason" in row else ""),
            )


def _parting(before: str, after: str) -> tuple[str, str]:
    """Two lists of words, without those that both have."""
    parts = [text.split(", ") for text in (before, after)]
    own = [[part for part in mine if part not in other] for mine, other in (parts, parts[::-1])]
    return shown(", ".join(own[0]) or "nothing more"), shown(", ".join(own[1]) or "nothing more")


def metric_rows(comparison: Record) -> Iterator[tuple[str, ...]]:
    """The figures that differ: what is worse first."""
    order = ("regression", "missing", "improved", "tolerated", "differs")
    for row in sorted(comparison["metrics"], key=lambda row: order.index(row["status"])):
        unit = " ".join(filter(None, (row.get("unit", ""), f"({row['source']})" if "source" in row else "")))
        operator = row.get("detail", "")
        if "operator" in row:
            where = operators.words(comparison["operators"][row["operator"]])
            operator = f"{operator}, {_others(comparison)} {where}".lstrip(", ") if _is_output(row) else where
        values = (number(row.get("before")), number(row.get("after")))
        yield row["name"], *values, _change(row), row["status"], unit, operator


def _is_output(row: Record) -> bool:
    return str(row["name"]).startswith("outputs.")


def _others(comparison: Record) -> str:
    """What is said of the operator whose constants may have changed an output."""
    count = sum("constants" in row for row in comparison["operators"])
    return "other weights or scales" + (f" at {count} operators, such as" if count > 1 else " at")


def _change(row: Record) -> str:
    if "change" not in row:
        return ""
    percent = f" ({row['percent']:+.2f} %)" if "percent" in row else ""
    return f"{number(row['change'], sign='+')}{percent}"


def operator_rows(comparison: Record, most: int) -> Iterator[tuple[str, ...]]:
    """The operators that differ, a row for each figure."""
    for row in comparison["operators"][:most]:
        name = operators.words(row)
        name += f", only {row['only_in']}" if "only_in" in row else ""
        for part in row["figures"]:
            values = (number(part["before"]), number(part["after"]))
            yield name, part["name"], *values, _change(part), part.get("status", ""), part.get("source", "")
            name = ""
        if "constants" in row:
            yield name, "weights, biases, scales", "", "", "", "differ", ""


def number(value: float | str | None, sign: str = "") -> str:
    """A figure as text; texts as they are, with short digests; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float) and not value.is_integer():
        return f"{value:{sign},.6g}"
    return f"{int(value):{sign},}"


def shown(text: str) -> str:
    """`text` with its digests cut."""
    return _DIGEST.sub(r"\1…", text)


def reasons(comparison: Record) -> list[str]:
    """Why a comparison is blocked, or what is worse in it and where, a line each."""
    if comparison["status"] == "blocked":
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


def _reason(row: Record, part: Record) -> str:
    """How much worse an operator is than its rule tolerates."""
    source = f" ({part['source']})" if "source" in part else ""
    values = f"{number(part['before'])} → {number(part['after'])} {part['unit']}{source}, {_change(part)}"
    return f"{operators.words(row)}: {part['name']} {values}, tolerated {number(part.get('tolerated', 0))}"
