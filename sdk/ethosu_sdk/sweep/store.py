"""The folder of a sweep: its record, ``sweep/1``, and the table of its cells."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import extras, provenance, schema
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import hashing, json_text, writing
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, host_facts
from ethosu_sdk.steps.shared import compilers
from ethosu_sdk.sweep import goals, page, rows
from ethosu_sdk.sweep.configuration import DIMENSIONS
from ethosu_sdk.sweep.plan import Plan

RECORD_NAME, TABLE_NAME = kinds.SWEEP.file, "cells.parquet"
PASS, FAIL, INCOMPLETE = "pass", "fail", "incomplete"
_MARKER = ".sweep"


@dataclass(frozen=True)
class Session:
    """The work of this command: seconds, requested workers, and steps by their names."""

    seconds: float
    jobs: int
    steps: Mapping[str, int]


def claim(store: Path) -> None:
    """InputError when `store` is a folder with something else in it."""
    is_ours = any((store / name).is_file() for name in (_MARKER, RECORD_NAME))
    if not is_ours and store.is_dir() and any(not path.name.startswith(".") for path in store.iterdir()):
        raise InputError(f"{store} holds something other than a sweep", "choose another folder with -o")
    writing.make_directory(store)
    writing.write_bytes(store / _MARKER, b"")


def columns() -> Any:
    """The schema of the table: each column with its type."""
    arrow = extras.load("pyarrow", extras.SWEEP)
    types = {rows.TEXT: arrow.string(), rows.WHOLE: arrow.int64(), rows.NUMBER: arrow.float64()}
    return arrow.schema([(name, types[kind]) for name, kind in rows.COLUMNS.items()])


def table(found: Sequence[Record]) -> Any:
    """The rows as a table of Arrow."""
    arrow = extras.load("pyarrow", extras.SWEEP)
    return arrow.Table.from_pylist(list(found), schema=columns())


def write_table(store: Path, found: Sequence[Record]) -> None:
    """Write the rows of all cells, as a whole."""
    extras.load("pyarrow", extras.SWEEP)
    parquet = extras.load("pyarrow.parquet", extras.SWEEP)
    writing.write_atomic(store / TABLE_NAME, lambda path: parquet.write_table(table(found), path))


def write_meanwhile(store: Path, found: Sequence[Record]) -> None:
    """Write the rows while the sweep runs, so that they can be queried."""
    write_table(store, found)
    bundle.list_meanwhile(store, "sweep", TABLE_NAME)


def write(plan: Plan, found: Sequence[Record], session: Session) -> Record:
    """Write table, record and page of a sweep; the record."""
    with bundle.published(plan.store, "sweep") as add:
        write_table(plan.store, found)
        record = make(plan, found, session)
        json_text.write_json(plan.store / RECORD_NAME, record)
        add(RECORD_NAME, TABLE_NAME)
        add(page.write(plan.store, record, found).name)
    with contextlib.suppress(OSError):
        (plan.store / _MARKER).unlink(missing_ok=True)
    return record


def make(plan: Plan, found: Sequence[Record], session: Session) -> Record:
    """The record of a sweep with these rows."""
    configuration = plan.configuration
    counted = Counter(row["status"] for row in found)
    verdict = goals.judge(found, configuration.goals).to_json()
    source = configuration.source.path
    inputs = [provenance.file_entry("sweep", source, configuration.sha256)]
    versions = [
        provenance.tool_entry(name, version)
        for name, version in sorted(compilers.identity()["packages"].items())
        if version is not None
    ]
    limits = {key: value for key, value in vars(configuration.limits).items() if value is not None}
    record = {
        **provenance.header(kinds.SWEEP.schema, _status(counted, verdict), inputs, versions),
        "name": configuration.name,
        "dimensions": {name: _values(found, name) for name in DIMENSIONS},
        "limits": limits,
        "plan": {**plan.counts()["total"], **plan.pairings()},
        "cells": {name: counted.get(name, 0) for name in rows.STATUSES},
        "verdict": verdict,
        "table": {
            "path": TABLE_NAME,
            "rows": len(found),
            "sha256": hashing.sha256_file(plan.store / TABLE_NAME),
        },
        "session": {
            "cells_before": len(plan.done),
            "jobs": session.jobs,
            **{f"{name}_steps": session.steps.get(name, 0) for name in ("lower", "compile", "finish")},
        },
        "wall_time_s": round(session.seconds, 3),
        "host": host_facts.host(),
    }
    schema.check(record, "the sweep")
    return record


def _values(found: Sequence[Record], name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in found if row[name] is not None))


def _status(counted: Mapping[str, int], verdict: Record) -> str:
    if counted.get(rows.NOT_RUN):
        return INCOMPLETE
    bad = (rows.FAIL, *rows.UNFINISHED)
    if any(counted.get(name) for name in bad) or not counted.get(rows.PASS):
        return FAIL
    return verdict["status"] if verdict["constraints"] else PASS
