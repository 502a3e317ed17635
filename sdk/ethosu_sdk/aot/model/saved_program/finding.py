"""The error for a saved program that is unsafe to load, and the facts that it is judged by."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

_SHOWN = 120


class UnsafeError(Exception):
    """One sentence, without a full stop, that names the place and what is wrong there."""


def shown(text: object) -> str:
    """`text` of a file for a message: quoted, on one line, cut to what fits there."""
    quoted = repr(text)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…"


@functools.cache
def plain(part: str, name: str) -> frozenset[str]:
    """The list `name` under `part` of plain.toml."""
    return frozenset(_table()[part][name])


@functools.cache
def _table() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(Path(__file__).with_name("plain.toml").read_text(encoding="utf-8"))
