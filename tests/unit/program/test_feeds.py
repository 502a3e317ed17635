"""Feeds: how they are written, what they give to the next step, and what the records of steps say."""

import decimal
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import SimulationError, UsageError
from ethosu_sdk.program import feeds
from ethosu_sdk.program.feeds import ARGMAX, COPY, SAMPLE, STEP, Feed, Stepper, Steps
from ethosu_sdk.run import kept_state
from ethosu_sdk.run.sequences import StepResult, sequence_part
from tests.tables import each


def logits(index: int) -> np.ndarray:
    row = np.zeros((1, 8), np.float32)
    row[0, index] = 1
    return row


def test_given_rows_come_first_and_indices_must_fit() -> None:
    given = (
        (np.array([3]), np.array([4])),  # a prompt of two
        (np.array([5], np.int32),),  # a position
        (np.array([1.5], np.float32),),  # held
        (np.array([9], np.int16),),  # copied
    )
    wanted = feeds.parse_feeds(["argmax(output0, stop=6):input0", "step:input1", "output1:input3"])
    stepper = Stepper(Steps(9, given, wanted))
    rows = []
    for chosen in (7, 2, 6):
        rows.append([int(row[0]) if row.dtype.kind == "i" else float(row[0]) for row in stepper.inputs()])
        choices = stepper.take({0: logits(chosen), 1: np.array([10 * chosen], np.int16)})
        assert choices == ({} if chosen == 7 else {0: (chosen,)})  # the prompt goes on after the first step
    assert rows == [[3, 5, 1.5, 9], [4, 6, 1.5, 70], [2, 7, 1.5, 20]]
    assert stepper.stopped
    assert stepper.is_over
    stepper = Stepper(Steps(3, ((np.array([0], np.int8),),), feeds.parse_feeds(["argmax(output0):input0"])))
    row = np.zeros((1, 300), np.float32)
    row[0, 200] = 1
    with pytest.raises(SimulationError, match="does not hold 200"):
        stepper.take({0: row})


@each(
    ("feed", "reason"),
    [
        ("output0:input0", "the output is"),
        ("output7:input0", "no output7"),
        ("step:input9", "no input9"),
        ("argmax(output1):input0", "has 2 rows"),
        ("argmax(output0[4]):input1", "from number 4 on"),
        ("sample(output2):input1", "what its numbers stand for"),
        ("step:input2", "does not hold"),
    ],
)
def test_feeds_that_do_not_fit_are_refused(feed: str, reason: str) -> None:
    inputs = [("int64", (1, 3)), ("int64", (1, 1)), ("bool", (1,))]
    outputs = [("float32", (1, 4, 8)), ("float32", (1, 2, 8)), ("int8", (1, 8))]
    with pytest.raises(UsageError, match=reason):
        feeds.check_feed(feeds.parse_feeds([feed])[0], inputs, outputs)


# --- How feeds are written.


@each(
    ("text", "feed"),
    [
        ("output0:input1", Feed(COPY, 1)),
        ("argmax(output2):input0", Feed(ARGMAX, 0, 2)),
        (" argmax( output2[15] , stop=2/7 ) : input0 ", Feed(ARGMAX, 0, 2, 15, stops=(2, 7))),
        (
            "sample(output0, temperature=0.8, top_k=40, seed=18446744073709551615):input3",
            Feed(SAMPLE, 3, temperature=0.8, top_k=40, seed=(1 << 64) - 1),
        ),
        ("sample(output0, scale=0.05):input0", Feed(SAMPLE, 0, scale=0.05)),
        ("step:input1", Feed(STEP, 1)),
    ],
)
def test_feeds_are_read_and_written(text: str, feed: Feed) -> None:
    assert feeds.parse_feeds([text]) == (feed,)
    assert feeds.parse_feeds([str(feed)]) == (feed,)


@each(
    ("texts", "reason"),
    [
        (["output0"], "not a feed"),
        (["output0:output1"], "not a feed"),
        (["max(output0):input0"], "cannot|can be fed"),
        (["argmax(output0, top_k=3):input0"], "not a setting of argmax"),
        (["sample(output0, temperature=0):input0"], "temperature=0"),
        (["sample(output0, temperature=nan):input0"], "temperature=nan"),
        (["sample(output0, top_k=257):input0"], "top_k=257"),
        (["sample(output0, seed=-1):input0"], "seed=-1"),
        (["sample(output0, seed=1, seed=2):input0"], "twice"),
        (["argmax(output0, stop=1/2/3/4/5):input0"], "4 indices at most"),
        (["output0:input1", "step:input1"], "two feeds"),
        ([f"step:input{number}" for number in range(17)], "17 feeds"),
    ],
)
def test_what_is_no_feed_is_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        feeds.parse_feeds(texts)


# --- Indices chosen by numbers: against published values, exact arithmetic and the distribution that they draw from.

# SplitMix64 with the seed 1234567, as Rosetta Code has it ("Pseudo-random numbers/Splitmix64").
SPLITMIX = (
    *(6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431),
    16408922859458223821,
)


def test_bits_and_powers_are_the_published_and_exact_ones() -> None:
    assert tuple(feeds.random_bits(1234567, draw) for draw in range(5)) == SPLITMIX
    with decimal.localcontext(prec=50):
        two = decimal.Decimal(2)
        exact = [int(two ** (32 - two ** (bit - 16))) for bit in range(16)]
    assert list(feeds.POWERS) == exact


def test_what_is_chosen_by_size() -> None:
    assert feeds.greatest_index(np.array([-3, 7, 7, 2], np.int8)) == 1
    with pytest.raises(SimulationError, match="no number"):
        feeds.greatest_index(np.array([0, np.nan], np.float32))
    numbers = np.array([0.5, 1.0, 0.5, 0.5, 0.9], np.float32)
    shares = draws(numbers, 5.0, 3, 600)
    assert set(np.flatnonzero(shares)) == {0, 1, 4}  # of three equal ones, the one with the lowest index
    assert set(np.flatnonzero(draws(numbers, 1e-5, 0, 50))) == {1}
    factor = feeds.temperature_factor(1.0, 1.0)
    for numbers in ([np.inf, 0], [-np.inf, -np.inf]):
        with pytest.raises(SimulationError, match="infinite"):
            feeds.drawn_index(np.array(numbers, np.float32), factor, 0, 1)


def draws(numbers: np.ndarray, temperature: float, top_k: int, count: int) -> np.ndarray:
    factor = feeds.temperature_factor(temperature, 1.0)
    found = [feeds.drawn_index(numbers, factor, top_k, feeds.random_bits(9, n)) for n in range(count)]
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


# --- The counters of a run's steps, as the record has them; places of a state that is saved.

EVENTS = {7: "NPU_ACTIVE", 9: "MAC_ACTIVE"}


def test_records_of_steps_and_places_of_states(tmp_path: Path) -> None:
    steps = [StepResult(npu_cycles=50, counters={7: 40, 9: 30}), StepResult(npu_cycles=60, counters={9: 31})]
    sequence = sequence_part(steps, (), 2, None, EVENTS, "modelled")
    assert sequence.asked == 2
    assert sequence.events == ("MAC_ACTIVE",)
    assert [row.counters for row in sequence.steps] == [(30,), (31,)]
    kept_state.check_place(tmp_path / "state.npz")
    with pytest.raises(UsageError, match="is a folder"):
        kept_state.check_place(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        kept_state.check_place(tmp_path / "nowhere" / "state.npz")
