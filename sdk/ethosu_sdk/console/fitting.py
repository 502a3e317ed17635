"""Tables in a terminal that is narrower than they are: names wrap, figures stay whole, columns give way by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table

_LEAST_TEXT = 16  # columns for a text that wraps, before a figure is left out
_BESIDE = 2  # blanks beside a column: Rich puts one before and one behind


class Ranked(Table):
    """A table that says which columns give way: the headings `drop`, the first one first."""

    def __init__(self, *headers: Column | str, drop: Sequence[str] = (), **options: Any) -> None:
        """With `options` of Rich's table."""
        super().__init__(*headers, **options)
        self.drop = tuple(drop)


def fitted(table: Table, width: int, measured: Callable[[RenderableType], int]) -> Table:
    """`table`, or a copy that fits `width`: without the columns that give way, which its caption names.
    `measured` gives the columns of the terminal that a cell needs on one line.

    A column that stands on the right holds figures, which are never wrapped. A table that is not :class:`Ranked`
    gives up its figures from the right.
    """
    columns = [_whole(column) for column in table.columns]
    dropped: list[str] = []
    for heading in _order(table):
        if sum(_least(table, column, measured) for column in columns) <= width:
            break
        gone = [column for column in columns if column.header == heading]
        columns = [column for column in columns if column not in gone]
        dropped += [str(column.header) for column in gone]
    found = copy(table)
    found.columns = columns
    for index, column in enumerate(columns):
        column._index = index  # by which Rich knows the first and the last
    if dropped:
        found.caption = f"left out in {width} columns: {', '.join(dropped)}"
        found.caption_justify = "left"
    return found


def _whole(column: Column) -> Column:
    """`column` without dots in the place of what does not fit."""
    copied = replace(column, overflow="fold", no_wrap=column.justify == "right")
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
