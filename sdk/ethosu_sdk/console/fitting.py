"""Tables in a terminal that is narrower than they are: names wrap, figures stay whole, columns give way by rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Column, Table

_LEAST_TEXT = 16  # columns for a text that wraps, before a figure is left out
_BESIDE = 2  # blanks beside a column: Rich puts one before and one behind
_WORD = re.compile(r"\S+")
# Where a name may be broken: between its words, never before a digit, which may be a figure's.
_BREAK = re.compile(r"[/_:.,|-](?=[^\W\d])|(?<=[a-z])(?=[A-Z])")


class Ranked(Table):
    """A table that says which columns give way: the headings `drop`, the first one first.

    A column with `no_wrap` stays whole as figures do, as long as there are columns to drop.
    """

    def __init__(self, *headers: Column | str, drop: Sequence[str] = (), **options: Any) -> None:
        """With `options` of Rich's table."""
        super().__init__(*headers, **options)
        self.drop = tuple(drop)


class RowByRow(Table):
    """A table of columns that somebody asked for: where they do not fit side by side, each row is shown by itself."""


def fitted(table: Table, width: int, measured: Callable[[RenderableType], int]) -> Table:
    """`table`, or a copy that fits `width`: without the columns that give way, which its caption names.
    `measured` gives the columns of the terminal that a cell needs on one line.

    A column that stands on the right holds figures, which are never wrapped. A table that is not :class:`Ranked`
    gives up its figures from the right.
    """
    if isinstance(table, RowByRow) and not _fit(table, table.columns, width, measured):
        table = _row_by_row(table)
    columns = [_whole(column, keep=isinstance(table, Ranked)) for column in table.columns]
    dropped: list[str] = []
    for heading in _order(table):
        if _fit(table, columns, width, measured):
            break
        gone = [column for column in columns if column.header == heading]
        columns = [column for column in columns if column not in gone]
        dropped += [str(column.header) for column in gone]
    if not _fit(table, columns, width, measured):
        columns = [_whole(column) for column in columns]
    found = copy(table)
    found.columns = columns
    for index, column in enumerate(columns):
        column._index = index  # by which Rich knows the first and the last
    if dropped:
        found.caption = f"left out in {width} columns: {', '.join(dropped)}"
        found.caption_justify = "left"
    return found


def breaks(text: str, width: int) -> Iterator[int]:
    """Where to break names in `text` that are wider than `width`, at signs between their parts."""
    for word in _WORD.finditer(text):
        start, end = word.span()
        while cell_len(text[start:end]) > width:
            ends = [sign.end() for sign in _BREAK.finditer(text, start, end)]
            start = max((at for at in ends if cell_len(text[start:at]) <= width), default=end)
            if start < end:
                yield start


def _row_by_row(table: Table) -> Table:
    """The columns of `table` below each other, once for each row."""
    found = Table(box=None, show_header=False, pad_edge=False)
    for index in range(table.row_count):
        if index:
            found.add_row()
        for column in table.columns:
            found.add_row(column.header, column._cells[index])
    return found


def _fit(
    table: Table, columns: Sequence[Column], width: int, measured: Callable[[RenderableType], int]
) -> bool:
    return sum(_least(table, column, measured) for column in columns) <= width


def _whole(column: Column, *, keep: bool = False) -> Column:
    """`column` without dots in the place of what does not fit. `keep` keeps it whole if it says so itself."""
    whole = column.justify == "right" or (keep and column.no_wrap)
    copied = replace(column, overflow="fold", no_wrap=whole)
    copied._cells = column._cells
    return copied


def _order(table: Table) -> tuple[str, ...]:
    if isinstance(table, Ranked):
        return table.drop
    figures = [str(column.header) for column in table.columns if column.justify == "right" and column.header]
    return tuple(reversed(figures[1:]))


def _least(table: Table, column: Column, measured: Callable[[RenderableType], int]) -> int:
    """Columns of the terminal that `column` needs, with the blanks beside it."""
    cells = [column.header, *column._cells] if table.show_header else list(column._cells)
    widest = max(map(measured, cells), default=0)
    return (widest if column.no_wrap else min(widest, _LEAST_TEXT)) + _BESIDE
