"""What terminals of several widths show of what a command prints: whole figures, and columns left out by name."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from typer.main import get_command

from ethosu_sdk.base import terminal
from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.cli.app import app

WIDTHS = (80, 100, 200)
LEFT_OUT = re.compile(r"left out in \d+ columns: (.+)", re.DOTALL)
_BEFORE, _BEHIND = "([<>=≤≥±+~-", ")],;:.%"  # what may stand at a figure
_FIGURE = re.compile(r"\d[\d,]*(\.\d+)?(e[-+]?\d+)?")
_DOTS = re.compile(r"(?<![\w.,])[\d.,]+\s?…|…\d")
# One of something, called by its plural. Units and names that end in an s are none.
_PLURAL = re.compile(r"(?<![\d.,:/-])1 (?!(?:bus|axis|basis|pass|loss|chans)\b)([a-z]+[^s\W\d]s)\b")


class Recorder(terminal.Terminal):
    """A terminal that keeps what is printed on it."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=WIDTHS[-1])
        self.parts: list[RenderableType] = []

    def print(self, *objects: Any, **options: Any) -> None:
        """Keep it; a line that is not wrapped cannot be cut either."""
        self.parts += [Unwrapped(part) if options.get("soft_wrap") else part for part in objects]


class Unwrapped(str):
    """A line that is printed as long as it is."""


def printed(width: int, *parts: RenderableType) -> str:
    """What a terminal shows of `parts`."""
    text = io.StringIO()
    terminal.show_parts(terminal.Terminal(file=text, width=width), *parts)
    return text.getvalue()


def of_command(monkeypatch: Any, *words: object) -> list[RenderableType]:
    """What a command prints, which ends well or with a verdict."""
    kept = Recorder()
    monkeypatch.setattr(terminal, "make_console", lambda **_: kept)
    with contextlib.suppress(VerdictError):
        get_command(app).main([str(word) for word in words], standalone_mode=False)
    assert kept.parts
    return kept.parts


def flat(parts: Sequence[RenderableType]) -> Iterator[RenderableType]:
    """Tables and texts, those of groups as well."""
    for part in parts:
        if isinstance(part, Group):
            yield from flat(part.renderables)
        else:
            yield part


def wrong(parts: Sequence[RenderableType]) -> list[str]:
    """What is wrong with `parts` at any width: figures cut or wrapped, lines too long, one of something in plural."""
    found = []
    for part in flat(parts):
        whole = printed(1 << 16, part)
        found += [f"dots: {line}" for line in whole.splitlines() if _DOTS.search(line)]
        found += [f"plural: {line}" for line in whole.splitlines() if _PLURAL.search(line) and _is_own(line)]
        for width in WIDTHS if not isinstance(part, Unwrapped) else ():
            text = printed(width, part)
            found += [f"{width}: lost {lost}:\n{text}" for lost in _lost(part, text)]
            found += [f"{width}: too long: {line}" for line in text.splitlines() if len(line) > width]
    return found


def _is_own(line: str) -> bool:
    """Whether a line is the SDK's own, not quoted from a log."""
    return not line.startswith("failure ")


def _lost(part: RenderableType, text: str) -> list[str]:
    """The figures of `part` that `text` does not show whole, but for those of columns that it says are left out."""
    named = LEFT_OUT.search(text)
    gone = re.split(r",\s+", named[1].strip()) if named else []
    left = Counter(_figures(LEFT_OUT.sub("", text)))
    return sorted((Counter(_figures(" ".join(_cells(part, gone)))) - left).elements())


def _cells(part: RenderableType, gone: Sequence[str]) -> Iterator[str]:
    if not isinstance(part, Table):
        yield printed(1 << 16, part)
        return
    for column in part.columns:
        if str(column.header) not in gone:
            yield from (Text.from_markup(str(cell)).plain for cell in column._cells)


def _figures(text: str) -> Iterator[str]:
    for word in text.split():
        bare = word.lstrip(_BEFORE).rstrip(_BEHIND)
        if _FIGURE.fullmatch(bare):
            yield bare
