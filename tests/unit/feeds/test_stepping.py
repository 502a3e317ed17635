import numpy as np
import pytest

from ethosu_sdk import feeds
from ethosu_sdk.errors import SimulationError, UsageError
from ethosu_sdk.feeds import stepping
from ethosu_sdk.feeds.stepping import Stepper, Steps


def logits(index: int) -> np.ndarray:
    row = np.zeros((1, 8), np.float32)
    row[0, index] = 1
    return row


def test_given_rows_come_first_and_then_what_is_fed() -> None:
    given = (
        (np.array([3]), np.array([4])),  # a prompt of two
        (np.array([5], np.int32),),  # a position
        (np.array([1.5], np.float32),),  # held
        (np.array([9], np.int16),),  # copied
    )
    wanted = feeds.parse(["argmax(output0, stop=6):input0", "step:input1", "output1:input3"])
    stepper = Stepper(Steps(9, given, wanted))
    rows = []
    for chosen in (7, 2, 6):
        rows.append([int(row[0]) if row.dtype.kind == "i" else float(row[0]) for row in stepper.inputs()])
        choices = stepper.take({0: logits(chosen), 1: np.array([10 * chosen], np.int16)})
        assert choices == ({} if chosen == 7 else {0: (chosen,)})  # the prompt goes on after the first step
    assert rows == [[3, 5, 1.5, 9], [4, 6, 1.5, 70], [2, 7, 1.5, 20]]
    assert stepper.stopped
    assert stepper.is_over


def test_an_index_that_the_input_does_not_hold_is_refused() -> None:
    stepper = Stepper(Steps(3, ((np.array([0], np.int8),),), feeds.parse(["argmax(output0):input0"])))
    row = np.zeros((1, 300), np.float32)
    row[0, 200] = 1
    with pytest.raises(SimulationError, match="does not hold 200"):
        stepper.take({0: row})


@pytest.mark.parametrize(
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
        stepping.check(feeds.parse([feed])[0], inputs, outputs)
