"""What a notebook shows while a function works: one line below the cell, which is gone when the function is over."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.text import Text

from ethosu_sdk.base.terminal import Reporter


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
