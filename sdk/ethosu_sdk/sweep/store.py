"""The folder of a sweep: its record, ``sweep/1``, the table of its cells, and its page."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import convert

from ethosu_sdk.base import filesystem, json_text, tools
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import child_process
from ethosu_sdk.records import bundle, kinds, provenance, sweep, validation
from ethosu_sdk.records.common import Limits
from ethosu_sdk.records.sweep import CellCounts, Dimensions, Sweep, SweepStatus, Verdict
from ethosu_sdk.reporting.pages import drawing
from ethosu_sdk.sweep import cell_rows, sweep_verdict
from ethosu_sdk.sweep.cell_rows import Row
from ethosu_sdk.sweep.sweep_configuration import DIMENSIONS
from ethosu_sdk.sweep.sweep_plan import Plan

PAGE_NAME, TABLE_NAME = "index.html", "cells.parquet"
_MARKER = ".sweep"


def write_page(folder: Path, record: Sweep, rows: Sequence[Mapping[str, object]]) -> Path:
    """The page about `rows`, written into `folder`; `record` has name, verdict and provenance of the sweep."""
    drawing.require_drawing()
    from ethosu_sdk.sweep import page_content

    try:
        text = page_content.render_sweep(folder, record, rows)
    except OverflowError as error:
        raise InputError("a number in the results of the sweep is too large to be drawn") from error
    path = folder / PAGE_NAME
    filesystem.write_bytes(path, text.encode())
    return path


def claim(store: Path) -> None:
    """InputError when `store` is a folder with something else in it."""
    is_ours = any((store / name).is_file() for name in (_MARKER, kinds.SWEEP.file))
    if not is_ours and store.is_dir() and any(not path.name.startswith(".") for path in store.iterdir()):
        raise InputError(f"{store} holds something other than a sweep", "choose another folder with -o")
    filesystem.make_directory(store)
    filesystem.write_bytes(store / _MARKER, b"")


def table_schema() -> Any:
    arrow = tools.load_extra("pyarrow", tools.SWEEP)
    types = {cell_rows.TEXT: "string", cell_rows.WHOLE: "int64", cell_rows.NUMBER: "float64"}
    return arrow.schema([(name, getattr(arrow, types[kind])()) for name, kind in cell_rows.COLUMNS.items()])


def write_table(store: Path, found: Sequence[Row]) -> None:
    arrow = tools.load_extra("pyarrow", tools.SWEEP)
    parquet = tools.load_extra("pyarrow.parquet", tools.SWEEP)
    table = arrow.Table.from_pylist(list(found), schema=table_schema())
    filesystem.write_atomic(store / TABLE_NAME, lambda path: parquet.write_table(table, path))


def write_sweep(
    plan: Plan, found: Sequence[Row], seconds: float, jobs: int, steps: Mapping[str, int]
) -> Sweep:
    """Write table, record and page of a sweep; the record. The command took `seconds`, with `jobs` workers, and did
    `steps` by their names."""
    with bundle.writing_folder(plan.store, "sweep") as add:
        write_table(plan.store, found)
        record = _sweep_record(plan, found, seconds, jobs, steps)
        json_text.write_json(plan.store / kinds.SWEEP.file, record.to_json())
        add(kinds.SWEEP.file, TABLE_NAME)
        add(write_page(plan.store, record, found).name)
    with contextlib.suppress(OSError):
        (plan.store / _MARKER).unlink(missing_ok=True)
    return record


def _sweep_record(
    plan: Plan, found: Sequence[Row], seconds: float, jobs: int, steps: Mapping[str, int]
) -> Sweep:
    configuration = plan.configuration
    counted = Counter[str](row["status"] for row in found)
    verdict = sweep_verdict.judge_sweep(found, configuration.goals)
    inputs = [provenance.file_entry("sweep", configuration.source.path, configuration.sha256)]
    versions = [
        provenance.tool_entry(name, version)
        for name, version in sorted(child_process.compiler_identity()["packages"].items())
        if version is not None
    ]
    table_sha256 = filesystem.sha256_file(plan.store / TABLE_NAME)
    values = {name: dict.fromkeys(filter(None, (row[name] for row in found))) for name in DIMENSIONS}
    record = Sweep(
        status=_status(counted, verdict),
        **provenance.origin(inputs, versions),
        name=configuration.name,
        dimensions=Dimensions(**{name: tuple(known) for name, known in values.items()}),
        limits=Limits(**vars(configuration.limits)),
        plan=plan.record(),
        cells=convert({name: counted[name] for name in cell_rows.STATUSES}, CellCounts),
        verdict=verdict,
        table=sweep.Table(path=TABLE_NAME, rows=len(found), sha256=table_sha256),
        session=sweep.Session(
            cells_before=len(plan.done),
            jobs=jobs,
            **{f"{name}_steps": steps.get(name, 0) for name in ("lower", "compile", "finish")},
        ),
        wall_time_s=round(seconds, 3),
        host=provenance.this_host(),
    )
    validation.check_record(record.to_json(), "the sweep")
    return record


def _status(counted: Mapping[str, int], verdict: Verdict) -> SweepStatus:
    if counted.get(cell_rows.NOT_RUN):
        return "incomplete"
    bad = (cell_rows.FAIL, *cell_rows.UNFINISHED)
    if any(counted.get(name) for name in bad) or not counted.get(cell_rows.PASS):
        return "fail"
    return verdict.status if verdict.constraints else "pass"
