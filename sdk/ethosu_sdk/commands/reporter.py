"""How a command speaks to people: progress on stderr, its result on stdout, records for machines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console, RenderableType

from ethosu_sdk import records
from ethosu_sdk.commands import console
from ethosu_sdk.records import Record


class Reporter:
    """Where a command's progress, notes and results go.

    With `as_json`, stdout carries the record alone. With `quiet`, notes and results for people are left out;
    warnings never are.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._err = console.make(stderr=True)
        self._out = self._err if as_json else console.make()

    def for_step(self) -> Reporter:
        """A reporter for a command that is only a step of this one: progress and warnings, but no result."""
        step = Reporter(quiet=self.quiet)
        step._out = Console(quiet=True)
        return step

    @contextlib.contextmanager
    def stage(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show that `text` is going on (a spinner on a terminal) and, when done, how long it took.

        The block gets a function that takes the name of the step it is at.
        """
        start = time.monotonic()
        if self._err.is_terminal and not self.quiet:
            with self._err.status(f"{text} …") as status:
                yield lambda step: status.update(f"{text}: {step} …")
        else:
            yield lambda step: None
        self.note(f"{text} [dim]({time.monotonic() - start:.1f} s)[/dim]")

    def note(self, text: str) -> None:
        """A line about progress, on stderr."""
        if not self.quiet:
            self._err.print(f"[dim]·[/dim] {text}", soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that must not be missed, on stderr, even with --quiet."""
        self._err.print(f"[bold yellow]warning:[/bold yellow] {text}", soft_wrap=True)

    def show(self, *parts: RenderableType) -> None:
        """Part of the result for people: on stdout, or on stderr when stdout belongs to the record."""
        if not self.quiet:
            console.show(self._out, *parts)

    def emit(self, record: Record) -> None:
        """The record itself, on stdout, with --json only."""
        if self.as_json:
            sys.stdout.write(records.dumps(record))
            sys.stdout.flush()
