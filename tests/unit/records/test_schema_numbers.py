"""JSON has numbers without end: the rules of a record say so, and do not fail at them."""

from collections.abc import Callable
from typing import Any

import pytest

from ethosu_sdk.records import validation
from tests.records import example

HUGE = 10**399

Record = dict[str, Any]


def _start(record: Record) -> None:
    record["delegates"][0]["start_cycles"] = HUGE
    record["operations"][1]["calls"] = 2.0  # a whole number to JSON Schema


def _calls(record: Record) -> None:
    record["operations"][1]["calls"] = 1e300  # a whole number to JSON Schema, and none that an int is made of


def _gain(record: Record) -> None:
    record["advice"][0]["gains"][0]["before"] = HUGE


def _operators(record: Record) -> None:
    row = next(row for row in record["operators"] if "npu_cycles" in row)
    record["operators"].append({**row, "npu_cycles": {**row["npu_cycles"], "value": 0.5}})
    row["npu_cycles"]["value"] = HUGE


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("profile-digits_cnn", _start, "profile_adds_up: delegate 0 takes 7957 cycles, its operations 1000"),
        ("profile-digits_cnn", _calls, "/operations/1/calls: Expected `int`, got `float`"),
        ("advice-tried", _gain, "gains_are_gains: a number is too large to be judged"),
        ("run-ds_cnn", _operators, "operators_add_up: a number is too large to be judged"),
    ],
)
def test_a_rule_that_cannot_add_up_says_so(name: str, change: Callable[[Record], None], problem: str) -> None:
    record = example(f"{name}")
    assert validation.record_problems(record) == []
    change(record)
    assert any(text.startswith(problem) for text in validation.record_problems(record))
