"""``compare/1``, from which schemas/compare.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Count,
    Derived,
    DistinctSome,
    Host,
    Model,
    Number,
    Part,
    PositiveCount,
    RecordKind,
    Sha256,
    Some,
    Source,
    SourceLine,
    Target,
    Text,
    UnavailableMembers,
    require,
    require_distinct,
)

KindName = Literal["run", "profile", "build", "compile"]
DimensionStatus = Literal["same", "allowed", "blocks"]
Status = Annotated[
    Literal["pass", "fail", "blocked"],
    Meta(
        description="fail: something is worse than the policy tolerates; blocked: two runs cannot be compared"
    ),
]
MetricStatus = Literal["regression", "improved", "tolerated", "differs", "missing"]
Better = Literal["lower", "higher", "equal", "inform"]

Label = Annotated[str, Meta(pattern="^[A-Z]+$")]


class Rule(Part):
    pattern: Text
    better: Better | None = None
    tolerance: Amount | None = None
    tolerance_percent: Amount | None = None
    missing: Literal["fail", "warn", "ignore"] | None = None


class OperatorRule(Part):
    pattern: Text  #: OPERATOR or OPERATOR@MODULE
    figure: Text  #: pattern of the operator's figures
    better: Better | None = None
    tolerance: Amount | None = None
    tolerance_percent: Amount | None = None


class Unmatched(Part):
    pattern: Text
    reason: Text


class Policy(Part):
    source: Text
    sha256: Sha256
    allow: tuple[Text, ...]
    rules: tuple[Rule, ...]  #: of the rules whose pattern fits, each adds to those before it
    #: rules for single operators, likewise; absent when there is none
    operators: Some[OperatorRule] | None = None
    #: patterns of the policy that fit nothing in these runs; absent when all fit
    unmatched: Some[Unmatched] | None = None


class Subject(Part):
    label: Label
    name: Text
    records: DistinctSome[KindName]
    model: Model
    target: Target | None = None

    def __post_init__(self) -> None:
        require_distinct(self.records)


class Dimension(Part):
    name: Text
    status: DimensionStatus
    before: Text
    after: Text
    reason: Text | None = None  #: why no policy can allow it


class MetricChange(Part):
    name: Text
    unit: Text | None = None
    source: Source | None = None
    before: Number | str | None = None
    after: Number | str | None = None
    better: Better
    change: Number | None = None  #: after - before
    percent: Number | None = None  #: the change in percent of what was before
    tolerated: Amount | None = None  #: what the figure may be worse by
    #: the part of `tolerated` that is for what operators grew within their own rules
    tolerated_at_operators: PositiveCount | None = None
    status: MetricStatus  #: differs: not judged; missing: one of the two alone has it
    #: of `operators`: the one whose part of the figure grew most; of an output one with other constants
    operator: Count | None = None
    detail: Text | None = None  #: how outputs differ

    together: ClassVar[dict[str, Any]] = {"anyOf": [{"required": ["before"]}, {"required": ["after"]}]}

    def __post_init__(self) -> None:
        require(self.before is not None or self.after is not None, "neither before nor after is given")


class FigureChange(Part):
    name: Text
    unit: Text
    source: Source | None = None
    before: Count
    after: Count
    change: int
    better: Better | None = None
    percent: Number | None = None  #: the change in percent of what was before
    tolerated: Amount | None = None  #: what the figure may be worse by
    #: absent when the policy has no rule for it
    status: Literal["regression", "improved", "tolerated", "differs"] | None = None


class OperatorChange(Part):
    runs_on: Literal["NPU", "CPU"]
    name: Text  #: the TOSA operator, or what the profile calls the operation
    tensor: Text | None = None  #: the first output of the TOSA operator
    source: SourceLine | None = None
    only_in: Literal["before", "after"] | None = None
    #: its weights, biases or scales are others; absent when they are the same, or not known
    constants: Literal["differ"] | None = None
    figures: tuple[FigureChange, ...]  #: of one inference; those that changed


class Comparison(Part):
    before: Label
    after: Label
    status: Status
    kinds: DistinctSome[KindName]  #: of records that both have
    dimensions: tuple[Dimension, ...]  #: what must be the same for figures to be compared
    compared: Count  #: figures that one of the two has, or both
    metrics: tuple[MetricChange, ...]  #: figures that differ
    operators: tuple[OperatorChange, ...]  #: operators that differ, by the profiles of both

    def __post_init__(self) -> None:
        require_distinct(self.kinds)


class Failed(Part):
    name: Text
    reason: Text


class Comparisons(Derived[Status], tag_field="schema", tag="compare/1"):
    """What became better or worse from one run to others."""

    policy: Policy
    subjects: Some[Subject]  #: the first is what the others are compared with
    comparisons: tuple[Comparison, ...]
    #: what was to be compared and did not come to a run: versions of Vela; the record fails
    failed: tuple[Failed, ...]
    unavailable: UnavailableMembers
    host: Host


def follows_its_rows(record: Comparisons) -> Iterator[str]:
    """Blocked by a dimension, failed by a regression; the record is what its worst comparison is."""
    for number, row in enumerate(record.comparisons):
        blocks = any(part.status == "blocks" for part in row.dimensions)
        worse = any(part.status == "regression" for part in _changes(row))
        expected = "blocked" if blocks else "fail" if worse else "pass"
        if row.status != expected:
            yield f"the rows of comparison {number} say '{expected}', it says '{row.status}'"
    words = {row.status for row in record.comparisons} | {"fail" if record.failed else "pass"}
    expected = next(word for word in ("blocked", "fail", "pass") if word in words)
    yield from rules.wrong_status(record, expected, "the comparisons say")


def names_what_is_there(record: Comparisons) -> Iterator[str]:
    """Runs and operators that rows speak of are in the record, and a change is after - before."""
    labels = {row.label for row in record.subjects}
    if len(record.subjects) == 1 and not record.failed:
        yield "nothing is compared"
    for comparison in record.comparisons:
        named = {comparison.before, comparison.after}
        yield from (f"there is no run {label}" for label in sorted(named - labels))
        for row in comparison.metrics:
            if row.operator is not None and row.operator >= len(comparison.operators):
                yield f"{row.name} is at operator {row.operator}, which is not in the record"
        for part in _changes(comparison):
            if part.change is not None and not _is_change(part):
                yield f"{part.name} changes by {part.change}"


def _changes(comparison: Comparison) -> Iterator[MetricChange | FigureChange]:
    yield from comparison.metrics
    for operator in comparison.operators:
        yield from operator.figures


def _is_change(row: MetricChange | FigureChange) -> bool:
    if not isinstance(row.before, int | float) or not isinstance(row.after, int | float):
        return False
    return row.change == row.after - row.before


KIND = RecordKind(
    Comparisons, (follows_its_rows, names_what_is_there), file="compare.json", role="record of the comparison"
)
