"""Two sets of figures, and what a policy says of the difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from ethosu_sdk.readers.compare.metrics import Metric
from ethosu_sdk.readers.compare.policy import EQUAL, FAIL, HIGHER, IGNORE, INFORM, Policy, Rule
from ethosu_sdk.records.compare import MetricChange

REGRESSION: Final = "regression"
IMPROVED: Final = "improved"
TOLERATED: Final = "tolerated"
DIFFERS: Final = "differs"
MISSING: Final = "missing"
_NONE: Mapping[str, int] = {}


def rows(
    before: Mapping[str, Metric],
    after: Mapping[str, Metric],
    policy: Policy,
    allowances: Mapping[str, int] = _NONE,
) -> list[MetricChange]:
    """The figures that differ, in the order of the records; nothing for those that are the same. `allowances` are by
    how much figures may be worse beside what the policy says of them."""
    names = dict.fromkeys((*before, *after))
    return [
        row
        for name in names
        for row in _row(before.get(name), after.get(name), policy.rule(name), allowances.get(name, 0))
    ]


def _row(old: Metric | None, new: Metric | None, rule: Rule, allowance: int) -> Iterator[MetricChange]:
    known = new or old
    if known is None or (old is not None and new is not None and old.value == new.value):
        return
    assert rule.better is not None
    row = MetricChange(
        name=known.name,
        unit=known.unit or None,
        source=known.source,
        before=old.value if old is not None else None,
        after=new.value if new is not None else None,
        better=rule.better,
        status=DIFFERS,
    )
    if old is None or new is None:
        if rule.missing != IGNORE:
            yield replace(row, status=REGRESSION if rule.missing == FAIL else MISSING)
    elif isinstance(old.value, str) or isinstance(new.value, str):
        yield replace(row, status=REGRESSION if rule.better == EQUAL else DIFFERS)
    else:
        yield replace(row, **numbers(old.value, new.value, rule, allowance))


def numbers(before: float, after: float, rule: Rule, allowance: int = 0) -> dict[str, Any]:
    """Change and status. A record may hold numbers whose difference no float holds: then the sign alone counts."""
    try:
        change = after - before
        percent = 100 * change / abs(before) if before else 0.0
        tolerated = rule.tolerated(before) + allowance
        is_held = math.isfinite(change)
    except OverflowError:
        is_held = False
    if not is_held:
        return {"status": _status(1 if after > before else -1, 0.0, rule.better)}
    return {
        "change": change,
        **({"percent": round(percent, 4)} if before and math.isfinite(percent) else {}),
        **({"tolerated": tolerated} if tolerated and math.isfinite(tolerated) else {}),
        **({"tolerated_at_operators": allowance} if allowance else {}),
        "status": _status(change, tolerated, rule.better),
    }


def _status(change: float, tolerated: float, better: str | None) -> str:
    if better == INFORM:
        return DIFFERS
    worse = {EQUAL: abs(change), HIGHER: -change}.get(str(better), change)
    if worse < 0:
        return IMPROVED
    return TOLERATED if worse <= tolerated else REGRESSION
