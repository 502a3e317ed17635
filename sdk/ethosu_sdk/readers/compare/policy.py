"""Policies: which figures may become how much worse, in the whole and at single operators, and in what two runs may
differ. A TOML file, hostile as any."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import hashing, toml_source
from ethosu_sdk.files.toml_source import Kind, TomlSource, short
from ethosu_sdk.readers.compare import dimensions, operators
from ethosu_sdk.records.compare import Better, OperatorChange
from ethosu_sdk.targets import suggestion

DEFAULT = Path(__file__).with_name("default_policy.toml")
LOWER: Final = "lower"
HIGHER: Final = "higher"
EQUAL: Final = "equal"
INFORM: Final = "inform"
FAIL, WARN, IGNORE = "fail", "warn", "ignore"
_KIND = Kind("a policy", most_bytes=32 << 10, most_lines=1000)
_MOST_NUMBER = 1e15
_PATTERN = re.compile(r"[\w.*:-]{1,120}")
_OPERATOR = re.compile(r"[\w.*:-]{1,120}(@[\w.*:-]{1,120})?")
_MOST_STARS = 8
_EXAMPLE = '[operators."CONV2D@features.*"."cycles.*"]'
_WORDS = {"better": (LOWER, HIGHER, EQUAL, INFORM), "missing": (FAIL, WARN, IGNORE)}
_NUMBERS = ("tolerance", "tolerance_percent")
_EVERY = "*"
_TABLES = ("allow", "metrics", "operators")


@dataclass(frozen=True)
class Rule:
    """How a figure is judged. None: an earlier rule of the policy says it."""

    better: Better | None = None
    tolerance: float | None = None
    tolerance_percent: float | None = None
    missing: str | None = None

    def with_more(self, other: Rule) -> Rule:
        """This rule, with what `other` says in place of its own."""
        return replace(self, **{key: value for key, value in vars(other).items() if value is not None})

    def tolerated(self, before: float) -> float:
        """What a figure that was `before` may be worse by."""
        return max(self.tolerance or 0.0, (self.tolerance_percent or 0.0) / 100 * abs(before))


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
        """The rules that are not the SDK's."""
        return self.rules[len(self.rules) - self.own :]

    def limits(self, name: str) -> bool:
        """Whether a rule that is not the SDK's says how much worse the figure called `name` may become."""
        said = (rule for pattern, rule in self.own_rules if fnmatchcase(name, pattern))
        return any(replace(rule, missing=None) != Rule() for rule in said)

    def operator_rule(self, row: OperatorChange, figure: str) -> Rule | None:
        """What is said of a figure of an operator, a row of the record; None when nothing is."""
        fitting = [
            entry.rule
            for entry in self.operators
            if fnmatchcase(figure, entry.figure) and operators.fits(row, entry.pattern)
        ]
        return functools.reduce(Rule.with_more, fitting, Rule(LOWER)) if fitting else None

    def rule(self, name: str) -> Rule:
        """What is said of the figure called `name`."""
        found = Rule()
        for pattern, rule in self.rules:
            if fnmatchcase(name, pattern):
                found = found.with_more(rule)
        return found

    def allowing(self, names: Sequence[str]) -> Policy:
        """The same, and the dimensions `names` may differ. UsageError for one that there is not, or may not."""
        for name in names:
            if name not in dimensions.ALLOWED:
                raise UsageError(f"--allow: {_not_allowed(name)}", suggestion(name, dimensions.ALLOWED))
        return replace(self, allow=tuple(dict.fromkeys((*self.allow, *names))))


@functools.cache
def default() -> Policy:
    """The policy that comes with the package."""
    text = DEFAULT.read_text(encoding="utf-8")
    return _policy(TomlSource("the SDK's own", text), tomllib.loads(text), ())


def load(path: Path | None) -> Policy:
    """The policy in `path`, whose rules come after the SDK's own; None is the SDK's own. InputError when it is
    damaged, says what no policy can say, or speaks of figures that there are not: with the line."""
    if path is None:
        return default()
    source, data = toml_source.read(path, _KIND)
    return _policy(source, data, default().rules)


def _policy(source: TomlSource, data: Mapping[str, Any], before: tuple[tuple[str, Rule], ...]) -> Policy:
    for key in data:
        if key not in _TABLES:
            raise source.wrong((key,), f"a policy has no '{short(key)}'", suggestion(key, _TABLES))
    metrics = data.get("metrics", {})
    if not isinstance(metrics, dict):
        raise source.wrong(("metrics",), "metrics must be a table of rules", '[metrics."npu.cycles"]')
    rules = tuple((pattern, _rule(source, pattern, row, before)) for pattern, row in metrics.items())
    digest = hashing.sha256_bytes(source.text.encode())
    allow = tuple(_allow(source, data.get("allow", [])))
    of_operators = tuple(_operator_rules(source, data.get("operators", {})))
    return Policy(
        source.name, digest, allow, (*before, *rules), of_operators, own=len(rules) if before else 0
    )


