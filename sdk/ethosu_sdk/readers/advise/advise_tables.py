"""What `ethosu-sdk advise` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.readers.advise import tried_tables
from ethosu_sdk.records.advice import Advice, Change, Evidence, Item, SilentRule
from ethosu_sdk.tables import figures


def tables(record: Advice, folder: Path) -> list[RenderableType]:
    """What was tried, the best first; a table for each advice, what saves most first; a line for each operator on the
    CPU; the rules that are silent."""
    parts: list[RenderableType] = []
    if record.tried is not None:
        parts += [*tried_tables.tables(record.tried), ""]
    advice = [row for row in record.advice if not tried_tables.was_tried(row, record.tried)]
    if advice and record.tried is not None:
        parts += ["estimated by the rules, and not tried:", ""]
    for number, row in enumerate(advice, start=1):
        parts += [_advice(number, row), ""]
    if not advice and record.tried is None:
        parts += ["no rule has advice", ""]
    if record.cpu:
        parts += [tried_tables.on_the_cpu(record.cpu), ""]
    return [*parts, _silent(record.silent), "", f"files  {escape(str(folder))}"]


def _advice(number: int, row: Item) -> Table:
    table = Table(
        title=escape(f"{number}. {title(row)}"),
        title_justify="left",
        box=None,
        show_header=False,
        pad_edge=False,
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in pairs(row):
        table.add_row(name, escape(text))
    return table


def title(row: Item) -> str:
    """The rule of an advice, what it is about, and the first gain."""
    where = f" ({row.where})" if row.where is not None else ""
    return f"{row.rule}{where}: {_change_text(row.gains[0])}"


def pairs(row: Item) -> Iterator[tuple[str, str]]:
    """An advice as names and texts."""
    yield "seen", row.finding
    for figure in row.evidence:
        yield "evidence", _figure_text(figure)
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for change in row.gains:
        yield "gain", f"{_change_text(change)}: {change.how}"
    for change in row.costs:
        yield "cost", f"{_change_text(change)}: {change.how}"
    for limit in row.limits:
        yield "but", limit


def _figure_text(figure: Evidence) -> str:
    source = f" ({figure.source})" if figure.source is not None else ""
    return f"{figure.name}: {figures.numbers(figure.value)[0]} {figure.unit}{source}"


def _change_text(change: Change) -> str:
    before, after = change.before, change.after
    texts = figures.numbers(before, after)
    unit = "" if change.metric.endswith(change.unit) or change.unit == "calls" else f" {change.unit}"
    share = f", {(after - before) / abs(before):+.1%}" if before and change.unit != "dB" else ""
    source = f"{change.source} → expected" if change.source is not None else "expected"
    return f"{change.metric} {' → '.join(texts)}{unit} ({source}{share})"


def _silent(rows: Sequence[SilentRule]) -> Table:
    table = Table(title="silent rules", title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(escape(row.rule), escape(row.reason))
    return table
