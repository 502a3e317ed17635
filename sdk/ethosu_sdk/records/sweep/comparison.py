"""``sweep-compare/1``: schemas/sweep-compare.v1.schema.json says what each member means."""

from __future__ import annotations

import collections
from typing import Literal

import msgspec

from ethosu_sdk.records.common import Derived, Host
from ethosu_sdk.records.compare import MetricChange
from ethosu_sdk.records.kind import Part, RecordKind
from ethosu_sdk.records.sweep.cell import Cell

CellStatus = Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed", "not run"]
CellVerdict = Literal["pass", "fail", "blocked", "missing", "new"]


class Policy(Part):
    source: str
    sha256: str
    allow: tuple[str, ...]


class Counts(Part):
    passed: int = msgspec.field(name="pass")
    fail: int
    blocked: int
    missing: int
    new: int


class ComparedCell(Part):
    cell: Cell
    status: CellVerdict
    before_status: CellStatus | None = None
    after_status: CellStatus | None = None
    reasons: tuple[str, ...]
    metrics: tuple[MetricChange, ...] | None = None


class SweepComparison(Derived[Literal["pass", "fail", "blocked"]], tag_field="schema", tag="sweep-compare/1"):
    """Two sweeps, cell by cell."""

    policy: Policy
    before: str
    after: str
    counts: Counts
    cells: tuple[ComparedCell, ...]
    host: Host


def comparison_follows_its_cells(record: SweepComparison) -> list[str]:
    """Counts and status of a comparison of sweeps are those of its cells."""
    counted = collections.Counter[str](row.status for row in record.cells)
    found = [
        f"{count} cells are counted as '{name}', {counted[name]} are"
        for name, count in record.counts.to_json().items()
        if count != counted[name]
    ]
    expected = (
        "blocked" if counted["blocked"] else "fail" if counted["fail"] or counted["missing"] else "pass"
    )
    if record.status != expected:
        found.append(f"the cells say '{expected}', the record says '{record.status}'")
    return found


KIND = RecordKind(
    SweepComparison,
    (comparison_follows_its_cells,),
    file="sweep-compare.json",
    role="record of the comparison",
)
