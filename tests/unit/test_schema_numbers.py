"""JSON has numbers without end: the rules of a record say so, and do not fail at them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ethosu_sdk import schema
from tests.places import ROOT

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
HUGE = 10**399

Record = dict[str, Any]


def _start(record: Record) -> None:
    record["delegates"][0]["start_cycles"] = HUGE
    record["operations"][1]["calls"] = 2.0  # a whole number to JSON Schema


def _gain(record: Record) -> None:
    record["advice"][0]["gains"][0]["before"] = HUGE


def _operators(record: Record) -> None:
    row = next(row for row in record["operators"] if "npu_cycles" in row)
    record["operators"].append({**row, "npu_cycles": {**row["npu_cycles"], "value": 0.5}})
    row["npu_cycles"]["value"] = HUGE


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("profile-digits_cnn", _start, "profile_adds_up"),
        ("advice-digits_cnn", _gain, "gains_are_gains"),
        ("run-ds_cnn", _operators, "_operators_add_up"),
    ],
)
def test_a_rule_that_cannot_add_up_says_so(name: str, change: Callable[[Record], None], rule: str) -> None:
    record = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    assert schema.problems(record) == []
    change(record)
    assert f"{rule}: a number is too large to be judged" in schema.problems(record)
