"""Names and texts of an advice as rows of a table; lines of code that follow each other stand in one cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LINES = ("do", "write")  # what is typed, in a font of fixed width


def of(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """The rows."""
    rows: list[dict[str, Any]] = []
    for name, text in pairs:
        if rows and name in _LINES and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in _LINES})
    return rows
