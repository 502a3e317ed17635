"""``sweep-compare/1``, from which schemas/sweep-compare.v1.schema.json is made."""

from __future__ import annotations

import collections
from typing import Annotated, Literal

import msgspec

from ethosu_sdk.records.common import Count, Derived, Distinct, Host, Sha256, Text
from ethosu_sdk.records.compare import MetricChange
from ethosu_sdk.records.kind import Part, RecordKind, about, require_distinct
from ethosu_sdk.records.sweep.cell import Cell

CellStatus = Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed", "not run"]
CellVerdict = Literal["pass", "fail", "blocked", "missing", "new"]


class Policy(Part):
    source: Text
    sha256: Sha256
    allow: Distinct[Text]

    def __post_init__(self) -> None:
        require_distinct(self.allow)


class Counts(Part):
    passed: Count = msgspec.field(name="pass")
    fail: Count
    blocked: Count
    missing: Count
    new: Count


class ComparedCell(Part):
    cell: Cell
    status: Annotated[CellVerdict, about("missing: in the first sweep alone; new: in the second alone")]
    before_status: CellStatus | None = None
    after_status: CellStatus | None = None
    reasons: tuple[Text, ...]
    metrics: Annotated[tuple[MetricChange, ...] | None, about("figures that differ")] = None


class SweepComparison(Derived[Literal["pass", "fail", "blocked"]], tag_field="schema", tag="sweep-compare/1"):
    """Two sweeps, cell by cell."""

    policy: Policy
    before: Text
    after: Text
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
