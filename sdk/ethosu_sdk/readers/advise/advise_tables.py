"""What `ethosu-sdk advise` shows on a terminal, made from its record alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import Record


def tables(record: Record, folder: Path) -> list[RenderableType]:
    """A table for each advice, what saves most first; then the rules that are silent."""
    parts: list[RenderableType] = []
    for number, row in enumerate(record["advice"], start=1):
        parts += [_advice(number, row), ""]
    if not record["advice"]:
        parts += ["no rule has advice", ""]
    return [*parts, _silent(record), "", f"files  {escape(str(folder))}"]


def _advice(number: int, row: Record) -> Table:
    where = f" ({row['where']})" if "where" in row else ""
    title = escape(f"{number}. {row['rule']}{where}: {change_text(row['gains'][0])}")
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in pairs(row):
        table.add_row(name, escape(text))
    return table


def pairs(row: Record) -> Iterator[tuple[str, str]]:
    """An advice as names and texts."""
    yield "seen", row["finding"]
    for figure in row["evidence"]:
        yield "evidence", figure_text(figure)
    if "command" in row:
        yield "do", row["command"]
    for line in row.get("code", ()):
        yield "write", line
    for change in row["gains"]:
        yield "gain", f"{change_text(change)}: {change['how']}"
    for change in row["costs"]:
        yield "cost", f"{change_text(change)}: {change['how']}"
    for limit in row["limits"]:
        yield "but", limit


def figure_text(figure: Record) -> str:
    """A figure with its source."""
    source = f" ({figure['source']})" if "source" in figure else ""
    return f"{figure['name']}: {number_text(figure['value'])} {figure['unit']}{source}"


def change_text(change: Record) -> str:
    """The expected change of a figure as text."""
    before, after = change["before"], change["after"]
    unit = (
        "" if change["metric"].endswith(change["unit"]) or change["unit"] == "calls" else f" {change['unit']}"
    )
    share = f", {(after - before) / abs(before):+.1%}" if before and change["unit"] != "dB" else ""
    source = f"{change['source']} → expected" if "source" in change else "expected"
    return f"{change['metric']} {number_text(before)} → {number_text(after)}{unit} ({source}{share})"


def number_text(value: float) -> str:
    """A number with its thousands apart."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _silent(record: Record) -> Table:
    table = Table(title="silent rules", title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in record["silent"]:
        table.add_row(escape(row["rule"]), escape(row["reason"]))
    return table
