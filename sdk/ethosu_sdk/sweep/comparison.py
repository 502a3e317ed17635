"""`ethosu-sdk sweep compare`: two sweeps, cell by cell, by a policy of `compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ethosu_sdk import provenance, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, VerdictError
from ethosu_sdk.files import json_text, locks, writing
from ethosu_sdk.readers.compare import compare_command, compare_record, policy as compare_policy, subjects
from ethosu_sdk.readers.compare.options import CompareOptions
from ethosu_sdk.readers.compare.policy import Policy
from ethosu_sdk.readers.compare.subjects import Compared, Subject
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compare import Comparison, KindName
from ethosu_sdk.results import bundle, host_facts, reading as results
from ethosu_sdk.sweep import query, rows, store
from ethosu_sdk.sweep.configuration import DIMENSIONS

RECORD_NAME = kinds.SWEEP_COMPARE.file
PASS, FAIL, BLOCKED, MISSING, NEW = "pass", "fail", "blocked", "missing", "new"
_MOST_SHOWN = 50
_MOST_REASONS = 8
Identity = tuple[str | None, ...]


@dataclass(frozen=True)
class _Sweep:
    """A sweep that was read: its folder and its rows."""

    folder: Path
    rows: Sequence[Record]

    def by_identity(self, names: Sequence[str]) -> dict[Identity, Record]:
        """The rows by the values of the dimensions `names`."""
        return {tuple(row[name] for name in names): row for row in self.rows}


def compare(
    before: Path, after: Path, options: CompareOptions, out_dir: Path | None, reporter: Reporter
) -> Record:
    """Compare the sweep in `after` with the one in `before` and write the record.

    Raises InputError, after it was written, when cells cannot be compared, VerdictError when one is worse or missing.
    """
    policy = compare_policy.read(options.policy).allowing(options.allow)
    record = make(before, after, policy)
    folder = compare_command.folder_of(out_dir)
    writing.make_directory(folder)
    with locks.locked(folder), bundle.published(folder, "sweep") as add:
        json_text.write_json(folder / RECORD_NAME, record)
        add(RECORD_NAME)
    reporter.show(*tables(record))
    reporter.emit(record)
    _conclude(record)
    return record


def make(before: Path, after: Path, policy: Policy) -> Record:
    """The record of comparing two sweeps. InputError for a folder that is none."""
    old, new = _read(before), _read(after)
    names = _names(old, new)
    first, second = old.by_identity(names), new.by_identity(names)
    found = []
    for identity in dict.fromkeys((*first, *second)):
        row, other = first.get(identity), second.get(identity)
        part = _cell(old, new, row, other, policy)
        cell = row or other or {}
        dimensions = {name: cell[name] for name in DIMENSIONS if cell[name] is not None}
        found.append({"cell": dimensions, **part})
    counted = Counter(part["status"] for part in found)
    bad = FAIL if counted[FAIL] or counted[MISSING] else PASS
    record = {
        **provenance.header(
            kinds.SWEEP_COMPARE.schema, BLOCKED if counted[BLOCKED] else bad, _inputs(old, new), []
        ),
        "policy": {"source": policy.source, "sha256": policy.sha256, "allow": list(policy.allow)},
        "before": old.folder.name,
        "after": new.folder.name,
        "counts": {name: counted[name] for name in (PASS, FAIL, BLOCKED, MISSING, NEW)},
        "cells": found,
        "host": host_facts.host(),
    }
    schema.check(record, "the comparison")
    return record


def _inputs(old: _Sweep, new: _Sweep) -> list[Record]:
    pairs = (("before", old), ("after", new))
    return [provenance.file_entry(role, sweep.folder / store.TABLE_NAME) for role, sweep in pairs]


def _read(folder: Path) -> _Sweep:
    bundle.check(folder, [store.TABLE_NAME, store.RECORD_NAME])
    return _Sweep(folder.resolve(), query.read(folder).to_pylist())


def _names(old: _Sweep, new: _Sweep) -> list[str]:
    """The dimensions by which cells are the same: Vela's version only where a sweep has several."""
    several = any(len({row["vela"] for row in sweep.rows}) > 1 for sweep in (old, new))
    return [name for name in DIMENSIONS if several or name != "vela"]


