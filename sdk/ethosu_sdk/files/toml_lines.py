"""Finds in a TOML text what Python's reader does not tell: lines of members, and what would cost it too much."""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]  # keys of tables, and indices of arrays
_MOST_PARTS = 8  # of a dotted key: Python's reader keeps every beginning of one, which grows with the square
_MOST_DIGITS = 128  # of a number that is not decimal: one of more than 4300 decimal digits cannot be printed
_KEY = r"""(?:[\w-]++|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+')"""
_EXCESSES = {
    "deep": f"a key has more than {_MOST_PARTS} parts",
    "long": f"a number has more than {_MOST_DIGITS} digits",
}
# What is open at the end of a text goes to its end: nothing is read twice.
_TOKEN = re.compile(
    rf"""
    \#[^\n]*+
    | \"{{3}}(?:[^"\\]++|\\.|"(?!""))*+(?:"{{3,5}}|\Z)
    | '{{3}}(?:[^']++|'(?!''))*+(?:'{{3,5}}|\Z)
    | (?P<deep>{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_MOST_PARTS}}})
    | (?P<long>0[xob]\w{{{_MOST_DIGITS},}}+)
    | {_KEY}
    | (?P<opened>[\[{{])
    | (?P<closed>[\]}}])
    | (?P<line>\n)
    """,
    re.VERBOSE | re.DOTALL,
)


def excess(text: str) -> tuple[int, str] | None:
    """The first thing that Python's reader must not be given: its line, from 1, and what it is; None without one.

    What stands behind the first mistake of a text may be taken for such a thing.
    """
    for token in _TOKEN.finditer(text):
        if token.lastgroup in _EXCESSES:
            return text.count("\n", 0, token.start()) + 1, _EXCESSES[token.lastgroup]
    return None


def line_of(text: str, place: Place) -> int:
    """The line, from 1, of a valid TOML `text` at which the member at `place` begins.

    What a text says of a member, it goes on to say with more lines: the first lines that are TOML and have the member
    end with it, and the last ones before that end above it.
    """
    ends = [0, *_ends(text)]
    first = bisect.bisect_left(ends, True, key=lambda end: _has(tomllib.loads(text[:end]), place))
    return text.count("\n", 0, ends[max(first, 1) - 1]) + 1


def _ends(text: str) -> Iterator[int]:
    """Behind which characters a line ends, and what was said with it."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token.lastgroup == "opened") - (token.lastgroup == "closed")
        if token.lastgroup == "line" and not depth:
            yield token.end()


def _has(data: Any, place: Place) -> bool:
    for key in place:
        if isinstance(key, int):
            if not isinstance(data, list) or key >= len(data):
                return False
        elif not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True
