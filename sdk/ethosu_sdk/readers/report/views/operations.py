"""The profile's table: a row for each operation, with what its columns are sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Operation, Profile, cycles
from ethosu_sdk.results import source_place
from ethosu_sdk.tables import figures


@dataclass(frozen=True)
class Column:
    """A column: `is_number` ones are sorted by value, and stand on the right."""

    key: str
    title: str
    is_number: bool = True


_COLUMNS = (
    Column("index", "#"),
    Column("where", "on", False),
    Column("name", "operation", False),
    Column("origin", "from", False),
    Column("shapes", "IFM → OFM", False),
    Column("macs", "MACs"),
    Column("modelled", "cycles modelled"),
    Column("estimated", "cycles estimated by Vela"),
    Column("measured", "cycles measured"),
    Column("alone", "cycles as a job of its own"),
    Column("instructions", "CPU instructions"),
    Column("utilisation", "utilisation"),
    Column("read", "bytes read"),
    Column("written", "bytes written"),
    Column("bound", "pace set by", False),
)
_SUMMED = ("macs", "modelled", "estimated", "measured", "alone", "instructions", "read", "written")
_OF_ALL_CALLS = ("instructions",)  # in the record; all other figures are of one call
_ALWAYS = ("index", "where", "name", "modelled")


def of(profile: Profile | None) -> dict[str, Any]:
    """Columns that hold something, their rows, and the sums of an inference."""
    rows = [_row(entry) for entry in (profile.operations if profile is not None else ())]
    totals = profile.totals.npu.cycles if profile is not None else ()
    columns = [
        column
        for column in _COLUMNS
        if column.key in _ALWAYS or any(row[column.key] not in (None, "") for row in rows)
    ]
    return {
        "columns": columns,
        "rows": [[_cell(row[column.key], column) for column in columns] for row in rows],
        "sums": [_sum(rows, totals, column) for column in columns],
    }


def _row(entry: Operation) -> dict[str, Any]:
    on_npu = entry.runs_on == "NPU"
    return {
        "index": entry.index,
        "calls": entry.calls,
        "where": entry.runs_on,
        "name": entry.name,
        "origin": origin(entry),
        "shapes": " → ".join(figures.shape(sizes) for sizes in (entry.ifm, entry.ofm) if sizes),
        "macs": entry.macs or None,
        **{source: cycles(entry.cycles, source) for source in ("modelled", "estimated", "measured")},
        "alone": entry.job.cycles.value if entry.job is not None else None,
        "instructions": entry.instructions.value if entry.instructions is not None else None,
        "utilisation": entry.utilisation if entry.macs else None,
        "read": entry.moved_bytes("read") if on_npu else None,
        "written": entry.moved_bytes("write") if on_npu else None,
        "bound": entry.bound_by or "",
    }


def origin(entry: Operation) -> str:
    """What of the model an operation stands for: TOSA operator, module or line."""
    return ", ".join(filter(None, (entry.operator, source_place.place(entry.source), entry.reason)))


def _cell(value: Any, column: Column) -> dict[str, Any]:
    if value is None:
        return {"text": "", "sort": "", "is_number": column.is_number}
    text = f"{value:.1%}" if column.key == "utilisation" else value
    return {"text": text, "sort": str(value), "is_number": column.is_number}


def _sum(rows: Sequence[dict[str, Any]], totals: Sequence[Metric], column: Column) -> dict[str, Any]:
    """What a column adds up to in an inference; cycles of the whole, which has some before its first operation."""
    for row in totals:
        if row.source == column.key:
            return {"text": row.value, "is_number": True}
    known = [
        cells[column.key] * (1 if column.key in _OF_ALL_CALLS else cells["calls"])
        for cells in rows
        if column.key in _SUMMED and cells[column.key] is not None
    ]
    return {"text": sum(known) if known else "", "is_number": column.is_number}


def not_delegated(compiled: Compilation) -> list[dict[str, Any]]:
    """Operators that stay on the CPU, with the reason."""
    return [
        {
            "name": row.name,
            "calls": site.calls,
            "reason": site.reason,
            "place": source_place.place(site.source),
        }
        for row in compiled.cpu_operators
        for site in row.sites
    ]
