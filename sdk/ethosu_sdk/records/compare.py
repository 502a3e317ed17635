"""``compare/1``, from which schemas/compare.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind, require

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
    pattern: c.Text
    better: Better | None = None
    tolerance: c.Amount | None = None
    tolerance_percent: c.Amount | None = None
    missing: Literal["fail", "warn", "ignore"] | None = None


class OperatorRule(Part):
    pattern: c.Text  #: OPERATOR or OPERATOR@MODULE
    figure: c.Text  #: pattern of the operator's figures
    better: Better | None = None
    tolerance: c.Amount | None = None
    tolerance_percent: c.Amount | None = None


class Unmatched(Part):
    pattern: c.Text
    reason: c.Text


class Policy(Part):
    source: c.Text
    sha256: c.Sha256
    allow: tuple[c.Text, ...]
    rules: tuple[Rule, ...]  #: of the rules whose pattern fits, each adds to those before it
    #: rules for single operators, likewise; absent when there is none
    operators: c.Some[OperatorRule] | None = None
    #: patterns of the policy that fit nothing in these runs; absent when all fit
    unmatched: c.Some[Unmatched] | None = None


class Subject(Part):
    label: Label
    name: c.Text
    records: c.DistinctSome[KindName]
    model: c.Model
    target: c.Target | None = None


class Dimension(Part):
    name: c.Text
    status: DimensionStatus
    before: c.Text
    after: c.Text
    reason: c.Text | None = None  #: why no policy can allow it


class MetricChange(Part):
    name: c.Text
    unit: c.Text | None = None
    source: c.Source | None = None
    #: of what was before, where it is another; such a figure is not judged
    source_before: c.Source | None = None
    before: c.Number | str | None = None
    after: c.Number | str | None = None
    better: Better
    change: c.Number | None = None  #: after - before
    percent: c.Number | None = None  #: the change in percent of what was before
    tolerated: c.Amount | None = None  #: what the figure may be worse by
    #: the part of `tolerated` that is for what operators grew within their own rules
    tolerated_at_operators: c.PositiveCount | None = None
    status: MetricStatus  #: differs: not judged; missing: one of the two alone has it
    #: of `operators`: the one whose part of the figure grew most; of an output one with other constants
    operator: c.Count | None = None
    detail: c.Text | None = None  #: how outputs differ

    together: ClassVar[dict[str, Any]] = {"anyOf": [{"required": ["before"]}, {"required": ["after"]}]}

    def __post_init__(self) -> None:
        require(self.before is not None or self.after is not None, "neither before nor after is given")


class FigureChange(Part):
    name: c.Text
    unit: c.Text
    source: c.Source | None = None
    before: c.Count
    after: c.Count
    change: int
    better: Better | None = None
    percent: c.Number | None = None  #: the change in percent of what was before
    tolerated: c.Amount | None = None  #: what the figure may be worse by
    #: absent when the policy has no rule for it
    status: Literal["regression", "improved", "tolerated", "differs"] | None = None


class OperatorChange(Part):
    runs_on: Literal["NPU", "CPU"]
    name: c.Text  #: the TOSA operator, or what the profile calls the operation
    tensor: c.Text | None = None  #: the first output of the TOSA operator
    source: c.SourceLine | None = None
    only_in: Literal["before", "after"] | None = None
    #: its weights, biases or scales are others; absent when they are the same, or not known
    constants: Literal["differ"] | None = None
    figures: tuple[FigureChange, ...]  #: of one inference; those that changed


class Comparison(Part):
    before: Label
    after: Label
    status: Status
    kinds: c.DistinctSome[KindName]  #: of records that both have
    dimensions: tuple[Dimension, ...]  #: what must be the same for figures to be compared
    compared: c.Count  #: figures that one of the two has, or both
    metrics: tuple[MetricChange, ...]  #: figures that differ
    operators: tuple[OperatorChange, ...]  #: operators that differ, by the profiles of both


class Failed(Part):
    name: c.Text
    reason: c.Text


class Comparisons(Derived[Status], tag_field="schema", tag="compare/1"):
    """What became better or worse from one run to others."""

    policy: Policy
    subjects: c.Some[Subject]  #: the first is what the others are compared with
    comparisons: tuple[Comparison, ...]
    #: what was to be compared and did not come to a run: versions of Vela; the record fails
    failed: tuple[Failed, ...]
    unavailable: c.UnavailableMembers
    host: c.Host


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
