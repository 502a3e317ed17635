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
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, structs

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
_EVERY = "*"
_Number = Annotated[int, Meta(ge=0, le=int(_MOST_NUMBER))] | Annotated[float, Meta(ge=0, le=_MOST_NUMBER)]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """How a figure is judged. None: an earlier rule of the policy says it."""

    better: Better | None = None
    tolerance: _Number | None = None
    tolerance_percent: _Number | None = None
    missing: Literal["fail", "warn", "ignore"] | None = None

    def with_more(self, other: Rule) -> Rule:
        """This rule, with what `other` says in place of its own."""
        return structs.replace(
            self, **{key: value for key, value in structs.asdict(other).items() if value is not None}
        )

    def tolerated(self, before: float) -> float:
        """What a figure that was `before` may be worse by."""
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
        """The rules that are not the SDK's."""
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
    return _policy(TomlSource("the SDK's own", text, _KIND.words), tomllib.loads(text), ())


def load(path: Path | None) -> Policy:
    """The policy in `path`, whose rules come after the SDK's own; None is the SDK's own. InputError when it is
    damaged, says what no policy can say, or speaks of figures that there are not: with the line."""
    if path is None:
        return default()
    source, data = toml_source.read(path, _KIND)
    return _policy(source, data, default().rules)


def _policy(source: TomlSource, data: Mapping[str, Any], before: tuple[tuple[str, Rule], ...]) -> Policy:
    file = source.convert(data, _File)
    for name in file.allow:
        if name not in dimensions.ALLOWED:
            raise source.wrong(("allow",), _not_allowed(name), suggestion(name, dimensions.ALLOWED))
    rules = tuple((pattern, _rule(source, pattern, row, before)) for pattern, row in file.metrics.items())
    digest = hashing.sha256_bytes(source.text.encode())
    of_operators = tuple(_operator_rules(source, file.operators))
    return Policy(
        source.name,
        digest,
        tuple(file.allow),
        (*before, *rules),
        of_operators,
        own=len(rules) if before else 0,
    )


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
    return source.convert(row, Rule, place)


def _operator_rules(source: TomlSource, table: Mapping[str, Mapping[str, Any]]) -> Iterator[OperatorRule]:
    """The rules of `operators`, in their order."""
    for pattern, row in table.items():
        place = ("operators", pattern)
        if _OPERATOR.fullmatch(pattern) is None or pattern.count("*") > _MOST_STARS:
            hint = "such as CONV2D, or CONV2D@features.* for those of some modules"
            raise source.wrong(place, f"'{short(pattern)}' is not a pattern of operators", hint)
        for figure, rule in row.items():
            yield OperatorRule(pattern, figure, _operator_rule(source, (*place, figure), rule))


def _operator_rule(source: TomlSource, place: tuple[str, ...], row: Any) -> Rule:
    figure = place[-1]
    if figure in Rule.__struct_fields__:
        raise source.wrong(place, f"'{figure}' must be below a figure of the operators", _EXAMPLE)
    is_pattern = _PATTERN.fullmatch(figure) is not None and figure.count("*") <= _MOST_STARS
    if not is_pattern or not any(_overlap(figure, name) for name in operators.FIGURES):
        hint = suggestion(figure, operators.FIGURES)
        raise source.wrong(place, f"operators have no figure '{short(figure)}'", hint)
    rule = source.convert(row, Rule, place)
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
