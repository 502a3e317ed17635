"""`ethosu-sdk sweep compare`: two sweeps, cell by cell, by a policy of `compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import convert
from rich.table import Table

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import bundle, kinds, provenance, validation
from ethosu_sdk.records.bundle import records_in
from ethosu_sdk.records.compare import Comparison, KindName, Status
from ethosu_sdk.records.sweep import (
    Cell,
    CellStatus,
    ComparedCell,
    ComparedStatus,
    Counts,
    Policy as SweepPolicy,
    SweepComparison,
)
from ethosu_sdk.reporting.compare import compare_command, compared_records
from ethosu_sdk.reporting.compare.compared_records import Compared, Subject
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.reporting.compare.policies import Policy, load_policy
from ethosu_sdk.sweep import cell_query, cell_rows, store
from ethosu_sdk.sweep.cell_rows import Row
from ethosu_sdk.sweep.sweep_configuration import DIMENSIONS

_COUNTED = ("pass", "fail", "blocked", "missing", "new")
_MOST_SHOWN = 50
_MOST_REASONS = 8


class _Sweep(NamedTuple):
    folder: Path
    rows: Sequence[Row]


def compare_sweeps(
    before: Path, after: Path, options: CompareOptions, out_dir: Path | None, reporter: Reporter
) -> SweepComparison:
    """Compare the sweep in `after` with the one in `before` and write the record.

    Raises InputError, after it was written, when cells cannot be compared, VerdictError when one is worse or missing.
    """
    policy = load_policy(options.policy).allowing(options.allow)
    record = make_sweep_comparison(before, after, policy)
    folder = compare_command.comparison_folder(out_dir)
    compare_command.write_comparison(record, kinds.SWEEP_COMPARE.file, "sweep", folder)
    reporter.show(*comparison_tables(record))
    reporter.emit(record.to_json())
    _conclude(record)
    return record


def make_sweep_comparison(before: Path, after: Path, policy: Policy) -> SweepComparison:
    """The record of comparing two sweeps. InputError for a folder that is none."""
    old, new = _read(before), _read(after)
    # Cells are the same by their dimensions: by Vela's version only where a sweep has several.
    several = any(len({row["vela"] for row in found.rows}) > 1 for found in (old, new))
    names = [name for name in DIMENSIONS if several or name != "vela"]
    first, second = ({tuple(row[name] for name in names): row for row in found.rows} for found in (old, new))
    identities = dict.fromkeys((*first, *second))
    cells = tuple(_cell(old, new, first.get(row), second.get(row), policy) for row in identities)
    counted = Counter[str](row.status for row in cells)
    bad: Status = "fail" if counted["fail"] or counted["missing"] else "pass"
    sides = (("before", old.folder), ("after", new.folder))
    inputs = [provenance.file_entry(role, folder / store.TABLE_NAME) for role, folder in sides]
    record = SweepComparison(
        status="blocked" if counted["blocked"] else bad,
        **provenance.origin(inputs, []),
        policy=SweepPolicy(source=policy.source, sha256=policy.sha256, allow=policy.allow),
        before=old.folder.name,
        after=new.folder.name,
        counts=convert({name: counted[name] for name in _COUNTED}, Counts),
        cells=cells,
        host=provenance.this_host(),
    )
    validation.check_record(record.to_json(), "the comparison")
    return record


def _read(folder: Path) -> _Sweep:
    bundle.check_listed(folder, [store.TABLE_NAME, kinds.SWEEP.file])
    return _Sweep(folder.resolve(), cell_query.read_table(folder).to_pylist())


def _cell(old: _Sweep, new: _Sweep, row: Row | None, other: Row | None, policy: Policy) -> ComparedCell:
    known = row or other or {}
    cell = Cell(**{name: known[name] for name in DIMENSIONS})
    before: CellStatus | None = None if row is None else row["status"]
    after: CellStatus | None = None if other is None else other["status"]
    status: ComparedStatus = "pass"
    reasons: tuple[str, ...] = ()
    worse = None
    if row is None:
        status, reasons = "new", ("the cell was not there before",)
    elif other is None:
        status, reasons = "missing", ("the cell is not there any more",)
    elif before == after == cell_rows.PASS:
        compared = compare_command.compare_two(_subject(old, row), _subject(new, other), policy, "B")
        status, reasons = compared.status, tuple(_reasons(compared))
        worse = tuple(part for part in compared.metrics if part.status == "regression")
    elif before == cell_rows.PASS:
        message = f": {other['message'].splitlines()[0]}" if other["message"] else ""
        status, reasons = "fail", (f"it was {before} and is {after}{message}",)
    elif after == cell_rows.PASS:
        reasons = (f"it was {before} and passes",)
    statuses = {"before_status": before, "after_status": after}
    return ComparedCell(cell=cell, status=status, reasons=reasons, metrics=worse, **statuses)


def _subject(sweep: _Sweep, row: Row) -> Subject:
    name = row["folder"] or ""
    folder = (sweep.folder / name.replace("\0", "")).resolve()
    if "\0" in name or not folder.is_relative_to(sweep.folder):
        raise InputError(f"{sweep.folder} names a cell outside of that folder")
    found: dict[KindName, Compared] = {}
    files: dict[KindName, Path] = {}
    for path in records_in(folder, (kinds.RUN.schema, kinds.COMPILE.schema)):
        kind, found[kind] = compared_records.compared_record(path)
        files[kind] = path
    if not found:
        raise InputError(f"{folder} holds no record of a run or compilation", "run the sweep again")
    return Subject(folder, found, files, folder)


def _reasons(compared: Comparison) -> list[str]:
    """What blocks, or what is worse, in a few words each."""
    blocked = [row.name for row in compared.dimensions if row.status == "blocks"]
    if blocked:
        return [f"they differ in {name}" for name in blocked]
    found = []
    for row in compared.metrics:
        if row.status == "regression":
            before, after = ("nothing" if value is None else value for value in (row.before, row.after))
            found.append(f"{row.name}: {before} → {after}")
    return found


def comparison_tables(record: SweepComparison) -> list[Table]:
    """The comparison for people: how many cells, and those that are not as before."""
    head = Table(box=None, show_header=False, pad_edge=False)
    for name, count in record.counts.to_json().items():
        if count:
            head.add_row(name, f"{count:,}")
    worse = [row for row in record.cells if row.status != "pass"]
    if not worse:
        return [head]
    listed = Table(box=None, pad_edge=False)
    for heading in ("cell", "", "why"):
        listed.add_column(heading)
    for row in worse[:_MOST_SHOWN]:
        listed.add_row(escape(_label(row)), row.status, escape("; ".join(row.reasons[:_MOST_REASONS])))
    return [head, listed]


def _label(row: ComparedCell) -> str:
    cell = row.cell.to_json()
    return " ".join(value for name, value in cell.items() if name not in ("vela", "quantize"))


def _conclude(record: SweepComparison) -> None:
    if record.status == "pass":
        return
    wanted = ("blocked",) if record.status == "blocked" else ("fail", "missing")
    chosen = [row for row in record.cells if row.status in wanted]
    lines = [f"{_label(row)}: {'; '.join(row.reasons[:_MOST_REASONS])}" for row in chosen[:_MOST_SHOWN]]
    lines += [f"and {len(chosen) - _MOST_SHOWN} more"] if len(chosen) > _MOST_SHOWN else []
    if record.status == "blocked":
        raise compare_command.cannot_be_compared("cells", "sweep", lines)
    raise compare_command.worse_than_before(lines)
