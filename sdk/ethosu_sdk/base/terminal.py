"""The one door to a terminal: tables, progress and a command's output; nothing from a file can move its cursor or
style its text.

Text is as wide as the terminal there, as wide as its content in a pipe or a file: what is folded at 80 columns cannot
be searched, copied or compared. Digests, paths and names of operators stay whole.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, TextIO, cast

from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType
from rich.errors import MarkupError
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from ethosu_sdk.base import cache, errors, json_text, plain_text
from ethosu_sdk.base.json_text import Record

_UNLIMITED = 1 << 20  # columns; a table is as wide as its content
_LEAST_TEXT = 16  # columns for a text that wraps, before a figure is left out
_BESIDE = 2  # blanks beside a column: Rich puts one before and one behind


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


class Ranked(Table):
    """A table that says which columns give way where it does not fit: the headings `drop`, the first one first.

    A column with `no_wrap` stays whole as figures do, as long as there are columns to drop.
    """

    def __init__(self, *headers: Column | str, drop: Sequence[str] = (), **options: Any) -> None:
        """With `options` of Rich's table."""
        super().__init__(*headers, **options)
        self.drop = tuple(drop)


class RowByRow(Table):
    """A table of columns that somebody asked for: where they do not fit side by side, each row is shown by itself."""


class Parts:
    """Texts that stand in one line, with `gap` between them, and otherwise in as few lines as hold them whole."""

    def __init__(self, parts: Sequence[str], gap: str) -> None:
        self._parts, self._gap = parts, gap

    def __str__(self) -> str:
        return self._gap.join(self._parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        line = ""
        for part in self._parts:
            longer = f"{line}{self._gap}{part}" if line else part
            if line and console.render_str(longer).cell_len > options.max_width:
                yield line
                longer = part
            line = longer
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, str(self))


class OneOf:
    """The first of some texts that fits into a line, else the last, which is cut."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __str__(self) -> str:
        return self._texts[0]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        found = [console.render_str(text, overflow="ellipsis") for text in self._texts]
        chosen = next((text for text in found if text.cell_len <= options.max_width), found[-1])
        chosen.no_wrap = True
        yield chosen

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(0, console.render_str(str(self)).cell_len)


class Terminal(Console):
    """Rich's console, which shows as escapes all that is not printable, and as it is what only looks like markup."""

    def __init__(self, **options: Any) -> None:
        """With `options` of Rich's console."""
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Texts before they are measured and wrapped."""
        plain = plain_text.lines(text)
        try:
            return super().render_str(plain, **options)
        except MarkupError:
            return super().render_str(plain, **{**options, "markup": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All else, once it is text: what comes as Rich's objects has not gone through :meth:`render_str`."""
        if isinstance(renderable, Table):
            renderable = self._fitted(renderable, (options or self.options).max_width)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain_text.lines(segment.text))

    def _fitted(self, table: Table, width: int) -> Table:
        """`table` as it fits `width`: without the columns that give way, which its caption names.

        A column that stands on the right holds figures, which are never wrapped. A table that is not :class:`Ranked`
        gives up its figures from the right.
        """
        if isinstance(table, RowByRow) and not self._fit(table, table.columns, width):
            table = _row_by_row(table)
        columns, ranked = list(table.columns), isinstance(table, Ranked)
        figures = [str(column.header) for column in columns if column.justify == "right" and column.header]
        dropped: list[str] = []
        for heading in table.drop if isinstance(table, Ranked) else reversed(figures[1:]):
            if self._fit(table, columns, width):
                break
            dropped += [heading for column in columns if column.header == heading]
            columns = [column for column in columns if column.header != heading]
        whole = ranked and self._fit(table, columns, width)
        found = copy(table)
        found.columns, found.rows = [], []
        for column in columns:
            no_wrap = column.justify == "right" or (whole and column.no_wrap)
            found.add_column(column.header, justify=column.justify, overflow="fold", no_wrap=no_wrap)
        for row, cells in zip(
            table.rows, zip(*(column.cells for column in columns), strict=True), strict=True
        ):
            found.add_row(*cells, style=row.style)
        if dropped:
            found.caption = f"left out in {width} columns: {', '.join(dropped)}"
            found.caption_justify = "left"
        return found

    def _fit(self, table: Table, columns: Sequence[Column], width: int) -> bool:
        """Whether the `columns` fit, their figures whole and their texts wrapped."""
        needed, unlimited = 0, self.options.update(width=_UNLIMITED)
        for column in columns:
            cells = [column.header, *column.cells] if table.show_header else column.cells
            widest = max((Measurement.get(self, unlimited, cell).maximum for cell in cells), default=0)
            whole = column.justify == "right" or (isinstance(table, Ranked) and column.no_wrap)
            needed += (widest if whole else min(widest, _LEAST_TEXT)) + _BESIDE
        return needed <= width


