"""The one door to a terminal for tables and progress: nothing from a file can move its cursor or style its text.

Text is as wide as the terminal there, as wide as its content in a pipe or a file: what is folded at 80 columns cannot
be searched, copied or compared. Digests, paths and names of operators stay whole.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from rich import markup
from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType
from rich.containers import Lines
from rich.errors import MarkupError
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ethosu_sdk import plain_text
from ethosu_sdk.console import fitting

_UNLIMITED = 1 << 20  # columns; a table is as wide as its content


def escape(value: object) -> str:
    """Markup that shows `value`, a name or text from elsewhere, literally and on one line."""
    return _escaped(plain_text.line(value))


def escape_lines(value: object) -> str:
    """Like :func:`escape`, for text of several lines, such as the output of a tool."""
    return _escaped(plain_text.lines(value))


def _escaped(text: str) -> str:
    # A backslash at the end would take its meaning from the markup that comes next, or give that another one.
    body = text.rstrip("\\")
    return markup.escape(body) + "\\x5c" * (len(text) - len(body))


class _Words(Text):
    """Text whose names are broken between their parts where they are too wide for a line."""

    __slots__ = ()

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        found = Lines()
        for part in self.divide([] if no_wrap else fitting.breaks(self.plain, width)):
            lines = Text.wrap(
                part,
                console,
                width,
                justify=justify,
                overflow=overflow,
                tab_size=tab_size,
                no_wrap=no_wrap,
            )
            found.extend(lines)
        return found


class Terminal(Console):
    """Rich's console, which shows as escapes all that is not printable, and as it is what only looks like markup."""

    def __init__(self, **options: Any) -> None:
        """With `options` of Rich's console."""
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Texts before they are measured and wrapped."""
        plain = plain_text.lines(text)
        try:
            found = super().render_str(plain, **options)
        except MarkupError:
            found = super().render_str(plain, **{**options, "markup": False})
        found.__class__ = _Words
        return found

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All else, once it is text: what comes as Rich's objects has not gone through :meth:`render_str`."""
        if isinstance(renderable, Table):
            renderable = fitting.fitted(renderable, (options or self.options).max_width, self._measured)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain_text.lines(segment.text))

    def _measured(self, cell: RenderableType) -> int:
        return Measurement.get(self, self.options.update(width=_UNLIMITED), cell).maximum


def make(*, stderr: bool = False, quiet: bool = False) -> Terminal:
    """A console on stdout or stderr. Without a terminal, COLUMNS limits its width if it is set, else nothing does."""
    present = _present(stderr)
    if present is not None and present.isatty():
        return Terminal(stderr=stderr, quiet=quiet)
    width = None if os.environ.get("COLUMNS", "").isdecimal() else _UNLIMITED
    stream = cast(TextIO, _Trimmed(stderr))
    return Terminal(file=stream, width=width, quiet=quiet)


def _present(stderr: bool) -> TextIO | None:
    """stdout or stderr; None in a process that has none, such as a daemon or a program with windows alone."""
    return cast("TextIO | None", sys.stderr if stderr else sys.stdout)


def show(console: Console, *parts: RenderableType) -> None:
    """Print `parts`; a table's title may be wider than the table."""
    for part in parts:
        if isinstance(part, Table) and isinstance(part.title, str):
            part.title = Text.from_markup(part.title, overflow="ignore")
            part.title.no_wrap = True
    console.print(*parts, sep="\n")


class _Trimmed(io.TextIOBase):
    """stdout or stderr, whatever that is at the time, without the blanks that pad the lines of a table."""

    def __init__(self, stderr: bool) -> None:
        super().__init__()
        self._stderr = stderr

    def write(self, text: str) -> int:
        """Rich writes whole lines."""
        stream = _present(self._stderr)
        if stream is not None:
            stream.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)

    def flush(self) -> None:
        """The stream is flushed with what follows, or at the end."""
        stream = _present(self._stderr)
        if stream is not None:
            stream.flush()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Rich chooses characters that it can encode."""
        stream = _present(self._stderr)
        return "utf-8" if stream is None else stream.encoding


def words(text: str) -> str:
    """The plain text of `text`, which is Rich's markup."""
    return Text.from_markup(text).plain


def verbatim(text: str) -> RenderableType:
    """`text` as it is, without markup."""
    return Text(text)
