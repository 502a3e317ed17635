"""`ethosu-sdk sweep SWEEP.toml`: do every cell of a sweep that has no result yet, and show how far it is."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import filesystem, json_text, tools
from ethosu_sdk.base.errors import ToolError, VerdictError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Ranked, Reporter, escape
from ethosu_sdk.records import bundle, kinds, provenance, validation
from ethosu_sdk.records.sweep import Sweep, SweepPlan, Verdict
from ethosu_sdk.reporting.pages import drawing, report_command
from ethosu_sdk.sweep import (
    cell_rows,
    dask_engine,
    store,
    sweep_configuration,
    sweep_page,
    sweep_plan,
    worker_tasks,
)
from ethosu_sdk.sweep.cell_rows import Row
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.sweep_plan import Plan, Planned

_SAVE_EVERY_S = 30.0
_MOST_NOTES = 10
_MOST_REPORTS = 20  # of a megabyte each
_TOKEN_NAME = ".token"
_LINE_EVERY_S = 2.0
_MOST_RUNNING = 16
_COLOURS = {cell_rows.PASS: "green", cell_rows.REFUSED: "yellow"}
_MOST_MODELS = 40
_COUNTED = {
    "cells": "cells",
    "lowerings": "lowerings",
    "runs of Vela": "vela_runs",
    "simulations": "simulations",
}


def sweep(
    path: Path,
    options: SweepOptions,
    out_dir: Path | None,
    reporter: Reporter,
    report: Callable[[Path], object] | None = None,
) -> Path:
    """Do the cells of the sweep in the file `path` that are not done yet, and write the record; its folder.

    `report` writes the page of a run's folder.

    Raises InputError for a file that is wrong, ToolError when a package is missing, VerdictError when cells failed
    or none passed: then everything was written.
    """
    configuration = sweep_configuration.read_configuration(path, options.vela_config, options.system)
    folder = out_dir or sweep_plan.DEFAULT_FOLDER / configuration.name
    jobs = options.jobs or os.cpu_count() or 1
    if options.dry_run:
        plan = sweep_plan.make_plan(configuration, folder, options)
        reporter.show(*plan_tables(plan, jobs))
        reporter.emit(plan_record(plan, jobs).to_json())
        return folder
    for module in ("distributed", "pyarrow"):
        tools.load_extra(module, tools.SWEEP)
    drawing.require_drawing()
    if importlib.util.find_spec("executorch") is None:
        raise ToolError("compiling needs ExecuTorch's package", "pip install 'ethosu-sdk[compile]'")
    store.claim(folder)
    with filesystem.locked_folder(folder):
        record, found = _run(configuration, folder, options, jobs, reporter)
    if report is not None:
        _report_best(record, found, folder, report, reporter)
    reporter.show(*result_tables(record, found, folder))
    reporter.emit(record.to_json())
    _conclude(record, folder)
    return folder


def _run(
    configuration: sweep_configuration.Configuration,
    folder: Path,
    options: SweepOptions,
    jobs: int,
    reporter: Reporter,
) -> tuple[Sweep, list[Row]]:
    start = time.monotonic()
    worker_tasks.remove_leftovers(folder)
    plan = sweep_plan.make_plan(configuration, folder, options)
    for stale in plan.stale:  # it was made from other files
        shutil.rmtree(stale, ignore_errors=True)
    _tell(plan, reporter)
    found = {key: cell_rows.row_of_cell(record) for key, record in plan.done.items()}
    progress = Progress(plan, jobs, reporter)

    def written() -> tuple[Sweep, list[Row]]:
        # A worker may have ended one when nobody listened any more.
        missing = [planned for planned in plan.todo if planned.key not in found]
        later = sweep_plan.found_later(plan, missing, options)
        found.update({key: cell_rows.row_of_cell(record) for key, record in later.items()})
        table = _rows(plan, found)
        return store.write_sweep(plan, table, time.monotonic() - start, jobs, progress.steps), table

    try:
        if plan.todo:
            _work(plan, options, found, progress, reporter)
    finally:
        ended = written()
    return ended


def _report_best(
    record: Sweep,
    found: Sequence[Row],
    folder: Path,
    report: Callable[[Path], object],
    reporter: Reporter,
) -> None:
    """Write the reports of the best cells that have none, then the page again, which has links to them."""
    rankings = [ranking for model in record.verdict.models for ranking in model.rankings]
    best = {cell for ranking in rankings for cell in ranking.winners[:1]}
    places = [folder / row["folder"] for row in found if row["cell"] in best and row["folder"]]
    runs = [place for place in places if (place / kinds.RUN.file).is_file()]
    todo = [place for place in runs if not (place / report_command.FILE_NAME).exists()][:_MOST_REPORTS]
    if not todo:
        return
    with reporter.stage("writing the reports of the best cells"):
        for place in todo:
            report(place)
    with bundle.listed(folder / store.PAGE_NAME, "sweep"):
        store.write_page(folder, record, found)


def _work(
    plan: Plan, options: SweepOptions, found: dict[str, Row], progress: Progress, reporter: Reporter
) -> None:
    token, saved = secrets.token_hex(16), time.monotonic()
    json_text.write_json(plan.store / _TOKEN_NAME, {"token": token})

    def ended(planned: Planned, row: Row) -> None:
        nonlocal saved
        found[planned.key] = row
        progress.ended(planned, row)
        if time.monotonic() - saved > _SAVE_EVERY_S:
            store.write_table(plan.store, _rows(plan, found))  # so that it can be queried
            bundle.list_meanwhile(plan.store, "sweep", store.TABLE_NAME)
            saved = time.monotonic()

    if said := dask_engine.scheduler_warning(options.scheduler):
        reporter.warn(escape(said))
    try:
        with reporter.live(progress):
            dask_engine.run_plan(plan, token, options, progress.began, ended)
    finally:
        (plan.store / _TOKEN_NAME).unlink(missing_ok=True)


def _rows(plan: Plan, found: dict[str, Row]) -> list[Row]:
    return [
        found.get(row.key) or cell_rows.row_not_run(row.key, row.model_sha256, row.cell.dimensions())
        for row in plan.cells
    ]


def _tell(plan: Plan, reporter: Reporter) -> None:
    total, left = plan.total(), plan.left()
    reporter.note(
        f"{counted(total.cells, 'cell')}, {len(plan.done):,} of them done; to do: "
        f"{counted(left.lowerings, 'lowering')}, {left.vela_runs:,} runs of Vela, "
        f"{counted(left.simulations, 'simulation')}"
    )
    for reason in plan.changed[:_MOST_NOTES]:
        reporter.warn(escape(f"{reason}: it is done again"))
    if len(plan.changed) > _MOST_NOTES:
        reporter.warn(f"and {len(plan.changed) - _MOST_NOTES:,} more of this kind")
    for reason, count in plan.expanded.dropped.items():
        reporter.note(escape(f"dropped {count:,}: {reason}"))


def plan_record(plan: Plan, jobs: int) -> SweepPlan:
    record = SweepPlan(
        status="pass",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        name=plan.configuration.name,
        **structs.asdict(plan.record()),
        done=len(plan.done),
        left=plan.left(),
        estimated_s=round(plan.estimated_s(jobs), 1),
    )
    validation.check_record(record.to_json(), "the plan")
    return record


def _conclude(record: Sweep, folder: Path) -> None:
    """VerdictError when something failed, nothing passed, or a model keeps the constraints nowhere."""
    if record.status == "pass":
        return
    without = [row.model for row in record.verdict.models if not row.counts.kept]
    counts = record.cells.to_json()
    bad = (cell_rows.FAIL, *cell_rows.UNFINISHED, cell_rows.NOT_RUN)
    if without and not any(counts[name] for name in bad):
        message = f"no cell keeps the constraints for {counted(len(without), 'model')}: {without[0]}"
        message += ", …" if len(without) > 1 else ""
        raise VerdictError(message, f"the page shows by how much: {folder / store.PAGE_NAME}", recorded=True)
    others = [f"{count:,} {name}" for name, count in counts.items() if count and name != cell_rows.PASS]
    hint = 'ethosu-sdk sweep query "SELECT model, target, memory_mode, status, message FROM cells '
    hint += f"WHERE status <> 'pass'\" {folder}"
    raise VerdictError(f"not every cell passed: {', '.join(others)}", hint, recorded=True)


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
        with self._lock:
            self.steps[step] += 1
            self._running.pop(key, None)
            self._running[key] = step
            while len(self._running) > _MOST_RUNNING:
                self._running.pop(next(iter(self._running)))

    def ended(self, planned: Planned, row: Row) -> None:
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
        if row["status"] == cell_rows.PASS and now - self._last < _LINE_EVERY_S and not last:
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


def plan_tables(plan: Plan, jobs: int) -> list[Table]:
    total, left = plan.total(), plan.left()
    numbers = Table(box=None, pad_edge=False)
    for heading in ("", "in all", "to do"):
        numbers.add_column(heading, justify="left" if not heading else "right")
    for name, key in _COUNTED.items():
        numbers.add_row(name, *(f"{getattr(row, key):,}" for row in (total, left)))
    numbers.add_row("excluded", f"{plan.expanded.excluded:,}", "")
    numbers.add_row("estimate", "", f"{plan.estimated_s(jobs):,.0f} s with {counted(jobs, 'job')}, roughly")
    parts = [numbers]
    if plan.expanded.dropped:
        dropped = Table(title="dropped", box=None, show_header=False, pad_edge=False)
        for reason, count in plan.expanded.dropped.items():
            dropped.add_row(f"{count:,}", escape(reason))
        parts.append(dropped)
    return parts


def result_tables(record: Sweep, found: Sequence[Row], folder: Path) -> list[RenderableType]:
    """The sweep for people: the rows `found` were judged in `record`."""
    head = Table(box=None, show_header=False, pad_edge=False)
    for name, count in record.cells.to_json().items():
        if count:
            head.add_row(name, f"{count:,}")
    head.add_row("page", escape(str(folder / store.PAGE_NAME)))
    return [head, "", *_verdict_tables(record.verdict, found)]


def _verdict_tables(verdict: Verdict, found: Sequence[Row]) -> list[RenderableType]:
    """The best cells of each model, or why there is none; constraints and goals that judged them."""
    judged = sweep_page.verdict_overview(verdict, found, sweep_page.settings_of(found))
    goals = judged["goal_titles"]
    shown = []
    for model in judged["models"][:_MOST_MODELS]:
        for line in model["lines"]:
            cells = f"{', '.join(cell['text'] for cell in line['cells'])} {line['more']}".strip()
            why = line["why"] or model["reason"]
            shown.append([model["model"], line["kind"], cells, *line["values"], line["source"], why])
    reasons = ["why"] if any(row[-1] for row in shown) else []
    table = Ranked(box=None, pad_edge=False, drop=("cycles", *reversed(goals[1:])))
    for heading in ("model", "", "cell", *goals, "cycles", *reasons):
        table.add_column(heading, justify="right" if heading in goals else "left")
    for row in shown:
        table.add_row(*map(escape, row[: len(table.columns)]))
    parts: list[RenderableType] = [table]
    if (left := len(judged["models"]) - _MOST_MODELS) > 0:
        parts.append(f"and {counted(left, 'more model')}: they are in the record and on the page")
    if judged["constraints"]:
        parts.append(escape(f"constraints: {'; '.join(judged['constraints'])}"))
    return [*parts, *(escape(f"note: {text}") for text in judged["notes"])]
