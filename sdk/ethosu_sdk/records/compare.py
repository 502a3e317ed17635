"""``compare/1``: schemas/compare.v1.schema.json says what each member means."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

from ethosu_sdk.records.common import Derived, Host, Model, Number, Source, SourceLine, Target, Unavailable
from ethosu_sdk.records.kind import Part, RecordKind

KindName = Literal["run", "profile", "build", "compile"]
DimensionStatus = Literal["same", "allowed", "blocks"]
Status = Literal["pass", "fail", "blocked"]
MetricStatus = Literal["regression", "improved", "tolerated", "differs", "missing"]
Better = Literal["lower", "higher", "equal", "inform"]


class Rule(Part):
    pattern: str
    better: Better | None = None
    tolerance: Number | None = None
    tolerance_percent: Number | None = None
    missing: Literal["fail", "warn", "ignore"] | None = None


class OperatorRule(Part):
    pattern: str
    figure: str
    better: Better | None = None
    tolerance: Number | None = None
    tolerance_percent: Number | None = None


class Unmatched(Part):
    pattern: str
    reason: str


class Policy(Part):
    source: str
    sha256: str
    allow: tuple[str, ...]
    rules: tuple[Rule, ...]
    operators: tuple[OperatorRule, ...] | None = None
    unmatched: tuple[Unmatched, ...] | None = None


class Subject(Part):
    label: str
    name: str
    records: tuple[KindName, ...]
    model: Model
    target: Target | None = None


class Dimension(Part):
    name: str
    status: DimensionStatus
    before: str
    after: str
    reason: str | None = None


class MetricChange(Part):
    name: str
    unit: str | None = None
    source: Source | None = None
    before: Number | str | None = None
    after: Number | str | None = None
    better: Better
    change: Number | None = None
    percent: Number | None = None
    tolerated: Number | None = None
    tolerated_at_operators: int | None = None
    status: MetricStatus
    operator: int | None = None
    detail: str | None = None


class FigureChange(Part):
    name: str
    unit: str
    source: Source | None = None
    before: int
    after: int
    change: int
    better: Better | None = None
    percent: Number | None = None
    tolerated: Number | None = None
    status: Literal["regression", "improved", "tolerated", "differs"] | None = None


class OperatorChange(Part):
    runs_on: Literal["NPU", "CPU"]
    name: str
    tensor: str | None = None
    source: SourceLine | None = None
    only_in: Literal["before", "after"] | None = None
    constants: Literal["differ"] | None = None
    figures: tuple[FigureChange, ...]


class Comparison(Part):
    before: str
    after: str
    status: Status
    kinds: tuple[KindName, ...]
    dimensions: tuple[Dimension, ...]
    compared: int
    metrics: tuple[MetricChange, ...]
    operators: tuple[OperatorChange, ...]


class Failed(Part):
    name: str
    reason: str


class Comparisons(Derived[Status], tag_field="schema", tag="compare/1"):
    """What became better or worse from one run to others."""

    policy: Policy
    subjects: tuple[Subject, ...]
    comparisons: tuple[Comparison, ...]
    failed: tuple[Failed, ...]
    unavailable: tuple[Unavailable, ...]
    host: Host


def follows_its_rows(record: Comparisons) -> list[str]:
    """Blocked by a dimension, failed by a regression; the record is what its worst comparison is."""
    found = []
    for number, row in enumerate(record.comparisons):
        blocks = any(part.status == "blocks" for part in row.dimensions)
        worse = any(part.status == "regression" for part in _changes(row))
        expected = "blocked" if blocks else "fail" if worse else "pass"
        if row.status != expected:
            found.append(f"the rows of comparison {number} say '{expected}', it says '{row.status}'")
    words = {row.status for row in record.comparisons} | {"fail" if record.failed else "pass"}
    expected = next(word for word in ("blocked", "fail", "pass") if word in words)
    if record.status != expected:
        found.append(f"the comparisons say '{expected}', the record says '{record.status}'")
    return found


def names_what_is_there(record: Comparisons) -> list[str]:
    """Runs and operators that rows speak of are in the record, and a change is after - before."""
    labels = {row.label for row in record.subjects}
    found = [] if len(record.subjects) > 1 or record.failed else ["nothing is compared"]
    for comparison in record.comparisons:
        named = {comparison.before, comparison.after}
        found += [f"there is no run {label}" for label in sorted(named - labels)]
        for row in comparison.metrics:
            if row.operator is not None and row.operator >= len(comparison.operators):
                found.append(f"{row.name} is at operator {row.operator}, which is not in the record")
        for part in _changes(comparison):
            if part.change is not None and not _is_change(part):
                found.append(f"{part.name} changes by {part.change}")
    return found


def _changes(comparison: Comparison) -> Iterator[MetricChange | FigureChange]:
    yield from comparison.metrics
    for operator in comparison.operators:
        yield from operator.figures


def _is_change(row: MetricChange | FigureChange) -> bool:
    if not isinstance(row.before, int | float) or not isinstance(row.after, int | float):
        return False
    with contextlib.suppress(OverflowError):  # a whole number that no float holds
        return row.change == row.after - row.before
    return False


KIND = RecordKind(
    Comparisons,
    (follows_its_rows, names_what_is_there),
    file="compare.json",
    role="record of the comparison",
)