def _row_by_row(table: Table) -> Table:
    """The columns of `table` below each other, once for each row."""
    found = Table(box=None, show_header=False, pad_edge=False)
    for index, cells in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
        if index:
            found.add_row()
        for column, cell in zip(table.columns, cells, strict=True):
            found.add_row(column.header, cell)
    return found


def make_console(*, stderr: bool = False, quiet: bool = False) -> Terminal:
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


def show_parts(console: Console, *parts: RenderableType) -> None:
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


# The output of a command: progress on stderr, its result on stdout, records for machines.

TOLD_FROM_S = 0.5  # a stage that took less is told with --verbose alone
NOTED_FROM_S = 3.0  # a step of a stage that took longer gets a line of its own


class _Steps:
    """A stage and the step it is at, as a spinner shows them: with the seconds that go by.

    `note` is called with each step that took NOTED_FROM_S or longer, when it is over.
    """

    def __init__(self, text: str, note: Callable[[str], None]) -> None:
        self._text, self._note = Text.from_markup(text).plain, note
        self._step = self._detail = ""
        self._start = time.monotonic()

    def at(self, step: str) -> None:
        """Go to the step ``NAME``, or to a part of it, ``NAME: DETAIL``."""
        name, _, self._detail = step.partition(": ")
        if name != self._step:
            self.end()
            self._step, self._start = name, time.monotonic()

    def end(self) -> None:
        """End the last step."""
        seconds = time.monotonic() - self._start
        if self._step and seconds >= NOTED_FROM_S:
            self._note(f"  {escape(self._step)} [dim]({seconds:.1f} s)[/dim]")
        self._step = ""

    def __rich__(self) -> RenderableType:
        where = ": ".join(part for part in (self._text, self._step, self._detail) if part)
        return Text(f"{where} … {int(time.monotonic() - self._start)} s")


