"""What trials are worth: by figures that are written here."""

import math

import numpy as np
import pytest

from ethosu_sdk.analysis import change_trials
from ethosu_sdk.records import trials
from ethosu_sdk.records.advice import CandidateKind, OutputsState, TrialState
from ethosu_sdk.records.trials import Candidate, Distance, Measured, Outcome
from tests.tables import each

_EXACT = Distance(10, 0, 40.0)
_EQUAL = Distance(10, 10, math.inf)
_CHANGED = Distance(10, 3, 30.0)


def measured(
    npu: int = 1000,
    cpu: int | None = 1000,
    sram: int = 1000,
    flash: int = 1000,
    *,
    fits: bool = True,
    time_ms: float | None = None,
    calls: int = 1,
) -> Measured:
    """A program's figures."""
    return Measured(npu, cpu, time_ms, sram, flash, fits, {"aten::avg_pool2d.out": calls} if calls else {})


def outcome(
    after: Measured | None,
    sqnr_db: float = 40.0,
    *,
    name: str = "a",
    kind: CandidateKind = "program",
    keeps_results: bool = True,
    changed: Distance = _CHANGED,
) -> Outcome:
    """What came of a change."""
    candidate = Candidate(name, kind, name, keeps_results=keeps_results)
    return Outcome(candidate, after, changed, Distance(10, 0, sqnr_db), reason="" if after else "no")


@each(
    ("before", "after", "sqnr_db", "state"),
    [
        pytest.param(measured(), measured(npu=900), 40, "better", id="saves 5 %"),
        pytest.param(
            measured(), measured(npu=900, cpu=1200), 40, "worse", id="the CPU takes more than is saved"
        ),
        pytest.param(measured(), measured(npu=995), 40, "same", id="saves less than 1 %"),
        pytest.param(measured(), measured(npu=900), 12, "broken", id="saves and breaks the outputs"),
        pytest.param(measured(), measured(npu=900), 32, "better", id="saves and loses accuracy"),
        pytest.param(measured(), measured(), 47, "closer", id="one bit more"),
        pytest.param(measured(), measured(npu=1500, sram=500), 40, "smaller", id="half of the SRAM"),
        pytest.param(
            measured(), measured(npu=1500, sram=500, flash=1600), 40, "worse", id="SRAM for more flash"
        ),
        pytest.param(measured(), measured(npu=500, fits=False), 40, "worse", id="does not fit any more"),
        pytest.param(measured(fits=False), measured(npu=2000), 40, "better", id="fits, and is slower"),
        pytest.param(
            measured(fits=False), measured(npu=500, fits=False), 40, "same", id="faster, and does not fit"
        ),
        pytest.param(
            measured(cpu=None), measured(npu=500, cpu=None, calls=0), 40, "unjudged", id="other CPU calls"
        ),
        pytest.param(measured(cpu=None), measured(npu=500, cpu=None), 40, "better", id="the same CPU calls"),
        pytest.param(
            measured(time_ms=2.0), measured(npu=1, time_ms=3.0), 40, "worse", id="by the time alone"
        ),
    ],
)
def test_states(before: Measured, after: Measured, sqnr_db: float, state: TrialState) -> None:
    assert trials.trial_state(before, _EXACT, outcome(after, sqnr_db)) == state


@each(
    ("row", "state"),
    [
        (outcome(measured(), changed=_EQUAL), "equal"),
        (outcome(measured(), 39.5), "close"),
        (outcome(measured(), 39.5, keeps_results=False), "lossy"),
        (outcome(measured(), 38.5), "lossy"),
        (outcome(measured(), 19.9), "broken"),
        (outcome(measured(), -math.inf), "broken"),
    ],
)
def test_outputs(row: Outcome, state: OutputsState) -> None:
    assert trials.outputs_state(_EXACT, row) == state


def test_noise_and_infinite_elements_are_no_excuse() -> None:
    """A program of 15 dB that keeps them is as it was; one that loses more breaks."""
    exact = Distance(10, 0, 15.0)
    assert trials.outputs_state(exact, outcome(measured(), 15.0)) == "close"
    assert trials.outputs_state(exact, outcome(measured(), 10.0)) == "broken"
    own = [np.array([-np.inf, 1.0, 2.0], np.float32)]
    assert change_trials.distance_of_outputs(own, [np.zeros(3, np.float32)]).equal == 0
    assert change_trials.distance_of_outputs(own, own).equal == 3


def test_what_is_worth_combining() -> None:
    """Changes of the program that save something and cost no accuracy: no weights, no other NPU, no lossy ones."""
    fine = [outcome(measured(npu=500), name="best"), outcome(measured(npu=800), name="good")]
    others = [
        outcome(measured(npu=100), 12, name="breaks"),
        outcome(measured(npu=100), keeps_results=False, name="other values"),
        outcome(measured(npu=100), kind="weights", name="pruned"),
        outcome(measured(npu=100), kind="target", name="larger"),
        outcome(measured(npu=1500), name="slower"),
        outcome(None, name="failed"),
    ]
    found = trials.combinable(measured(), _EXACT, [*others, fine[1], fine[0]])
    assert [row.candidate.name for row in found] == ["best", "good"]
    assert trials.combinable(measured(), _EXACT, others) == []
    # 1,000 NPU and 1,000 CPU cycles: a thousandth of 2,000 is the least that counts.
    best = outcome(measured(), name="best")
    assert trials.is_better(measured(), best, outcome(measured(npu=998)))
    assert not trials.is_better(measured(), best, outcome(measured(npu=999)))
    assert not trials.is_better(measured(), best, outcome(measured(npu=500, fits=False)))
    assert not trials.is_better(measured(), best, outcome(None))


def test_changes_that_exclude_each_other() -> None:
    one = Candidate("a", "model", "", replaces=frozenset({"aten::upsample_bilinear2d.vec_out"}))
    other = Candidate("b", "model", "", replaces=frozenset({"aten::upsample_bilinear2d.vec_out"}))
    third = Candidate("c", "program", "", {"io": "int8"}, lines=("pass",))
    assert not one.fits_with(other)
    assert one.fits_with(third)
    assert not third.fits_with(Candidate("d", "program", "", {"io": "float"}))
    both = one.with_(third)
    assert (both.name, both.kind, both.parts, both.options) == ("a+c", "model", ("a", "c"), {"io": "int8"})
    assert not both.fits_with(one)


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(np.full(4, np.nan, np.float32), id="no numbers"),
        pytest.param(np.array([1, 2, 3, np.inf], np.float32), id="one without end"),
        pytest.param(np.zeros((2, 2), np.float32), id="another shape"),
    ],
)
def test_outputs_that_lose_values_are_broken(candidate: np.ndarray) -> None:
    own = [np.array([1, 2, 3, 4], np.float32)]
    changed = change_trials.distance_of_outputs(own, [candidate])
    result = Outcome(Candidate("a", "program", "a"), measured(npu=900), changed, changed)
    assert trials.trial_state(measured(), _EXACT, result) == "broken"
    assert trials.combinable(measured(), _EXACT, [result]) == []
