"""Finds the line of a member in a TOML text; Python's reader does not give it."""

from __future__ import annotations

import tomllib
from typing import Any

Place = tuple[str | int, ...]  # keys of tables, and indices of arrays


def line_of(text: str, place: Place) -> int:
    """The line, from 1, of a valid TOML `text` at which the member at `place` begins.

    What a text says of a member, it goes on to say with more lines: the first lines that are TOML and have the member
    end with it, and the last ones before that end above it.
    """
    lines = text.splitlines(keepends=True)
    above, below = 0, len(lines)  # lines that do not have it, and lines that have
    while below - above > 1:
        middle = (above + below) // 2
        data = None
        while middle > above and (data := _parsed(lines[:middle])) is None:
            middle -= 1  # in a value of several lines
        if data is None:  # it is the value that begins behind `above`, or one behind it
            above, below = _next(lines, above, below, place)
            break
        if _has(data, place):
            below = middle
        else:
            above = middle
    return above + 1


def _next(lines: list[str], above: int, below: int, place: Place) -> tuple[int, int]:
    """The same, going on line by line."""
    for end in range(above + 1, below):
        data = _parsed(lines[:end])
        if data is not None and _has(data, place):
            return above, end
        if data is not None:
            above = end
    return above, below


def _parsed(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("".join(lines))
    except (ValueError, RecursionError):
        return None


def _has(data: Any, place: Place) -> bool:
    for key in place:
        if isinstance(key, int):
            if not isinstance(data, list) or key >= len(data):
                return False
        elif not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True