class Reporter:
    """Where a command's progress, notes and results go.

    With `as_json`, stdout carries the record alone. With `quiet`, notes and results for people are left out;
    warnings never are. With `verbose`, a command shows all it knows, and each stage, however short.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self._err = make_console(stderr=True)
        self._out = self._err if as_json else make_console()

    def for_step(self) -> Reporter:
        """A reporter for a command that is only a step of this one: progress and warnings, but no result."""
        step = Reporter(quiet=self.quiet, verbose=self.verbose)
        step._out = make_console(quiet=True)
        return step

    @contextlib.contextmanager
    def stage(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show that `text` is going on (a spinner with the seconds, on a terminal) and, when done, how long it took,
        unless that was no time.

        The block gets a function that takes the name of the step it is at, as ``NAME`` or ``NAME: DETAIL``; a step
        that took long gets a line of its own.
        """
        start = time.monotonic()
        steps = _Steps(text, self.note)
        shown = self.is_live
        try:
            with self._err.status(steps) if shown else contextlib.nullcontext():
                yield steps.at
                steps.end()
        except MemoryError as error:
            raise errors.out_of_memory(text, error) from error
        seconds = time.monotonic() - start
        if seconds >= TOLD_FROM_S or self.verbose:
            self.note(f"{text} [dim]({seconds:.1f} s)[/dim]")
        self._tell_of_the_cache()

    def _tell_of_the_cache(self) -> None:
        for sentence in cache.take_notes():
            self.warn(escape(sentence))

    @property
    def is_live(self) -> bool:
        """Whether the output can be redrawn: it goes to a terminal and is not suppressed."""
        return bool(self._err.is_terminal) and not self.quiet

    @contextlib.contextmanager
    def live(self, shown: RenderableType) -> Iterator[None]:
        """Redraw `shown` while the block runs, if the output can be redrawn."""
        if not self.is_live:
            yield
            return
        from rich.live import Live

        with Live(shown, console=self._err, refresh_per_second=4, transient=True):
            yield

    def note(self, text: str) -> None:
        """Print a line about progress on stderr."""
        if not self.quiet:
            self._print_line("[dim]·[/dim]", text)

    def detail(self, text: str) -> None:
        """Print a line on stderr, with --verbose alone."""
        if self.verbose:
            self.note(text)

    def warn(self, text: str) -> None:
        """Print a warning on stderr, even with --quiet."""
        self._print_line("[bold yellow]warning:[/bold yellow]", text)

    def _print_line(self, mark: str, text: str) -> None:
        """`text` behind its mark: broken at words where the terminal ends, and its further lines indented."""
        head, body = (self._err.render_str(part) for part in (mark, text))
        room = max(_LEAST_TEXT, self._err.width - head.cell_len - 1)
        for line in body.wrap(self._err, room):
            self._err.print(Text.assemble(head, " ", line), soft_wrap=True)
            head = Text(" " * head.cell_len)

    def show(self, *parts: RenderableType) -> None:
        """Print part of the result: on stdout, or on stderr with --json."""
        self._tell_of_the_cache()
        if not self.quiet:
            show_parts(self._out, *parts)

    def stream(self, text: str) -> None:
        """Print a piece of the result at once and without an end of line: on stdout, or on stderr with --json."""
        if not self.quiet and text:
            self._out.print(escape_lines(text), end="", soft_wrap=True)
            self._out.file.flush()

    def emit(self, record: Record) -> None:
        """Print the record on stdout, only with --json."""
        if self.as_json:
            sys.stdout.write(json_text.dumps(record))
            sys.stdout.flush()


# The same from Python: only a notebook shows progress, in one line below the cell, which is empty when it is over.


@contextlib.contextmanager
def reporting() -> Iterator[Reporter]:
    """A reporter that shows progress in a notebook, and nothing but warnings elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):  # IPython on a terminal has none
        yield Reporter(quiet=True)
        return
    reporter = _NotebookReporter()
    try:
        yield reporter
    finally:
        reporter.clear()


class _NotebookReporter(Reporter):
    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._display: Any = None
        self._streamed = ""

    @contextlib.contextmanager
    def stage(self, text: str) -> Iterator[Callable[[str], None]]:
        """As its base does, with `text` and its step in the line."""
        self.note(text)

        def to_step(name: str) -> None:
            self.note(f"{text}: {name}")
            base_step(name)

        with super().stage(text) as base_step:
            yield to_step

    def for_step(self) -> Reporter:
        """This one: it shows no results."""
        return self

    def note(self, text: str) -> None:
        """Show `text` in the line."""
        self._show(f"{Text.from_markup(text).plain} …")

    def stream(self, text: str) -> None:
        """Show `text` behind what was streamed before."""
        self._streamed += text
        self._show(self._streamed)

    def clear(self) -> None:
        """Empty the line, if there is one."""
        if self._display is not None:
            self._show("")

    def _show(self, text: str) -> None:
        from IPython.display import display

        content = {"text/plain": text}
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)
