"""Where text for people goes: as wide as the terminal there, as wide as its content in a pipe or a file.

What is folded at 80 columns cannot be searched, copied or compared: digests, paths and names of operators stay whole.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO, cast

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ethosu_sdk.commands.terminal import Terminal

_UNLIMITED = 1 << 20  # columns; a table is as wide as its content


def make(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console on stdout or stderr. Without a terminal, COLUMNS limits its width if it is set, else nothing does."""
    if (sys.stderr if stderr else sys.stdout).isatty():
        return Terminal(stderr=stderr, quiet=quiet)
    width = None if os.environ.get("COLUMNS", "").isdecimal() else _UNLIMITED
    stream = cast(TextIO, _Trimmed(stderr))
    return Terminal(file=stream, width=width, quiet=quiet)


def show(console: Console, *parts: RenderableType) -> None:
    """Print `parts`; a table's title may be wider than the table."""
    for part in parts:
        if isinstance(part, Table) and isinstance(part.title, str):
            part.title = Text.from_markup(part.title, overflow="ignore")
            part.title.no_wrap = True
    console.print(*parts)


class _Trimmed(io.TextIOBase):
    """stdout or stderr, whatever that is at the time, without the blanks that pad the lines of a table."""

    def __init__(self, stderr: bool) -> None:
        super().__init__()
        self._stderr = stderr

    def write(self, text: str) -> int:
        """Rich writes whole lines."""
        stream = sys.stderr if self._stderr else sys.stdout
        stream.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)

    def flush(self) -> None:
        """The stream is flushed with what follows, or at the end."""
        (sys.stderr if self._stderr else sys.stdout).flush()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Rich chooses characters that it can encode."""
        return (sys.stderr if self._stderr else sys.stdout).encoding
