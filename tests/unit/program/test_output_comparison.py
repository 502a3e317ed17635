"""The verdict on outputs: equal bits, or a tolerance that is named."""

import numpy as np
import pytest

from ethosu_sdk.program.output_comparison import Tolerance, compare, compare_outputs
from tests.tables import each

EXACT = Tolerance()


def test_equal_bits_pass() -> None:
    value = np.array([1.0, np.nan, -0.0], np.float32)
    assert compare("x", value, value.copy(), EXACT).passed


@each(
    ("got", "want"),
    [
        (np.array([0.0], np.float32), np.array([-0.0], np.float32)),
        (np.array([1], np.int8), np.array([2], np.int8)),
        (np.array([1], np.int8), np.array([1], np.int16)),
        (np.array([1, 2], np.int8), np.array([[1, 2]], np.int8)),
        (np.array([np.nan], np.float32), np.array([1.0], np.float32)),
        (np.array([np.inf], np.float32), np.array([1.0], np.float32)),
    ],
)
def test_different_bits_fail(got: np.ndarray, want: np.ndarray) -> None:
    assert not compare("x", got, want, EXACT).passed


def test_what_a_tolerance_allows() -> None:
    want = np.array([100.0, 0.0], np.float32)
    got = np.array([101.0, 0.5], np.float32)
    assert compare("x", got, want, Tolerance(atol=0.5, rtol=0.01)).passed
    assert not compare("x", got, want, Tolerance(atol=0.4, rtol=0.01)).passed
    assert not compare("x", got, want, Tolerance(atol=0.5, rtol=0.001)).passed
    nan = np.array([np.nan, 1.0], np.float32)
    assert compare("x", nan, np.array([np.nan, 1.5], np.float32), Tolerance(atol=1)).passed
    assert not compare("x", nan, np.array([1.0, 1.5], np.float32), Tolerance(atol=1)).passed


def test_the_detail_names_count_size_and_place_and_a_missing_output_fails() -> None:
    check = compare("x", np.array([[1, 2], [3, 9]], np.int8), np.array([[1, 2], [3, 4]], np.int8), EXACT)
    differ = "1 of 4 elements differ, largest difference 5, first at [1, 1]: 9 instead of 4"
    assert check.detail == f"{differ}; allowed: no difference"
    value = np.zeros(1, np.int8)
    assert [check.passed for check in compare_outputs([value], [value, value], EXACT)] == [False]


@pytest.mark.parametrize(
    ("tolerance", "words"),
    [
        (Tolerance(), "allowed: no difference"),
        (Tolerance(atol=0.5), "allowed: 0.5"),
        (Tolerance(rtol=0.01), "allowed: 0.01 * |expected|"),
        (Tolerance(atol=0.5, rtol=0.01), "allowed: 0.5 + 0.01 * |expected|"),
    ],
)
def test_the_detail_names_what_is_allowed(tolerance: Tolerance, words: str) -> None:
    for got in (1.0, 9.0):
        check = compare("x", np.array([got], np.float32), np.array([1.0], np.float32), tolerance)
        assert check.detail.endswith(f"; {words}")
