"""What a sweep shows while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.sweep import rows
from ethosu_sdk.sweep.plan import Plan, Planned
from ethosu_sdk.sweep.rows import Row

_LINE_EVERY_S = 2.0
_MOST_RUNNING = 16
_COLOURS = {rows.PASS: "green", rows.REFUSED: "yellow"}


class Progress:
    """Counts steps that began and cells that ended. Dask calls it from a thread of its own."""

    def __init__(self, plan: Plan, jobs: int, reporter: Reporter) -> None:
        self._reporter = reporter
        self._lock = threading.Lock()
        self._labels = {row.key: row.cell.label for row in plan.cells}
        self._labels |= {row.compilation: row.cell.label for row in plan.cells}
        self._labels |= {row.lowering: row.cell.model for row in plan.cells}
        self._parts = {row.key: (row.lowering, row.compilation) for row in plan.cells}
        self._total = len(plan.cells)
        self._counted = Counter[str](record.status for record in plan.done.values())
        self._left = len(plan.todo)
        self._running: dict[str, str] = {}
        self._guess_s = plan.estimated_s(jobs)
        self._start = self._last = time.monotonic()
        self._silent = 0
        self._finished = 0
        self.steps: Counter[str] = Counter()

    def began(self, step: str, key: str) -> None:
        """A worker began a step."""
        with self._lock:
            self.steps[step] += 1
            self._running.pop(key, None)
            self._running[key] = step
            while len(self._running) > _MOST_RUNNING:
                self._running.pop(next(iter(self._running)))

    def ended(self, planned: Planned, row: Row) -> None:
        """A cell ended."""
        with self._lock:
            self._counted[row["status"]] += 1
            self._finished += 1
            for key in (planned.key, *self._parts[planned.key]):
                self._running.pop(key, None)
        if not self._reporter.is_live:
            self._line(planned, row)

    def _line(self, planned: Planned, row: Row) -> None:
        """A line for the cell, unless there was one just now; what did not pass always gets one."""
        now = time.monotonic()
        last = self._finished == self._left
        if row["status"] == rows.PASS and now - self._last < _LINE_EVERY_S and not last:
            self._silent += 1
            return
        done = sum(self._counted.values())
        more = f" and {self._silent} more" if self._silent else ""
        self._last, self._silent = now, 0
        text = f"{done}/{self._total} {row['status']} {planned.cell.label}{more}"
        self._reporter.note(escape(f"{text}: {row['message'].splitlines()[0]}" if row["message"] else text))

    def _eta_s(self) -> float:
        """The seconds that are left, by those that went by; the guess before there is something to go by."""
        passed = time.monotonic() - self._start
        by_guess = max(0.0, self._guess_s - passed)
        if not self._finished:
            return by_guess
        share = self._finished / max(1, self._left)  # by which what went by counts more than the guess
        return (1 - share) * (passed + by_guess)

    def __rich__(self) -> RenderableType:
        with self._lock:
            counted, running = dict(self._counted), dict(self._running)
        table = Table(box=None, show_header=False, pad_edge=False)
        done = sum(counted.values())
        words = [f"[{_COLOURS.get(name, 'red')}]{count} {name}[/]" for name, count in counted.items()]
        left = _clock(self._eta_s()) if done < self._total else "0:00"
        table.add_row(
            f"[bold]{done}[/bold] of {self._total} cells", ", ".join(words) or "none yet", f"ETA {left}"
        )
        for key, step in running.items():
            table.add_row("", escape(f"{step} {self._labels.get(key, key)}"), "")
        return table


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
