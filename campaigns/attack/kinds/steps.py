"""Sequences with a wrong step in what is expected, or too few: found on both sides, whichever steps are sent."""

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from campaigns.attack.case import Context, Kind, Probe
from campaigns.attack.kinds.bounds import SIDES
from ethosu_sdk import api
from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.program import pte
from ethosu_sdk.run.options import ALL_STEPS, LAST_STEP
from tests.pte_files import golden

_NAME = "counter"  # adds each input to its state, and gives that
_MOST = 40
_DIFFERENCE = 3.0


def _probe(context: Context, choice: random.Random) -> Probe:
    count, sent = choice.randint(2, _MOST), choice.choice((ALL_STEPS, LAST_STEP, LAST_STEP))
    given = [[choice.randint(-9, 9), choice.randint(-9, 9)] for _ in range(count)]
    wrong = choice.choice((None, choice.randrange(count), count - 1))
    atol, due = choice.choice((0.0, 0.0, 1.0, 5.0)), choice.choice((count, count, count, count - 1))
    side = choice.choice(SIDES)

    def call(folder: Path) -> None:
        inputs = np.array(given, np.float32)
        outputs = (np.cumsum(inputs, axis=0, dtype=np.float32) + _begins_with())[:due]
        if wrong is not None and wrong < due:
            outputs[wrong, 0] += _DIFFERENCE
        npz.write_npz(folder / "in.npz", {"input0": inputs})
        npz.write_npz(folder / "want.npz", {"output0": outputs})
        try:
            record = api.run(
                folder / "given.pte",
                folder / "in.npz",
                expect=folder / "want.npz",
                outputs=sent,
                atol=atol,
                simulator=side,
                resident=side != SIDES[0],
                out=folder / "out",
            ).record
        except VerdictError:
            _check(wrong is not None and atol < _DIFFERENCE, "a right sequence failed")
            raise
        except InputError:
            _check(due < count, "a whole expectation is refused")
            raise
        _check(due == count, "an expectation that is too short passed")
        steps = record["sequence"]["steps"]
        unjudged = [row["step"] for row in steps if "status" not in row]
        unsent = sent == LAST_STEP and wrong is not None and wrong < count - 1
        _check(wrong is None or atol >= _DIFFERENCE or (unsent and atol > 0), "a wrong step passed")
        _check(unjudged == ([wrong] if unsent and atol else []), f"steps {unjudged} are not judged")

    how = f"{count} steps on {side}, sent: {sent}, wrong: {wrong}, expected: {due}, atol: {atol:g}"
    return Probe(how, {"given.pte": golden(_NAME)}, call)


def _begins_with() -> NDArray[np.float32]:
    (state,) = pte.parse(golden(_NAME)).plan().state_tensors()
    assert state.data is not None
    return np.frombuffer(state.data, np.float32)


def _check(holds: bool, text: str) -> None:
    if not holds:
        raise AssertionError(text)


KIND = Kind("steps", probe=_probe)
