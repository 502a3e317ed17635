"""compare.json: ``compare/1``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ethosu_sdk import provenance
from ethosu_sdk.readers.compare import dimensions, judgement, metrics, operator_limits, operators, outputs
from ethosu_sdk.readers.compare.policy import OperatorRule, Policy
from ethosu_sdk.readers.compare.subjects import Subject
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import host_facts

PASS, FAIL, BLOCKED = "pass", "fail", "blocked"
_WORST_FIRST = (BLOCKED, FAIL, PASS)
_LETTERS = 26
_NOTHING: Mapping[str, str] = {}


def make(subjects: Sequence[Subject], policy: Policy, failed: Mapping[str, str] = _NOTHING) -> Record:
    """The record of comparing each of `subjects` but the first with the first. `failed` is what was to be compared
    and is not there, and why."""
    first, *others = subjects
    comparisons = [
        {"before": label(0), "after": label(number), **_comparison(first, other, policy)}
        for number, other in enumerate(others, 1)
    ]
    words = {row["status"] for row in comparisons} | {FAIL if failed else PASS}
    status = next(word for word in _WORST_FIRST if word in words)
    inputs = [row for number, subject in enumerate(subjects) for row in subject.inputs(label(number))]
    return {
        **provenance.header(kinds.COMPARE.schema, status, inputs, []),
        "policy": {**_policy(policy), **_unmatched(policy, subjects)},
        "subjects": [_subject(label(number), subject) for number, subject in enumerate(subjects)],
        "comparisons": comparisons,
        "failed": [{"name": name, "reason": reason} for name, reason in failed.items()],
        "unavailable": list(_unavailable(subjects)),
        "host": host_facts.host(),
    }


def label(number: int) -> str:
    """The name of a subject: A, B …, AA …"""
    prefix = label(number // _LETTERS - 1) if number >= _LETTERS else ""
    return prefix + chr(ord("A") + number % _LETTERS)


def _policy(policy: Policy) -> Record:
    return {
        "source": policy.source,
        "sha256": policy.sha256,
        "allow": list(policy.allow),
        "rules": [
            {"pattern": pattern, **{key: value for key, value in vars(rule).items() if value is not None}}
            for pattern, rule in policy.rules
        ],
        **({"operators": [_operator_rule(row) for row in policy.operators]} if policy.operators else {}),
    }


def _operator_rule(row: OperatorRule) -> Record:
    said = {key: value for key, value in vars(row.rule).items() if value is not None}
    return {"pattern": row.pattern, "figure": row.figure, **said}


def _unmatched(policy: Policy, subjects: Sequence[Subject]) -> Record:
    """The patterns of `policy` that fit nothing: somebody believes in a limit that there is not."""
    if not policy.own and not policy.operators:
        return {}
    names = list(dict.fromkeys(name for subject in subjects for name in metrics.of(subject.records)))
    profiles = [subject.records["profile"] for subject in subjects if "profile" in subject.records]
    found = operator_limits.unmatched(policy, names, profiles)
    rows = [{"pattern": pattern, "reason": reason} for pattern, reason in found]
    return {"unmatched": rows} if rows else {}


def _subject(name: str, subject: Subject) -> Record:
    first = subject.first
    return {
        "label": name,
        "name": subject.name,
        "records": list(subject.records),
        "model": first["model"],
        **({"target": first["target"]} if "target" in first else {}),
    }


def _unavailable(subjects: Sequence[Subject]) -> Iterator[Record]:
    for number, subject in enumerate(subjects):
        for kind, reason in subject.missing.items():
            yield {"path": f"/subjects/{number}/{kind}", "reason": reason}


def _comparison(first: Subject, other: Subject, policy: Policy) -> Record:
    kinds = [kind for kind in first.records if kind in other.records]
    before = {kind: first.records[kind] for kind in kinds}
    after = {kind: other.records[kind] for kind in kinds}
    rows = [_dimension(found, policy) for found in dimensions.compare(before, after)]
    head: Record = {"kinds": kinds, "dimensions": rows}
    if any(row["status"] == "blocks" for row in rows):
        return {"status": BLOCKED, **head, "compared": 0, "metrics": [], "operators": []}
    old, new = metrics.of(before), metrics.of(after)
    changed: list[Record] = []
    if "profile" in kinds:
        changed = operator_limits.judged(operators.compare(before["profile"], after["profile"]), policy)
    allowances = operator_limits.allowances(new, changed, policy)
    found = [_with_operator(row, changed) for row in judgement.rows(old, new, policy, allowances)]
    found = [_with_distance(row, first, other) for row in found]
    worse = any(row["status"] == judgement.REGRESSION for row in found) or operator_limits.is_worse(changed)
    return {
        "status": FAIL if worse else PASS,
        **head,
        "compared": len({*old, *new}),
        "metrics": found,
        "operators": changed,
    }


def _dimension(found: dimensions.Found, policy: Policy) -> Record:
    status = "same"
    if found.differs:
        status = "allowed" if found.name in policy.allow else "blocks"
    reason = dimensions.never(found.name) if status == "blocks" else ""
    row: dict[str, Any] = {"name": found.name, "status": status, "before": found.before}
    return {**row, "after": found.after, **({"reason": reason} if reason else {})}


def _with_operator(row: Record, changed: Sequence[Record]) -> Record:
    """`row` with the operator that made it grow most, where its figure is a sum over operators."""
    if row["status"] != judgement.REGRESSION or (operator := operators.behind(row["name"], changed)) is None:
        return row
    return {**row, "operator": changed.index(operator)}


def _with_distance(row: Record, first: Subject, other: Subject) -> Record:
    """`row` with how far apart two outputs are."""
    both = "before" in row and "after" in row
    detail = (
        outputs.distance(first, other, row["name"]) if both and row["name"].startswith("outputs.") else ""
    )
    return {**row, **({"detail": detail} if detail else {})}