def _cell(old: _Sweep, new: _Sweep, row: Record | None, other: Record | None, policy: Policy) -> Record:
    if row is None or other is None:
        status, known = (NEW, other) if row is None else (MISSING, row)
        words = "was not there before" if row is None else "is not there any more"
        assert known is not None
        side = "after" if row is None else "before"
        return {"status": status, f"{side}_status": known["status"], "reasons": [f"the cell {words}"]}
    both = {"before_status": row["status"], "after_status": other["status"]}
    if rows.PASS not in (row["status"], other["status"]):
        return {"status": PASS, **both, "reasons": []}
    if other["status"] != rows.PASS:
        message = f": {other['message'].splitlines()[0]}" if other["message"] else ""
        return {
            "status": FAIL,
            **both,
            "reasons": [f"it was {row['status']} and is {other['status']}{message}"],
        }
    if row["status"] != rows.PASS:
        return {"status": PASS, **both, "reasons": [f"it was {row['status']} and passes"]}
    first, second = _subject(old, row), _subject(new, other)
    compared = compare_record.compared(first, second, policy, "B")
    return {
        "status": compared.status,
        **both,
        "reasons": _reasons(compared),
        "metrics": [part.to_json() for part in compared.metrics if part.status == "regression"],
    }


def _subject(sweep: _Sweep, row: Record) -> Subject:
    """The records of a cell, which lies where the sweep keeps it."""
    name = row["folder"] or ""
    folder = (sweep.folder / name.replace("\0", "")).resolve()
    if "\0" in name or not folder.is_relative_to(sweep.folder):
        raise InputError(f"{sweep.folder} names a cell outside of that folder")
    found: dict[KindName, Compared] = {}
    files: dict[KindName, Path] = {}
    for path in results.present(folder, (results.RUN, results.COMPILE)):
        kind, found[kind] = subjects.record_of(path)
        files[kind] = path
    if not found:
        raise InputError(f"{folder} holds no record of a run or compilation", "run the sweep again")
    return Subject(folder, found, files, folder)


def _reasons(compared: Comparison) -> list[str]:
    """What blocks, or what is worse, in a few words each."""
    blocked = [row.name for row in compared.dimensions if row.status == "blocks"]
    if blocked:
        return [f"they differ in {name}" for name in blocked]
    worse = [row for row in compared.metrics if row.status == "regression"]
    return [f"{row.name}: {_value(row.before)} → {_value(row.after)}" for row in worse]


def _value(value: float | str | None) -> float | str:
    return "nothing" if value is None else value


def tables(record: Record) -> list[Table]:
    """The comparison for people: how many cells, and those that are not as before."""
    head = Table(box=None, show_header=False, pad_edge=False)
    for name, count in record["counts"].items():
        if count:
            head.add_row(name, f"{count:,}")
    worse = [row for row in record["cells"] if row["status"] != PASS]
    if not worse:
        return [head]
    listed = Table(box=None, pad_edge=False)
    for heading in ("cell", "", "why"):
        listed.add_column(heading)
    for row in worse[:_MOST_SHOWN]:
        listed.add_row(escape(_label(row)), row["status"], escape("; ".join(row["reasons"][:_MOST_REASONS])))
    return [head, listed]


def _label(row: Record) -> str:
    return " ".join(str(value) for name, value in row["cell"].items() if name not in ("vela", "quantize"))


def _conclude(record: Record) -> None:
    if record["status"] == PASS:
        return
    wanted = (BLOCKED,) if record["status"] == BLOCKED else (FAIL, MISSING)
    chosen = [row for row in record["cells"] if row["status"] in wanted]
    lines = [f"  {_label(row)}: {'; '.join(row['reasons'][:_MOST_REASONS])}" for row in chosen[:_MOST_SHOWN]]
    lines += [f"  and {len(chosen) - _MOST_SHOWN} more"] if len(chosen) > _MOST_SHOWN else []
    text = "\n".join(lines)
    if record["status"] == BLOCKED:
        raise InputError(
            f"cells cannot be compared:\n{text}",
            "sweep both with the same settings, or allow the difference: --allow NAME, or `allow` in a "
            "policy",
            recorded=True,
        )
    raise VerdictError(
        f"worse than before:\n{text}",
        "a policy sets what may become worse, and by how much: --policy FILE.toml",
        recorded=True,
    )
