"""`ethosu-sdk sweep SWEEP.toml`: do every cell of a sweep that has no result yet."""

from __future__ import annotations

import importlib.util
import os
import secrets
import time
from pathlib import Path

from msgspec import structs

from ethosu_sdk import extras, provenance, records, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import ToolError, VerdictError
from ethosu_sdk.files import json_text, locks
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.printed.sweep_plan import SweepPlan
from ethosu_sdk.records.sweep import Sweep
from ethosu_sdk.sweep import (
    configuration as sweep_configuration,
    engine,
    page,
    plan as sweep_plan,
    rows,
    shown,
    store,
    work,
)
from ethosu_sdk.sweep.engine import Watch
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.plan import Plan, Planned
from ethosu_sdk.sweep.progress import Progress
from ethosu_sdk.sweep.rows import Row
from ethosu_sdk.sweep.store import Session

_SAVE_EVERY_S = 30.0
_MOST_NOTES = 10
_TOKEN_NAME = ".token"


def sweep(path: Path, options: SweepOptions, out_dir: Path | None, reporter: Reporter) -> None:
    """Do the cells of the sweep in the file `path` that are not done yet, and write the record.

    Raises InputError for a file that is wrong, ToolError when a package is missing, VerdictError when cells failed
    or none passed: then everything was written.
    """
    configuration = sweep_configuration.read(path, options.vela_config, options.system)
    folder = sweep_plan.folder_of(configuration, out_dir)
    jobs = options.jobs or os.cpu_count() or 1
    if options.dry_run:
        plan = sweep_plan.make(configuration, folder, options)
        reporter.show(*shown.plan_tables(plan, jobs))
        reporter.emit(plan_record(plan, jobs).to_json())
        return
    for module in ("distributed", "pyarrow"):
        extras.load(module, extras.SWEEP)
    page.require()
    if importlib.util.find_spec("executorch") is None:
        raise ToolError("compiling needs ExecuTorch's package", "pip install 'ethosu-sdk[compile]'")
    store.claim(folder)
    with locks.locked(folder):
        record, found = _run(configuration, folder, options, jobs, reporter)
    reporter.show(*shown.result_tables(record, found, folder))
    reporter.emit(record.to_json())
    _conclude(record, folder)


def _run(
    configuration: sweep_configuration.Configuration,
    folder: Path,
    options: SweepOptions,
    jobs: int,
    reporter: Reporter,
) -> tuple[Sweep, list[Row]]:
    start = time.monotonic()
    work.remove_leftovers(folder)
    plan = sweep_plan.make(configuration, folder, options)
    sweep_plan.remove_stale(plan)
    _tell(plan, reporter)
    found = {key: rows.row(record) for key, record in plan.done.items()}
    progress = Progress(plan, jobs, reporter)

    def written() -> tuple[Sweep, list[Row]]:
        # A worker may have ended one when nobody listened any more.
        missing = [planned for planned in plan.todo if planned.key not in found]
        later = sweep_plan.found_later(plan, missing, options)
        found.update({key: rows.row(record) for key, record in later.items()})
        session = Session(time.monotonic() - start, jobs, progress.steps)
        table = _rows(plan, found)
        return store.write(plan, table, session), table

    try:
        if plan.todo:
            _work(plan, options, found, progress, reporter)
    finally:
        ended = written()
    return ended


def _work(
    plan: Plan, options: SweepOptions, found: dict[str, Row], progress: Progress, reporter: Reporter
) -> None:
    token = secrets.token_hex(16)
    saved = time.monotonic()
    json_text.write_json(plan.store / _TOKEN_NAME, {"token": token})

    def ended(planned: Planned, row: Row) -> None:
        nonlocal saved
        found[planned.key] = row
        progress.ended(planned, row)
        if time.monotonic() - saved > _SAVE_EVERY_S:
            store.write_meanwhile(plan.store, _rows(plan, found))
            saved = time.monotonic()

    if said := engine.warning(options.scheduler):
        reporter.warn(escape(said))
    try:
        with reporter.live(progress):
            engine.run(plan, token, options, Watch(progress.began, ended))
    finally:
        (plan.store / _TOKEN_NAME).unlink(missing_ok=True)


def _rows(plan: Plan, found: dict[str, Row]) -> list[Row]:
    """A row for every cell, in the plan's order."""
    return [found.get(row.key) or row.row_not_run() for row in plan.cells]


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
    """The plan for machines."""
    record = SweepPlan(
        status="pass",
        created=records.timestamp(),
        tool=provenance.tool(),
        name=plan.configuration.name,
        **structs.asdict(plan.record()),
        done=len(plan.done),
        left=plan.left(),
        estimated_s=round(plan.estimated_s(jobs), 1),
    )
    schema.check(record.to_json(), "the plan")
    return record


def _conclude(record: Sweep, folder: Path) -> None:
    """VerdictError when something failed, nothing passed, or a model keeps the constraints nowhere."""
    if record.status == "pass":
        return
    without = [row.model for row in record.verdict.models if not row.counts.kept]
    counts = record.cells.to_json()
    if not any(counts[name] for name in (rows.FAIL, *rows.UNFINISHED, rows.NOT_RUN)) and without:
        message = f"no cell keeps the constraints for {counted(len(without), 'model')}: {without[0]}"
        message += ", …" if len(without) > 1 else ""
        raise VerdictError(message, f"the page shows by how much: {folder / page.FILE_NAME}", recorded=True)
    others = [f"{count:,} {name}" for name, count in counts.items() if count and name != rows.PASS]
    hint = 'ethosu-sdk sweep query "SELECT model, target, memory_mode, status, message FROM cells '
    hint += f"WHERE status <> 'pass'\" {folder}"
    raise VerdictError(f"not every cell passed: {', '.join(others)}", hint, recorded=True)
