"""Whether rounding explains a distance: cases by hand, and noise that it must and must not explain."""

import numpy as np
import pytest

from ethosu_sdk.compile.distance import distance, near
from tests.tables import each

STEP = 0.5
RNG = np.random.default_rng(7)
REFERENCE = (RNG.integers(-100, 100, (4, 250)) * STEP).astype(np.float32)


def rounded(size: int, seed: int, steps: int = 1) -> np.ndarray:
    """The reference with every element up to `steps` steps away."""
    moved = np.random.default_rng(seed).integers(-steps, steps, REFERENCE.shape, endpoint=True)
    return (REFERENCE + moved[:, :size] * STEP).astype(np.float32)


TRIALS = [rounded(250, seed, 3) for seed in range(3)]


def test_figures_of_a_case_by_hand() -> None:
    reference = np.array([3.0, -4.0, 0.0, 0.0], np.float32)
    executed = np.array([3.0, -4.0, 1.0, 0.0], np.float32)
    trials = [np.array([3.0, -3.5, 0.0, 0.0], np.float32), np.array([4.5, -4.0, 0.0, 0.0], np.float32)]
    found = distance(executed, reference, trials, STEP)
    assert (found.elements, found.equal, found.left_out, found.not_finite) == (4, 3, 0, 0)
    assert found.rms is not None
    assert found.largest is not None
    assert found.rms.executed == pytest.approx(0.5)  # sqrt(1² / 4)
    assert found.rms.rounding == pytest.approx(0.75)  # of the worse trial: sqrt(1.5² / 4)
    assert found.rms.limit == pytest.approx(np.sqrt(1.5**2 + 0.5**2))
    assert (found.largest.executed, found.largest.rounding, found.largest.limit) == (1.0, 1.5, 7.0)
    assert found.sqnr_db == pytest.approx(10 * np.log10(25 / 1))
    assert found.explained


@each("seed", range(20, 40))
def test_what_the_trials_do_is_explained(seed: int) -> None:
    assert distance(rounded(250, seed, 3), REFERENCE, TRIALS, STEP).explained


def test_what_may_differ_without_trials() -> None:
    assert distance(REFERENCE + STEP, REFERENCE, [REFERENCE], STEP).explained
    assert not distance(REFERENCE + 2 * STEP, REFERENCE, [REFERENCE], STEP).explained
    reference = REFERENCE * np.float32(0.1)
    assert distance(np.nextafter(reference, np.float32(np.inf)), reference, [reference], None).explained
    assert not distance(reference * np.float32(1.001), reference, [reference], None).explained


@each(
    "wrong",
    [
        pytest.param(np.maximum(REFERENCE, 0), id="a clamp too many"),
        pytest.param(REFERENCE * 1.2, id="another scale"),
        pytest.param(REFERENCE + 12 * STEP, id="another zero point"),
        pytest.param(np.roll(REFERENCE, 1, axis=1), id="shifted by one element"),
        pytest.param(np.zeros_like(REFERENCE), id="nothing"),
        pytest.param(np.where(np.arange(250) == 17, -REFERENCE, REFERENCE), id="one column alone"),
    ],
)
def test_faults_are_not_explained(wrong: np.ndarray) -> None:
    found = distance(wrong.astype(np.float32), REFERENCE, TRIALS, STEP)
    assert not found.explained
    assert "rounding explains" in found.detail


def test_single_wrong_elements_and_values_that_are_not_finite() -> None:
    executed = REFERENCE.copy()
    executed[2, 3] += 40 * STEP
    found = distance(executed, REFERENCE, TRIALS, STEP)
    assert found.rms is not None
    assert found.rms.executed <= found.rms.limit
    assert not found.explained
    assert "largest" in found.detail
    reference, broken = REFERENCE.copy(), REFERENCE.copy()
    reference[0, 0], reference[1, 1] = np.nan, np.inf
    assert distance(reference, reference, [reference], STEP).left_out == 2
    assert distance(REFERENCE, reference, [reference], STEP).explained  # nothing says what is right there
    broken[3, 3] = np.nan
    found = distance(broken, REFERENCE, [REFERENCE], STEP)
    assert found.not_finite == 1
    assert not found.explained
    assert distance(broken, REFERENCE, [REFERENCE, broken], STEP).explained  # rounding alone can do that


def test_integers_must_be_equal_or_as_quantised_values_a_step_away() -> None:
    values = np.arange(10)
    assert distance(values, values, [], None, exact=True).explained
    assert not distance(values + (values == 3), values, [], None, exact=True).explained
    values = np.arange(-50, 50, dtype=np.int8)
    assert distance(values + np.int8(1), values, [values], 1.0).explained
    assert not distance(values + np.int8(3), values, [values], 1.0).explained


def test_classes_may_flip_where_trials_flip_them() -> None:
    reference = np.zeros(400, np.int64)
    few, many = (np.arange(400) < 20).astype(np.int64), (np.arange(400) < 200).astype(np.int64)
    assert distance(few, reference, [reference], None).explained
    assert not distance(many, reference, [reference], None).explained
    assert distance(many, reference, [few * 0, (np.arange(400) < 60).astype(np.int64)], None).explained


def test_how_near_it_is_with_ties_rounded_up() -> None:
    values = REFERENCE.copy()
    values[0, 0] = np.nan
    dequantised_otherwise, moved = values * np.float32(1 + 2.0**-23), values.copy()
    moved[3, 3] += STEP
    assert near(dequantised_otherwise, values, STEP).equal == values.size
    found = near(moved, values, STEP)
    assert (found.equal, found.largest) == (values.size - 1, pytest.approx(STEP))
