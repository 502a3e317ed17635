"""Thresholds: how they are read, which figure each means, and that what is not known meets no limit."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.compile import evaluation
from ethosu_sdk.compile.thresholds import PairResult, parse_threshold, threshold_checks
from ethosu_sdk.program.output_comparison import Comparison, Top1
from tests.tables import each


def distance(reference: str, candidate: str, left: Sequence[float], right: Sequence[float]) -> PairResult:
    comparison = Comparison()
    comparison.add(0, np.array(left), np.array(right))
    return PairResult(reference, candidate, 0, comparison, None)


def right(candidate: str, count: int, of: int = 10) -> PairResult:
    top1 = Top1()
    for number in range(of):
        top1.add(np.array([0]), np.array([[1.0, 0.0]] if number < count else [[0.0, 1.0]]))
    return PairResult("labels", candidate, 0, None, top1)


# SQNR 20 dB and an error of 1 for the whole way, 40 dB and 0.1 for the way from quantised to executed.
DISTANCES = [
    distance("float", "executed", [10.0, 0.0], [10.0, 1.0]),
    distance("quantised", "executed", [10.0, 0.0], [10.0, 0.1]),
]
SHARES = [right("float", 9), right("quantised", 8), right("executed", 7)]


@each(
    ("option", "text", "passes"),
    [
        ("--min-sqnr", "20", True),
        ("--min-sqnr", "20.1", False),
        ("--min-sqnr", "quantised-executed=39.9", True),
        ("--min-sqnr", "quantised-executed=40.1", False),
        ("--min-cosine", "0.995", True),
        ("--min-cosine", "0.9951", False),
        ("--max-error", "1", True),
        ("--max-error", "0.99", False),
        ("--min-top1", "0.7", True),
        ("--min-top1", "0.71", False),
        ("--min-top1", "labels-float=0.9", True),
        ("--max-top1-drop", "0.2", True),
        ("--max-top1-drop", "0.19", False),
        ("--max-top1-drop", "quantised-executed=0.1", True),
        ("--max-top1-drop", "quantised-executed=0.09", False),
    ],
)
def test_a_limit_is_compared_with_its_pair(option: str, text: str, passes: bool) -> None:
    (check,) = threshold_checks([parse_threshold(option, text)], [*DISTANCES, *SHARES], {})
    assert check.passed == passes
    assert option in check.detail
    first = text.partition("-")[0] if "=" in text else {"--min-top1": "labels"}.get(option, "float")
    assert f"{first} → " in check.name


def test_without_a_float_model_the_quantised_one_is_the_reference() -> None:
    (check,) = threshold_checks(
        [parse_threshold("--min-sqnr", "30")], DISTANCES[1:], {"float": "it came quantised"}
    )
    assert check.passed
    assert "quantised → executed" in check.name
    (check,) = threshold_checks(
        [parse_threshold("--min-sqnr", "float-executed=30")], DISTANCES[1:], {"float": "it came quantised"}
    )
    assert not check.passed
    assert "it came quantised" in check.detail


def test_what_is_equal_meets_every_ratio_and_what_is_not_known_meets_none() -> None:
    equal = distance("float", "executed", [1.0], [1.0])
    assert threshold_checks([parse_threshold("--min-sqnr", "1000")], [equal], {})[0].passed
    unknown = distance("float", "executed", [1.0], [float("nan")])
    for option, limit in (("--min-sqnr", "-1000"), ("--min-cosine", "-1"), ("--max-error", "1e30")):
        (check,) = threshold_checks([parse_threshold(option, limit)], [unknown], {})
        assert not check.passed
        assert "not finite" in check.detail
    (check,) = threshold_checks([parse_threshold("--min-top1", "0")], [equal], {})
    assert not check.passed


@each(
    ("option", "text", "words"),
    [
        ("--min-top1", "95", "0 to 1"),
        ("--min-top1", "much", "takes a number"),
        ("--min-sqnr", "nan", "takes a number"),
        ("--max-error", "inf", "0 or more"),
        ("--max-error", "-1", "0 or more"),
        ("--min-sqnr", "executed-float=1", "no pair"),
        ("--min-sqnr", "labels-executed=1", "labels are classes"),
        ("--max-top1-drop", "labels-executed=0.1", "a drop needs two executions"),
    ],
)
def test_a_limit_that_makes_no_sense_is_a_usage_error(option: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_threshold(option, text)


def test_a_threshold_needs_samples(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--max-error 1 needs an evaluation"):
        evaluation.read_options(None, {"--max-error": ["1"], "--min-sqnr": None})
    assert evaluation.read_options(None, {"--max-error": None}) is None
    np.savez(tmp_path / "f.npz", input0=np.zeros(3))
    options = evaluation.read_options(tmp_path / "f.npz", {"--min-top1": ["0.9"]})
    with (
        pytest.raises(InputError, match="needs labels or expected outputs"),
        evaluation.prepared_evaluation(options, tmp_path / "out", evaluation.Reporter()),
    ):
        pass
    assert not (tmp_path / "out").exists()
