"""`--outputs last` with `--expect`: a wrong step that the board did not send is found by its CRC, or said not to be
judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import valid

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
STEPS, WRONG = 100, 50
BOARD, HOST = ("--simulator", "qemu", "--resident"), ("--simulator", "host")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Inputs of the counter for 100 steps, what it gives, and that with one wrong step."""
    np.savez(tmp_path / "in.npz", input0=np.arange(2 * STEPS, dtype=np.float32).reshape(STEPS, 2))
    sdk_ok(*run_of("whole"), *HOST, cwd=tmp_path)
    right = np.load(tmp_path / "whole" / "outputs.npz")["output0"]
    wrong = right.copy()
    wrong[WRONG] += 0.25
    np.savez(tmp_path / "right.npz", output0=right)
    np.savez(tmp_path / "wrong.npz", output0=wrong)
    return tmp_path


def run_of(folder: str) -> tuple[str | Path, ...]:
    return ("run", GOLDEN_PTE / "counter.pte", "--inputs", "in.npz", "-o", folder)


def last(place: Path, expected: str, *options: str) -> Outcome:
    words = (*run_of("out"), "--outputs", "last", "--expect", expected, *options)
    return sdk(*words, cwd=place, env={"COLUMNS": "400"})


@pytest.mark.parametrize("side", [BOARD, HOST], ids=["board", "host"])
def test_every_step_is_judged(side: tuple[str, ...], place: Path) -> None:
    outcome = last(place, "wrong.npz", *side)
    assert outcome.code == 7, outcome.err
    assert "step 50 of 100 is the first beyond the tolerance: the CRC-32 of its bytes is not" in outcome.err
    sequence = valid(place / "out" / "run.json")["sequence"]
    assert sequence["first_beyond"] == WRONG
    assert [row["step"] for row in sequence["steps"] if row["status"] == "fail"] == [WRONG]
    outcome = last(place, "right.npz", *side)
    assert outcome.code == 0, outcome.err
    (check,) = [
        row for row in valid(place / "out" / "run.json")["verdict"]["checks"] if "expected" in row["name"]
    ]
    assert "step 99, the last, of 100; 99 others by the CRC-32 of their bytes" in check["detail"]
    assert len(np.load(place / "out" / "outputs.npz")["output0"]) == 1


def test_what_cannot_be_judged_stands_in_the_first_line(place: Path) -> None:
    outcome = last(place, "wrong.npz", *HOST, "--atol", "1")
    assert outcome.code == 0, outcome.err
    first = (outcome.out + outcome.err).strip().splitlines()[0]
    assert "of 100 steps, 99 steps alone were judged" in " ".join(first.split())
    sequence = valid(place / "out" / "run.json")["sequence"]
    assert [row["step"] for row in sequence["steps"] if "status" not in row] == [WRONG]


def test_an_expectation_that_is_shorter_is_refused(place: Path) -> None:
    right = np.load(place / "right.npz")["output0"]
    np.savez(place / "short.npz", output0=right[:20])
    for options in (HOST, (*HOST, "--growth", "1", "--atol", "1")):
        outcome = last(place, "short.npz", *options)
        assert outcome.code == 3, outcome.err
        assert "holds outputs of 20 inferences, but the run has 100" in outcome.err
