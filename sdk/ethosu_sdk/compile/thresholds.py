"""The thresholds of an evaluation: read from the command line, compared with the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile.compile_facts import FLOAT, QUANTISED
from ethosu_sdk.program.output_comparison import Check, Comparison, Top1

EXECUTED = "executed"
LABELS, EXPECTED = "labels", "expected"
EXECUTIONS = (FLOAT, QUANTISED, EXECUTED)
TRUTHS = (LABELS, EXPECTED)

# Reference and candidate, in the order in which they are reported.
PAIRS = (
    (FLOAT, QUANTISED),
    (QUANTISED, EXECUTED),
    (FLOAT, EXECUTED),
    *((truth, execution) for truth in TRUTHS for execution in EXECUTIONS),
)
_WORDS = {"inf": "infinite", "-inf": "minus infinity", "nan": "not known"}
TOP1, TOP1_DROP, SQNR, COSINE, MAX_ERROR = "top1", "top1_drop", "sqnr_db", "cosine", "max_abs_error"


@dataclass(frozen=True)
class PairResult:
    """The distance of one pair at one output. `comparison` is None for labels, `top1` where there are no class
    scores; with labels, `top1` counts right answers, else equal ones."""

    reference: str
    candidate: str
    output: int
    comparison: Comparison | None
    top1: Top1 | None

    @property
    def pair(self) -> tuple[str, str]:
        return self.reference, self.candidate

    def figure(self, name: str) -> tuple[float, str] | None:
        """The figure `name` and, when it is no finite number, why; None when the pair has no such figure."""
        if name == TOP1:
            return None if self.top1 is None else (self.top1.share, self.top1.reason)
        if self.comparison is None:
            return None
        value: float = getattr(self.comparison, name)
        return value, "" if math.isfinite(value) else self.comparison.reason(name)


@dataclass(frozen=True)
class ThresholdOption:
    """An option that sets a threshold: the figure, its words and unit, whether it must be at least the limit, and the
    limits that make sense."""

    name: str
    figure: str
    words: str
    unit: str
    at_least: bool
    lowest: float
    highest: float


THRESHOLD_OPTIONS = {
    row.name: row
    for row in (
        ThresholdOption("--min-top1", TOP1, "top-1", "", True, 0.0, 1.0),
        ThresholdOption("--max-top1-drop", TOP1_DROP, "drop of top-1", "", False, 0.0, 1.0),
        ThresholdOption("--min-sqnr", SQNR, "SQNR", " dB", True, -1000.0, 1000.0),
        ThresholdOption("--min-cosine", COSINE, "cosine similarity", "", True, -1.0, 1.0),
        ThresholdOption("--max-error", MAX_ERROR, "largest absolute error", "", False, 0.0, math.inf),
    )
}


@dataclass(frozen=True)
class Threshold:
    """A limit; `pair` None means the default pair of the option."""

    option: ThresholdOption
    pair: tuple[str, str] | None
    limit: float
    text: str  # as given


def parse_threshold(name: str, text: str) -> Threshold:
    """Read ``LIMIT`` or ``REFERENCE-CANDIDATE=LIMIT`` of the option `name`. UsageError when it is neither."""
    option = THRESHOLD_OPTIONS[name]
    words, equals, number = text.rpartition("=")
    pair = _pair(name, words) if equals else None
    if pair is not None and option.figure not in (TOP1, TOP1_DROP) and pair[0] == LABELS:
        raise UsageError(f"{name} {text}: labels are classes and have no {option.words}")
    if pair is not None and option.figure == TOP1_DROP and pair[0] in TRUTHS:
        raise UsageError(f"{name} {text}: a drop needs two executions", "such as float-executed")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not option.lowest <= limit <= option.highest or math.isinf(limit):
        most = f"{option.lowest:g} to {option.highest:g}" if math.isfinite(option.highest) else "0 or more"
        raise UsageError(
            f"{name} takes a number, {most}, not '{number}'", f"{name} [REFERENCE-CANDIDATE=]NUMBER"
        )
    return Threshold(option, pair, limit, f"{name} {text}")


def _pair(name: str, words: str) -> tuple[str, str]:
    known = {"-".join(pair): pair for pair in PAIRS}
    if words not in known:
        raise UsageError(f"{name}: there is no pair '{words}'", suggestion(words, list(known)))
    return known[words]


def threshold_checks(
    thresholds: Sequence[Threshold], results: Sequence[PairResult], missing: Mapping[str, str]
) -> list[Check]:
    """A check for each threshold and output that it speaks of. A figure that is not known meets no limit."""
    checks = []
    for threshold in thresholds:
        rows = _rows(threshold, results)
        if not rows:
            pair = threshold.pair or ("", "")
            reason = next((missing[name] for name in pair if name in missing), "no output has this figure")
            checks.append(Check(threshold.text, False, f"not known: {reason}"))
        for where, (value, why) in rows:
            checks.append(_check(threshold, where, value, why))
    return checks


def _rows(threshold: Threshold, results: Sequence[PairResult]) -> list[tuple[str, tuple[float, str]]]:
    figure = threshold.option.figure
    if figure == TOP1_DROP:
        return _drops(threshold, results)
    found = []
    for row in results:
        value = row.figure(figure)
        reference = _truth(row.output, results) if figure == TOP1 else _first(results)
        if value is not None and row.pair == (threshold.pair or (reference, EXECUTED)):
            found.append((f"{row.reference} → {row.candidate}, output {row.output}", value))
    return found


def _first(results: Sequence[PairResult]) -> str:
    """What the execution is compared with by default: the float model, or what there is."""
    return FLOAT if any(row.pair == (FLOAT, EXECUTED) for row in results) else QUANTISED


def _truth(output: int, results: Sequence[PairResult]) -> str:
    labelled = any(row.output == output and row.reference == LABELS for row in results)
    return LABELS if labelled else EXPECTED


def _drops(threshold: Threshold, results: Sequence[PairResult]) -> list[tuple[str, tuple[float, str]]]:
    before, after = threshold.pair or (_first(results), EXECUTED)
    found = []
    for output in sorted({row.output for row in results}):
        truth = _truth(output, results)
        shares = {
            row.candidate: row.top1 for row in results if row.output == output and row.reference == truth
        }
        old, new = shares.get(before), shares.get(after)
        if old is not None and new is not None:
            reason = old.reason if math.isnan(old.share) else new.reason
            found.append(
                (f"{before} → {after} against {truth}, output {output}", (old.share - new.share, reason))
            )
    return found


def _check(threshold: Threshold, where: str, value: float, why: str) -> Check:
    option = threshold.option
    # The limit is a decimal fraction and a drop a difference of two: equal ones may differ in the last bit.
    slack = 1e-12 if option.figure == TOP1_DROP else 0.0
    passed = value >= threshold.limit if option.at_least else value <= threshold.limit + slack
    shown = f"{value:.6g}{option.unit}" if math.isfinite(value) else f"{_WORDS[str(value)]} ({why})"
    bound = "at least" if option.at_least else "at most"
    return Check(
        f"{option.words}, {where}",
        passed,
        f"{shown}, {bound} {threshold.limit:g}{option.unit} ({option.name})",
    )
