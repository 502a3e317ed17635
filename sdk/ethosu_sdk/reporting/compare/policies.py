"""Policies: how much worse figures may become, in the whole and at operators, and what they say of two runs."""

from __future__ import annotations

import difflib
import functools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from ethosu_sdk.base import filesystem, toml_source
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.toml_source import TomlKind, TomlSource, short_word
from ethosu_sdk.records.compare import Better, MetricChange, OperatorChange
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.reporting.compare import operator_changes
from ethosu_sdk.reporting.compare.compared_records import ALLOWED_DIMENSIONS, DIMENSION_NAMES, NamedMetric

DEFAULT_POLICY = Path(__file__).with_name("default_policy.toml")
_KIND = TomlKind("a policy", most_bytes=32 << 10, most_lines=1000)
_MOST_NUMBER = 1e15
_PATTERN = re.compile(r"[\w.*:-]{1,120}")
_OPERATOR = re.compile(r"[\w.*:-]{1,120}(@[\w.*:-]{1,120})?")
_MOST_STARS = 8
_Number = Annotated[int, Meta(ge=0, le=int(_MOST_NUMBER))] | Annotated[float, Meta(ge=0, le=_MOST_NUMBER)]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """How a figure is judged. None: an earlier rule of the policy says it."""

    better: Better | None = None
    tolerance: _Number | None = None
    tolerance_percent: _Number | None = None
    missing: Literal["fail", "warn", "ignore"] | None = None

    def with_more(self, other: Rule) -> Rule:
        """This rule, with what `other` says in place of its own."""
        said = {key: value for key, value in structs.asdict(other).items() if value is not None}
        return structs.replace(self, **said)

    def tolerated(self, before: float) -> float:
        return max(self.tolerance or 0.0, (self.tolerance_percent or 0.0) / 100 * abs(before))


class _File(Struct, forbid_unknown_fields=True):
    allow: list[str] = []
    metrics: dict[str, Any] = {}
    operators: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class OperatorRule:
    """A rule for the figures that fit `figure` of the operators that fit `pattern`: ``OPERATOR`` or
    ``OPERATOR@MODULE``."""

    pattern: str
    figure: str
    rule: Rule


@dataclass(frozen=True)
class Policy:
    """Rules by the pattern of the figures that they are for, in their order, and dimensions that may differ. The last
    `own` of the rules are not the SDK's."""

    source: str
    sha256: str
    allow: tuple[str, ...]
    rules: tuple[tuple[str, Rule], ...]
    operators: tuple[OperatorRule, ...] = ()
    own: int = 0

    @property
    def own_rules(self) -> tuple[tuple[str, Rule], ...]:
        return self.rules[len(self.rules) - self.own :]

    def limits(self, name: str) -> bool:
        """Whether a rule that is not the SDK's says how much worse the figure called `name` may become."""
        said = (rule for pattern, rule in self.own_rules if fnmatchcase(name, pattern))
        return any(structs.replace(rule, missing=None) != Rule() for rule in said)

    def operator_rule(self, row: OperatorChange, figure: str) -> Rule | None:
        """What is said of a figure of an operator, a row of the record; None when nothing is."""
        fitting = [
            entry.rule
            for entry in self.operators
            if fnmatchcase(figure, entry.figure) and operator_changes.fits_pattern(row, entry.pattern)
        ]
        return functools.reduce(Rule.with_more, fitting, Rule("lower")) if fitting else None

    def rule(self, name: str) -> Rule:
        fitting = (rule for pattern, rule in self.rules if fnmatchcase(name, pattern))
        return functools.reduce(Rule.with_more, fitting, Rule())

    def allowing(self, names: Sequence[str]) -> Policy:
        """The same, and the dimensions `names` may differ. UsageError for one that there is not, or may not."""
        for name in names:
            if name not in ALLOWED_DIMENSIONS:
                raise UsageError(f"--allow: {_not_allowed(name)}", suggestion(name, ALLOWED_DIMENSIONS))
        return replace(self, allow=tuple(dict.fromkeys((*self.allow, *names))))


@functools.cache
def default_policy() -> Policy:
    text = DEFAULT_POLICY.read_text(encoding="utf-8")
    return _policy(TomlSource("the SDK's own", text, _KIND.words), tomllib.loads(text), ())


