"""The figures of an evaluation against SciPy, scikit-learn and formulas written differently."""

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial import distance
from sklearn import metrics

from ethosu_sdk.program.output_comparison import HISTOGRAM_LSB, Comparison, Top1, predictions
from tests.tables import each

pytestmark = pytest.mark.torch  # scikit-learn and SciPy come with the `compile` extra

Array = npt.NDArray[Any]
VALUES = st.floats(-1e4, 1e4, width=32)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Array, Array]:
    """Reference and candidate, float32 [samples, size]; some of their elements are equal."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 12)))
    arrays = hnp.arrays(np.float32, shape, elements=VALUES)
    reference, candidate = draw(arrays), draw(arrays)
    return reference, np.where(draw(hnp.arrays(np.bool_, shape)), reference, candidate)


def compared(reference: Array, candidate: Array, lsb: float | None = None) -> Comparison:
    """Sample by sample, as an evaluation does it."""
    comparison = Comparison(lsb)
    for index, (left, right) in enumerate(zip(reference, candidate, strict=True)):
        comparison.add(index, left, right)
    return comparison


@given(pairs())
def test_distances_are_those_of_all_elements_at_once(pair: tuple[Array, Array]) -> None:
    reference, candidate = pair
    found = compared(reference, candidate)
    exact = [array.astype(np.longdouble).ravel() for array in pair]
    noise = np.linalg.norm((exact[1] - exact[0]).astype(np.float64))
    assert found.elements == reference.size
    assert found.equal == sum(left == right for left, right in zip(*exact, strict=True))
    assert found.max_abs_error == pytest.approx(metrics.max_error(*exact))
    worst = np.abs(exact[1] - exact[0]).reshape(reference.shape).max(axis=1)
    assert worst[found.max_error_sample] == worst.max()
    assume(noise > 1e-15 and np.linalg.norm(reference) > 1e-15 and np.linalg.norm(candidate) > 1e-15)
    ratio = np.linalg.norm(exact[0].astype(np.float64)) / noise
    assert 10 ** (found.sqnr_db / 20) == pytest.approx(ratio, rel=1e-9)
    assert found.cosine == pytest.approx(
        1 - distance.cosine(*(a.astype(np.float64) for a in exact)), abs=1e-9
    )


@given(pairs(), st.floats(1e-3, 1e3))
def test_scaling_both_sides_changes_neither_ratio_nor_angle(pair: tuple[Array, Array], factor: float) -> None:
    wide = [array.astype(np.float64) for array in pair]
    plain, scaled = compared(*wide), compared(*(array * factor for array in wide))
    assume(plain.max_abs_error > 1e-6 and math.isfinite(plain.sqnr_db) and not math.isnan(plain.cosine))
    assert scaled.sqnr_db == pytest.approx(plain.sqnr_db, abs=1e-6)
    assert scaled.cosine == pytest.approx(plain.cosine, abs=1e-9)
    assert scaled.max_abs_error == pytest.approx(plain.max_abs_error * factor)


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=st.integers(-40, 40)),
    st.sampled_from([2.0**-12, 0.0173491, 0.25, 3.0]),
)
def test_histogram_counts_whole_steps(steps: Array, lsb: float) -> None:
    reference = np.linspace(-1, 1, steps.size).reshape(steps.shape)
    found = compared(reference, reference + steps * lsb, lsb).histogram
    limit = HISTOGRAM_LSB + 1
    assert found == Counter(max(-limit, min(limit, int(step))) for step in steps.ravel())


def test_equal_values_and_scores_that_are_no_numbers() -> None:
    values = np.array([[1.0, -2.0, 3.5]], np.float32)
    found = compared(values, values.copy(), 0.5)
    assert (found.sqnr_db, found.max_abs_error, found.equal) == (math.inf, 0.0, 3)
    assert found.cosine == pytest.approx(1.0)
    assert "equal" in found.reason("sqnr_db")
    assert found.histogram == {0: 3}
    top1 = Top1()
    top1.add(np.array([0]), np.array([[np.nan, 1.0]]))
    assert math.isnan(top1.share)
    assert "not a number" in top1.reason


@pytest.mark.parametrize("other", [0.0, 1.0])
def test_a_reference_of_zeros(other: float) -> None:
    found = compared(np.zeros((2, 3)), np.full((2, 3), other))
    assert found.sqnr_db == (-math.inf if other else math.inf)
    assert math.isnan(found.cosine)
    assert "reference is zero" in found.reason("cosine")
    assert "candidate is zero" in compared(np.ones((1, 3)), np.zeros((1, 3))).reason("cosine")


@each("bad", [np.nan, np.inf, -np.inf])
@each("side", [0, 1])
def test_a_value_that_is_not_finite_spoils_every_figure(bad: float, side: int) -> None:
    pair = [np.ones((3, 2)), np.ones((3, 2))]
    pair[side][1, 0] = bad
    found = compared(*pair, lsb=0.1)
    assert all(map(math.isnan, (found.sqnr_db, found.cosine, found.max_abs_error)))
    assert found.histogram is None
    assert ("reference", "candidate")[side] in found.reason("cosine")


def test_numbers_that_cannot_be_squared_and_those_that_are_integers() -> None:
    found = compared(np.full((1, 2), 1e200), np.full((1, 2), 2e200))
    assert math.isnan(found.sqnr_db)
    assert "too large" in found.reason("sqnr_db")
    found = compared(np.array([[-(2**31), 5]], np.int32), np.array([[2**31 - 1, 5]], np.int32))
    assert found.max_abs_error == 2**32 - 1
    assert compared(np.array([[True, False]]), np.array([[True, True]])).max_abs_error == 1


@given(st.data())
def test_top1_is_scikit_learns_accuracy(data: st.DataObject) -> None:
    samples, batch, classes = (data.draw(st.integers(1, 5)) for _ in range(3))
    # Few values, so that equal scores are frequent.
    scores = data.draw(hnp.arrays(np.float32, (samples, batch, classes), elements=st.integers(-2, 2)))
    labels = data.draw(hnp.arrays(np.int64, (samples, batch), elements=st.integers(0, classes - 1)))
    top1 = Top1()
    for wanted, row in zip(labels, scores, strict=True):
        top1.add(wanted, row)
    flat = scores.reshape(-1, classes)
    chosen = [max(range(classes), key=lambda index, row=row: (row[index], -index)) for row in flat]  # type: ignore[misc]
    assert top1.share == pytest.approx(metrics.accuracy_score(labels.ravel(), chosen))
    assert top1.total == labels.size
    assert top1.ties == sum(sorted(row)[-2:].count(max(row)) > 1 for row in flat.tolist())
    assert predictions(flat).tolist() == chosen