def _allow(source: TomlSource, names: Any) -> Iterator[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise source.wrong(("allow",), "allow must be a list of names", 'allow = ["model", "versions"]')
    for name in names:
        if name not in dimensions.ALLOWED:
            raise source.wrong(("allow",), _not_allowed(name), suggestion(name, dimensions.ALLOWED))
        yield name


def _not_allowed(name: str) -> str:
    if name in dimensions.NAMES:
        return f"runs that differ in {name} are never compared"
    return f"there is no dimension '{short(name)}'"


def _rule(source: TomlSource, pattern: str, row: Any, before: Sequence[tuple[str, Rule]]) -> Rule:
    place = ("metrics", pattern)
    if _PATTERN.fullmatch(pattern) is None or pattern.count("*") > _MOST_STARS:
        raise source.wrong(place, f"'{short(pattern)}' is not a pattern of names", "such as npu.counters.*")
    known = [name for name, _ in before if name != _EVERY]
    if before and not any(_overlap(pattern, name) for name in known):
        raise source.wrong(place, f"no figure is called '{short(pattern)}'", suggestion(pattern, known))
    return _read(source, place, row, f'[metrics."{pattern}"]')


def _read(source: TomlSource, place: tuple[str, ...], row: Any, example: str) -> Rule:
    """The rule at `place`."""
    if not isinstance(row, dict):
        raise source.wrong(place, f"'{short(place[-1])}' is not a table", example)
    for key, value in row.items():
        _check_member(source, (*place, key), value)
    return Rule(**row)


def _operator_rules(source: TomlSource, table: Any) -> Iterator[OperatorRule]:
    """The rules of `operators`, in their order."""
    if not isinstance(table, dict):
        raise source.wrong(("operators",), "operators must be a table of rules", _EXAMPLE)
    for pattern, row in table.items():
        place = ("operators", pattern)
        if _OPERATOR.fullmatch(pattern) is None or pattern.count("*") > _MOST_STARS:
            hint = "such as CONV2D, or CONV2D@features.* for those of some modules"
            raise source.wrong(place, f"'{short(pattern)}' is not a pattern of operators", hint)
        if not isinstance(row, dict):
            raise source.wrong(place, f"'{short(pattern)}' is not a table", _EXAMPLE)
        for figure, rule in row.items():
            yield OperatorRule(pattern, figure, _operator_rule(source, (*place, figure), rule))


def _operator_rule(source: TomlSource, place: tuple[str, ...], row: Any) -> Rule:
    figure = place[-1]
    if figure in (*_WORDS, *_NUMBERS):
        raise source.wrong(place, f"'{figure}' must be below a figure of the operators", _EXAMPLE)
    is_pattern = _PATTERN.fullmatch(figure) is not None and figure.count("*") <= _MOST_STARS
    if not is_pattern or not any(_overlap(figure, name) for name in operators.FIGURES):
        hint = suggestion(figure, operators.FIGURES)
        raise source.wrong(place, f"operators have no figure '{short(figure)}'", hint)
    rule = _read(source, place, row, _EXAMPLE)
    if rule.missing is not None:
        message = (
            "a rule for operators has no 'missing': an operator that only one run has counts as 0 "
            "in the other"
        )
        raise source.wrong((*place, "missing"), message)
    return rule


def _overlap(pattern: str, known: str) -> bool:
    """Whether some name fits both: as far as one of the two, taken for a name, fits the other."""
    return fnmatchcase(known, pattern) or fnmatchcase(pattern, known)


def _check_member(source: TomlSource, place: tuple[str, ...], value: Any) -> None:
    key = place[-1]
    if key in _WORDS:
        if value not in _WORDS[key]:
            words = short(value) if isinstance(value, str) else type(value).__name__
            raise source.wrong(place, f"{key} cannot be '{words}'", suggestion(words, _WORDS[key]))
    elif key in _NUMBERS:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MOST_NUMBER:  # no NaN and no infinity is there
            raise source.wrong(place, f"{key} must be a number, at least 0 and at most {_MOST_NUMBER:g}")
    else:
        raise source.wrong(place, f"a rule has no '{short(key)}'", suggestion(key, (*_WORDS, *_NUMBERS)))
