"""Indices chosen by numbers: against published values, exact arithmetic and the distribution that they draw from."""

import decimal

import numpy as np
import pytest

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.feeds import choosing

# SplitMix64 with the seed 1234567, as Rosetta Code has it ("Pseudo-random numbers/Splitmix64").
SPLITMIX = (
    *(6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431),
    16408922859458223821,
)


def test_random_bits_are_the_published_ones() -> None:
    assert tuple(choosing.random_bits(1234567, draw) for draw in range(5)) == SPLITMIX


def test_the_table_of_powers_is_exact() -> None:
    with decimal.localcontext(prec=50):
        two = decimal.Decimal(2)
        exact = [int(two ** (32 - two ** (bit - 16))) for bit in range(16)]
    assert list(choosing.POWERS) == exact


def test_the_lowest_of_equal_ones_is_the_greatest() -> None:
    assert choosing.greatest(np.array([-3, 7, 7, 2], np.int8)) == 1
    with pytest.raises(SimulationError, match="no number"):
        choosing.greatest(np.array([0, np.nan], np.float32))


def draws(numbers: np.ndarray, temperature: float, top_k: int, count: int) -> np.ndarray:
    factor = choosing.factor(temperature, 1.0)
    found = [choosing.drawn(numbers, factor, top_k, choosing.random_bits(9, n)) for n in range(count)]
    return np.bincount(found, minlength=numbers.size) / count


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_samples_follow_the_softmax(temperature: float) -> None:
    numbers = np.array([1.0, 0.2, -0.7, 2.1, 1.9, -np.inf], np.float32)
    weights = np.exp(numbers.astype(np.float64) / temperature)
    count = 4000
    wanted = weights / weights.sum()
    # Four standard deviations of a binomial share: one in 16,000 of independent draws is beyond, and these are fixed.
    bound = 4 * np.sqrt(wanted * (1 - wanted) / count)
    assert (np.abs(draws(numbers, temperature, 0, count) - wanted) <= bound).all()


def test_only_the_largest_are_drawn() -> None:
    numbers = np.array([0.5, 1.0, 0.5, 0.5, 0.9], np.float32)
    shares = draws(numbers, 5.0, 3, 600)
    assert set(np.flatnonzero(shares)) == {0, 1, 4}  # of three equal ones, the one with the lowest index
    assert set(np.flatnonzero(draws(numbers, 1e-5, 0, 50))) == {1}


def test_nothing_is_drawn_from_infinity() -> None:
    factor = choosing.factor(1.0, 1.0)
    for numbers in ([np.inf, 0], [-np.inf, -np.inf]):
        with pytest.raises(SimulationError, match="infinite"):
            choosing.drawn(np.array(numbers, np.float32), factor, 0, 1)