def load_policy(path: Path | None) -> Policy:
    """The policy in `path`, whose rules come after the SDK's own; None is the SDK's own. InputError when it is
    damaged, says what no policy can say, or speaks of figures that there are not: with the line."""
    if path is None:
        return default_policy()
    source, data = toml_source.read_toml(path, _KIND)
    own = default_policy()
    return _policy(source, data, own.rules).allowing(own.allow)


def _policy(source: TomlSource, data: Mapping[str, Any], before: tuple[tuple[str, Rule], ...]) -> Policy:
    file = source.convert(data, _File)
    for name in file.allow:
        if name not in ALLOWED_DIMENSIONS:
            raise source.wrong(("allow",), _not_allowed(name), suggestion(name, ALLOWED_DIMENSIONS))
    known = [name for name, _ in before if name != "*"]
    rules = []
    for pattern, row in file.metrics.items():
        place = ("metrics", pattern)
        if not _is_pattern(pattern):
            hint = "such as npu.counters.*"
            raise source.wrong(place, f"'{short_word(pattern)}' is not a pattern of names", hint)
        if before and not any(_overlap(pattern, name) for name in known):
            message = f"no figure is called '{short_word(pattern)}'"
            raise source.wrong(place, message, suggestion(pattern, known))
        rules.append((pattern, source.convert(row, Rule, place)))
    return Policy(
        source.name,
        filesystem.sha256_bytes(source.text.encode()),
        tuple(file.allow),
        (*before, *rules),
        tuple(_operator_rules(source, file.operators)),
        own=len(rules) if before else 0,
    )


def _not_allowed(name: str) -> str:
    if name in DIMENSION_NAMES:
        return f"runs that differ in {name} are never compared"
    return f"there is no dimension '{short_word(name)}'"


def _operator_rules(source: TomlSource, table: Mapping[str, Mapping[str, Any]]) -> Iterator[OperatorRule]:
    for pattern, row in table.items():
        place = ("operators", pattern)
        if _OPERATOR.fullmatch(pattern) is None or pattern.count("*") > _MOST_STARS:
            hint = "such as CONV2D, or CONV2D@features.* for those of some modules"
            raise source.wrong(place, f"'{short_word(pattern)}' is not a pattern of operators", hint)
        for figure, rule in row.items():
            yield OperatorRule(pattern, figure, _operator_rule(source, (*place, figure), rule))


def _operator_rule(source: TomlSource, place: tuple[str, ...], row: Any) -> Rule:
    figure = place[-1]
    example = '[operators."CONV2D@features.*"."cycles.*"]'
    if figure in Rule.__struct_fields__:
        raise source.wrong(place, f"'{figure}' must be below a figure of the operators", example)
    figures = operator_changes.OPERATOR_FIGURES
    if not _is_pattern(figure) or not any(_overlap(figure, name) for name in figures):
        hint = suggestion(figure, figures)
        raise source.wrong(place, f"operators have no figure '{short_word(figure)}'", hint)
    rule = source.convert(row, Rule, place)
    if rule.missing is not None:
        reason = "an operator that only one run has counts as 0 in the other"
        raise source.wrong((*place, "missing"), f"a rule for operators has no 'missing': {reason}")
    return rule


def _is_pattern(text: str) -> bool:
    return _PATTERN.fullmatch(text) is not None and text.count("*") <= _MOST_STARS


def _overlap(pattern: str, known: str) -> bool:
    """Whether some name fits both: as far as one of the two, taken for a name, fits the other."""
    return fnmatchcase(known, pattern) or fnmatchcase(pattern, known)


