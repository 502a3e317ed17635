"""The profile's table: a row for each operation, with what its columns are sorted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.records import Record
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


def of(profile: Record) -> dict[str, Any]:
    """Columns that hold something, their rows, and the sums of an inference."""
    rows = [_row(entry) for entry in profile.get("operations", ())]
    columns = [
        column
        for column in _COLUMNS
        if column.key in _ALWAYS or any(row[column.key] not in (None, "") for row in rows)
    ]
    return {
        "columns": columns,
        "rows": [[_cell(row[column.key], column) for column in columns] for row in rows],
        "sums": [_sum(rows, profile, column) for column in columns],
    }


def _row(entry: Record) -> dict[str, Any]:
    on_npu = entry["runs_on"] == "NPU"
    shapes = entry.get("shapes", {})
    return {
        "index": entry["index"],
        "calls": entry["calls"],
        "where": entry["runs_on"],
        "name": entry["name"],
        "origin": origin(entry),
        "shapes": " → ".join(figures.shape(shapes[name]) for name in ("ifm", "ofm") if name in shapes),
        "macs": entry.get("macs") or None,
        **{source: figures.cycles(entry, source) for source in ("modelled", "estimated", "measured")},
        "alone": entry.get("job", {}).get("cycles", {}).get("value"),
        "instructions": entry.get("instructions", {}).get("value"),
        "utilisation": entry.get("utilisation") if entry.get("macs") else None,
        "read": figures.moved_bytes(entry, "read") if on_npu else None,
        "written": figures.moved_bytes(entry, "write") if on_npu else None,
        "bound": entry.get("bound_by", ""),
    }


def origin(entry: Record) -> str:
    """What of the model an operation stands for: TOSA operator, module or line."""
    place = source_place.module_or_line(entry)
    names = [entry.get("tosa", {}).get("operator"), place, entry.get("reason")]
    return ", ".join(str(name) for name in names if name)


def _cell(value: Any, column: Column) -> dict[str, Any]:
    if value is None:
        return {"text": "", "sort": "", "is_number": column.is_number}
    text = f"{value:.1%}" if column.key == "utilisation" else value
    return {"text": text, "sort": str(value), "is_number": column.is_number}


def _sum(rows: Sequence[dict[str, Any]], profile: Record, column: Column) -> dict[str, Any]:
    """What a column adds up to in an inference; cycles of the whole, which has some before its first operation."""
    totals = {
        row["source"]: row["value"] for row in profile.get("totals", {}).get("npu", {}).get("cycles", ())
    }
    if column.key in totals:
        return {"text": totals[column.key], "is_number": True}
    known = [
        row[column.key] * (1 if column.key in _OF_ALL_CALLS else row["calls"])
        for row in rows
        if column.key in _SUMMED and row[column.key] is not None
    ]
    return {"text": sum(known) if known else "", "is_number": column.is_number}


def not_delegated(compiled: Record) -> list[dict[str, Any]]:
    """Operators that stay on the CPU, with the reason."""
    return [
        {
            "name": row["name"],
            "calls": site["calls"],
            "reason": site.get("reason", ""),
            "place": source_place.line_or_module(site),
        }
        for row in compiled.get("cpu_operators", ())
        for site in row["sites"]
    ]
