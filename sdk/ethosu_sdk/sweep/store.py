"""The folder of a sweep: its record, ``sweep/1``, and the table of its cells."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import convert

from ethosu_sdk import extras, provenance, schema
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import hashing, json_text, writing
from ethosu_sdk.records import kinds, sweep
from ethosu_sdk.records.common import Limits
from ethosu_sdk.records.sweep import CellCounts, Dimensions, Status, Sweep, Verdict
from ethosu_sdk.results import bundle, host_facts
from ethosu_sdk.steps.shared import compilers
from ethosu_sdk.sweep import goals, page, rows
from ethosu_sdk.sweep.configuration import DIMENSIONS
from ethosu_sdk.sweep.plan import Plan
from ethosu_sdk.sweep.rows import Row

TABLE_NAME = "cells.parquet"
_MARKER = ".sweep"


@dataclass(frozen=True)
class Session:
    """The work of this command: seconds, requested workers, and steps by their names."""

    seconds: float
    jobs: int
    steps: Mapping[str, int]


def claim(store: Path) -> None:
    """InputError when `store` is a folder with something else in it."""
    is_ours = any((store / name).is_file() for name in (_MARKER, kinds.SWEEP.file))
    if not is_ours and store.is_dir() and any(not path.name.startswith(".") for path in store.iterdir()):
        raise InputError(f"{store} holds something other than a sweep", "choose another folder with -o")
    writing.make_directory(store)
    writing.write_bytes(store / _MARKER, b"")


def columns() -> Any:
    """The schema of the table: each column with its type."""
    arrow = extras.load("pyarrow", extras.SWEEP)
    types = {rows.TEXT: arrow.string(), rows.WHOLE: arrow.int64(), rows.NUMBER: arrow.float64()}
    return arrow.schema([(name, types[kind]) for name, kind in rows.COLUMNS.items()])


def table(found: Sequence[Row]) -> Any:
    """The rows as a table of Arrow."""
    arrow = extras.load("pyarrow", extras.SWEEP)
    return arrow.Table.from_pylist(list(found), schema=columns())


def write_table(store: Path, found: Sequence[Row]) -> None:
    """Write the rows of all cells, as a whole."""
    extras.load("pyarrow", extras.SWEEP)
    parquet = extras.load("pyarrow.parquet", extras.SWEEP)
    writing.write_atomic(store / TABLE_NAME, lambda path: parquet.write_table(table(found), path))


def write_meanwhile(store: Path, found: Sequence[Row]) -> None:
    """Write the rows while the sweep runs, so that they can be queried."""
    write_table(store, found)
    bundle.list_meanwhile(store, "sweep", TABLE_NAME)


def write(plan: Plan, found: Sequence[Row], session: Session) -> Sweep:
    """Write table, record and page of a sweep; the record."""
    with bundle.published(plan.store, "sweep") as add:
        write_table(plan.store, found)
        record = make(plan, found, session)
        json_text.write_json(plan.store / kinds.SWEEP.file, record.to_json())
        add(kinds.SWEEP.file, TABLE_NAME)
        add(page.write(plan.store, record, found).name)
    with contextlib.suppress(OSError):
        (plan.store / _MARKER).unlink(missing_ok=True)
    return record


def make(plan: Plan, found: Sequence[Row], session: Session) -> Sweep:
    """The record of a sweep with these rows."""
    configuration = plan.configuration
    counted = Counter[str](row["status"] for row in found)
    verdict = goals.judge(found, configuration.goals).to_record()
    inputs = [provenance.file_entry("sweep", configuration.source.path, configuration.sha256)]
    versions = [
        provenance.tool_entry(name, version)
        for name, version in sorted(compilers.identity()["packages"].items())
        if version is not None
    ]
    record = Sweep(
        status=_status(counted, verdict),
        **provenance.origin(inputs, versions),
        name=configuration.name,
        dimensions=Dimensions(**{name: _values(found, name) for name in DIMENSIONS}),
        limits=Limits(**vars(configuration.limits)),
        plan=plan.record(),
        cells=convert({name: counted[name] for name in rows.STATUSES}, CellCounts),
        verdict=verdict,
        table=sweep.Table(
            path=TABLE_NAME, rows=len(found), sha256=hashing.sha256_file(plan.store / TABLE_NAME)
        ),
        session=sweep.Session(
            cells_before=len(plan.done),
            jobs=session.jobs,
            lower_steps=session.steps.get("lower", 0),
            compile_steps=session.steps.get("compile", 0),
            finish_steps=session.steps.get("finish", 0),
        ),
        wall_time_s=round(session.seconds, 3),
        host=host_facts.this_host(),
    )
    schema.check(record.to_json(), "the sweep")
    return record


def _values(found: Sequence[Row], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row[name] for row in found if row[name] is not None))


def _status(counted: Mapping[str, int], verdict: Verdict) -> Status:
    if counted.get(rows.NOT_RUN):
        return "incomplete"
    bad = (rows.FAIL, *rows.UNFINISHED)
    if any(counted.get(name) for name in bad) or not counted.get(rows.PASS):
        return "fail"
    return verdict.status if verdict.constraints else "pass"