def metric_changes(
    before: Mapping[str, NamedMetric],
    after: Mapping[str, NamedMetric],
    policy: Policy,
    allowances: Mapping[str, int] | None = None,
) -> list[MetricChange]:
    """The figures that differ, in the order of the records; nothing for those that are the same. `allowances` are by
    how much figures may be worse beside what the policy says of them."""
    found = []
    for name, known in {**before, **after}.items():
        rule = policy.rule(name)
        assert rule.better is not None
        old, new = (side[name].value if name in side else None for side in (before, after))
        sources = [side[name].source for side in (before, after) if name in side]
        judged: dict[str, Any]
        if len(set(sources)) > 1:
            rule = structs.replace(rule, better="inform")
            judged = {**_judged_numbers(float(old or 0), float(new or 0), rule), "source_before": sources[0]}
        elif old is None or new is None:
            judged = {"status": "regression" if rule.missing == "fail" else "missing"}
        elif isinstance(old, str) or isinstance(new, str):
            judged = {"status": "regression" if rule.better == "equal" else "differs"}
        else:
            judged = _judged_numbers(old, new, rule, (allowances or {}).get(name, 0))
        if old != new and (judged["status"] != "missing" or rule.missing != "ignore"):
            judged |= {"before": old, "after": new, "better": rule.better}
            found.append(MetricChange(name=name, unit=known.unit or None, source=known.source, **judged))
    return found


def _judged_numbers(before: float, after: float, rule: Rule, allowance: int = 0) -> dict[str, Any]:
    """Change and status. A record may hold numbers whose difference no float holds: then the sign alone counts."""
    try:
        change = after - before
        percent = 100 * change / abs(before) if before else 0.0
        tolerated = rule.tolerated(before) + allowance
        is_held = math.isfinite(change)
    except OverflowError:
        is_held = False
    if not is_held:
        return {"status": _metric_status(1 if after > before else -1, 0.0, rule.better)}
    return {
        "change": change,
        **({"percent": round(percent, 4)} if before and math.isfinite(percent) else {}),
        **({"tolerated": tolerated} if tolerated and math.isfinite(tolerated) else {}),
        **({"tolerated_at_operators": allowance} if allowance else {}),
        "status": _metric_status(change, tolerated, rule.better),
    }


def _metric_status(change: float, tolerated: float, better: str | None) -> str:
    if better == "inform":
        return "differs"
    worse = {"equal": abs(change), "higher": -change}.get(str(better), change)
    if worse < 0:
        return "improved"
    return "tolerated" if worse <= tolerated else "regression"


def judged_operators(rows: Sequence[OperatorChange], policy: Policy) -> list[OperatorChange]:
    """Operators that differ, their figures judged as far as `policy` has rules for them."""
    found = []
    for row in rows:
        figures = []
        for part in row.figures:
            rule = policy.operator_rule(row, part.name)
            judged = {} if rule is None else _judged_numbers(part.before, part.after, rule)
            better = part.better if rule is None else rule.better
            figures.append(structs.replace(part, better=better, **judged))
        found.append(structs.replace(row, figures=tuple(figures)))
    return found


def allowances(
    metrics: Mapping[str, NamedMetric], rows: Sequence[OperatorChange], policy: Policy
) -> dict[str, int]:
    """By how much figures may grow because the operators that they are sums of grew within their tolerances.

    A figure for which the policy has a limit of its own is judged by that alone.
    """
    found = {}
    for name, metric in metrics.items():
        part = operator_changes.part_of_sum(name, metric.source or "")
        if part is not None and not policy.limits(name):
            found[name] = sum(
                min(figure.change, int(figure.tolerated or 0))
                for row in rows
                for figure in row.figures
                if figure.name == part and figure.better == "lower" and figure.change > 0
            )
    return {name: value for name, value in found.items() if value}


def unmatched_patterns(
    policy: Policy, names: Sequence[str], profiles: Sequence[Profile]
) -> Iterator[tuple[str, str]]:
    """The patterns of the policy's own rules that fit nothing, with a reason: no figure of `names`, no operator of
    `profiles`."""
    for pattern, _ in policy.own_rules:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield pattern, f"no figure of these runs is called so{_nearest(pattern, names)}"
    if not policy.operators:
        return
    rows = [row for profile in profiles for row in operator_changes.named_operators(profile)]
    for pattern in dict.fromkeys(rule.pattern for rule in policy.operators):
        if not profiles:
            yield pattern, "of these runs no operators are known: give folders with a profile"
        elif not any(operator_changes.fits_pattern(row, pattern) for row in rows):
            known = list(dict.fromkeys(operator_changes.pattern_of(row) for row in rows))
            yield pattern, f"it fits no operator of these runs{_nearest(pattern, known)}"


def _nearest(pattern: str, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(pattern, names, n=1, cutoff=0.5)
    return f": did you mean '{found[0]}'?" if found else ""
