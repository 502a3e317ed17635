"""compare.json: ``compare/1``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import asdict, replace

from ethosu_sdk import provenance
from ethosu_sdk.readers.compare import dimensions, metrics, operator_limits, operators, outputs, verdict
from ethosu_sdk.readers.compare.policy import Policy
from ethosu_sdk.readers.compare.subjects import Subject
from ethosu_sdk.records import compare
from ethosu_sdk.records.common import Unavailable
from ethosu_sdk.records.compare import (
    Comparison,
    Comparisons,
    DimensionStatus,
    Failed,
    MetricChange,
    OperatorChange,
    Status,
)
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results import host_facts

PASS: Final = "pass"
FAIL: Final = "fail"
BLOCKED: Final = "blocked"
_WORST_FIRST: tuple[Status, ...] = (BLOCKED, FAIL, PASS)
_LETTERS = 26
_NOTHING: Mapping[str, str] = {}


def make(subjects: Sequence[Subject], policy: Policy, failed: Mapping[str, str] = _NOTHING) -> Comparisons:
    """The record of comparing each of `subjects` but the first with the first. `failed` is what was to be compared
    and is not there, and why."""
    first, *others = subjects
    comparisons = tuple(
        compared(first, other, policy, label(number)) for number, other in enumerate(others, 1)
    )
    words = {row.status for row in comparisons} | {FAIL if failed else PASS}
    status = next(word for word in _WORST_FIRST if word in words)
    inputs = [row for number, subject in enumerate(subjects) for row in subject.inputs(label(number))]
    return Comparisons(
        status=status,
        **provenance.origin(inputs, []),
        policy=_policy(policy, subjects),
        subjects=tuple(_subject(label(number), subject) for number, subject in enumerate(subjects)),
        comparisons=comparisons,
        failed=tuple(Failed(name=name, reason=reason) for name, reason in failed.items()),
        unavailable=tuple(_unavailable(subjects)),
        host=host_facts.this_host(),
    )


def label(number: int) -> str:
    """The name of a subject: A, B …, AA …"""
    prefix = label(number // _LETTERS - 1) if number >= _LETTERS else ""
    return prefix + chr(ord("A") + number % _LETTERS)


def _policy(policy: Policy, subjects: Sequence[Subject]) -> compare.Policy:
    operators = (
        compare.OperatorRule(
            pattern=row.pattern,
            figure=row.figure,
            better=row.rule.better,
            tolerance=row.rule.tolerance,
            tolerance_percent=row.rule.tolerance_percent,
        )
        for row in policy.operators
    )
    return compare.Policy(
        source=policy.source,
        sha256=policy.sha256,
        allow=policy.allow,
        rules=tuple(compare.Rule(pattern=pattern, **asdict(rule)) for pattern, rule in policy.rules),
        operators=tuple(operators) or None,
        unmatched=tuple(_unmatched(policy, subjects)) or None,
    )


def _unmatched(policy: Policy, subjects: Sequence[Subject]) -> Iterator[compare.Unmatched]:
    """The patterns of `policy` that fit nothing: somebody believes in a limit that there is not."""
    if not policy.own and not policy.operators:
        return
    names = list(dict.fromkeys(name for subject in subjects for name in metrics.of(subject.records)))
    found = (subject.records.get("profile") for subject in subjects)
    profiles = [profile for profile in found if isinstance(profile, Profile)]
    for pattern, reason in operator_limits.unmatched(policy, names, profiles):
        yield compare.Unmatched(pattern=pattern, reason=reason)


def _subject(name: str, subject: Subject) -> compare.Subject:
    first = subject.first
    return compare.Subject(
        label=name, name=subject.name, records=tuple(subject.records), model=first.model, target=first.target
    )


def _unavailable(subjects: Sequence[Subject]) -> Iterator[Unavailable]:
    for number, subject in enumerate(subjects):
        for kind, reason in subject.missing.items():
            yield Unavailable(path=f"/subjects/{number}/{kind}", reason=reason)


def compared(first: Subject, other: Subject, policy: Policy, name: str) -> Comparison:
    """The comparison of `other`, which is called `name`, with the first."""
    shared = [kind for kind in first.records if kind in other.records]
    before = {kind: first.records[kind] for kind in shared}
    after = {kind: other.records[kind] for kind in shared}
    rows = tuple(_dimension(found, policy) for found in dimensions.compare(before, after))
    blocked = Comparison(
        before=label(0),
        after=name,
        status=BLOCKED,
        kinds=tuple(shared),
        dimensions=rows,
        compared=0,
        metrics=(),
        operators=(),
    )
    if any(row.status == "blocks" for row in rows):
        return blocked
    old, new = metrics.of(before), metrics.of(after)
    changed: list[OperatorChange] = []
    profiles = before.get("profile"), after.get("profile")
    if isinstance(profiles[0], Profile) and isinstance(profiles[1], Profile):
        changed = operator_limits.judged(operators.compare(profiles[0], profiles[1]), policy)
    allowances = operator_limits.allowances(new, changed, policy)
    found = [_with_operator(row, changed) for row in verdict.rows(old, new, policy, allowances)]
    found = [_with_distance(row, first, other) for row in found]
    worse = any(row.status == verdict.REGRESSION for row in found) or operator_limits.is_worse(changed)
    return replace(
        blocked,
        status=FAIL if worse else PASS,
        compared=len({*old, *new}),
        metrics=tuple(found),
        operators=tuple(changed),
    )


def _dimension(found: dimensions.DimensionPair, policy: Policy) -> compare.Dimension:
    status: DimensionStatus = "same"
    if found.differs:
        status = "allowed" if found.name in policy.allow else "blocks"
    reason = dimensions.never(found.name) if status == "blocks" else ""
    return compare.Dimension(
        name=found.name, status=status, before=found.before, after=found.after, reason=reason or None
    )


def _with_operator(row: MetricChange, changed: Sequence[OperatorChange]) -> MetricChange:
    """`row` with the operator that made it grow most, where its figure is a sum over operators."""
    if row.status != verdict.REGRESSION or (operator := operators.behind(row.name, changed)) is None:
        return row
    return replace(row, operator=changed.index(operator))


def _with_distance(row: MetricChange, first: Subject, other: Subject) -> MetricChange:
    """`row` with how far apart two outputs are."""
    if row.before is None or row.after is None or not row.name.startswith("outputs."):
        return row
    return replace(row, detail=outputs.distance(first, other, row.name) or None)
