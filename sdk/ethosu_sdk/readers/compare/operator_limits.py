"""What a policy says of single operators, and of figures that are sums over them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from ethosu_sdk.readers.compare import operators, verdict
from ethosu_sdk.readers.compare.metrics import Metric
from ethosu_sdk.readers.compare.policy import LOWER, Policy
from ethosu_sdk.records.compare import FigureChange, OperatorChange
from ethosu_sdk.records.profile import Profile


def judged(rows: Sequence[OperatorChange], policy: Policy) -> list[OperatorChange]:
    """Operators that differ, their figures judged as far as `policy` has rules for them."""
    return [replace(row, figures=tuple(_figure(row, part, policy) for part in row.figures)) for row in rows]


def _figure(row: OperatorChange, part: FigureChange, policy: Policy) -> FigureChange:
    rule = policy.operator_rule(row, part.name)
    if rule is None:
        return part
    return replace(part, better=rule.better, **verdict.numbers(part.before, part.after, rule))


def is_worse(rows: Sequence[OperatorChange]) -> bool:
    """Whether a figure of an operator became worse than its rule tolerates."""
    return any(part.status == verdict.REGRESSION for row in rows for part in row.figures)


def allowances(
    metrics: Mapping[str, Metric], rows: Sequence[OperatorChange], policy: Policy
) -> dict[str, int]:
    """By how much figures may grow because the operators that they are sums of may.

    A figure for which the policy has a limit of its own is judged by that alone.
    """
    found = {}
    for name, metric in metrics.items():
        part = operators.part_of(name, metric.source or "")
        if part is not None and not policy.limits(name):
            found[name] = sum(_tolerated(row, part) for row in rows)
    return {name: value for name, value in found.items() if value}


def _tolerated(row: OperatorChange, figure: str) -> int:
    """By how much the figure of an operator grew within its tolerance."""
    return sum(
        min(part.change, int(part.tolerated or 0))
        for part in row.figures
        if part.name == figure and part.better == LOWER and part.change > 0
    )


def unmatched(policy: Policy, names: Sequence[str], profiles: Sequence[Profile]) -> Iterator[tuple[str, str]]:
    """The patterns of the policy's own rules that fit nothing, with a reason: no figure of `names`, no operator of
    `profiles`."""
    for pattern, _ in policy.own_rules:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield pattern, f"no figure of these runs is called so{_nearest(pattern, names)}"
    rows = [row for profile in profiles for row in operators.named(profile)]
    for pattern in dict.fromkeys(rule.pattern for rule in policy.operators):
        if not profiles:
            yield pattern, "of these runs no operators are known: give folders with a profile"
        elif not any(operators.fits(row, pattern) for row in rows):
            known = list(dict.fromkeys(operators.pattern_of(row) for row in rows))
            yield pattern, f"it fits no operator of these runs{_nearest(pattern, known)}"


def _nearest(pattern: str, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(pattern, names, n=1, cutoff=0.5)
    return f": did you mean '{found[0]}'?" if found else ""
