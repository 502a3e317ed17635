"""The output of a command: progress on stderr, its result on stdout, records for machines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import RenderableType

from ethosu_sdk import cache, errors
from ethosu_sdk.console import terminal
from ethosu_sdk.console.terminal import escape, escape_lines
from ethosu_sdk.files import json_text
from ethosu_sdk.records import Record

NOTED_FROM_S = 3.0  # a step that took longer gets a line of its own


class _Steps:
    """A stage and the step it is at, as a spinner shows them: with the seconds that go by.

    `note` is called with each step that took NOTED_FROM_S or longer, when it is over.
    """

    def __init__(self, text: str, note: Callable[[str], None]) -> None:
        self._text, self._note = terminal.words(text), note
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
        return terminal.verbatim(f"{where} … {int(time.monotonic() - self._start)} s")


class Reporter:
    """Where a command's progress, notes and results go.

    With `as_json`, stdout carries the record alone. With `quiet`, notes and results for people are left out;
    warnings never are.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._err = terminal.make(stderr=True)
        self._out = self._err if as_json else terminal.make()

    def for_step(self) -> Reporter:
        """A reporter for a command that is only a step of this one: progress and warnings, but no result."""
        step = Reporter(quiet=self.quiet)
        step._out = terminal.make(quiet=True)
        return step

    @contextlib.contextmanager
    def stage(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show that `text` is going on (a spinner with the seconds, on a terminal) and, when done, how long it took.

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
        self.note(f"{text} [dim]({time.monotonic() - start:.1f} s)[/dim]")
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
            self._err.print(f"[dim]·[/dim] {text}", soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning on stderr, even with --quiet."""
        self._err.print(f"[bold yellow]warning:[/bold yellow] {text}", soft_wrap=True)

    def show(self, *parts: RenderableType) -> None:
        """Print part of the result: on stdout, or on stderr with --json."""
        self._tell_of_the_cache()
        if not self.quiet:
            terminal.show(self._out, *parts)

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
