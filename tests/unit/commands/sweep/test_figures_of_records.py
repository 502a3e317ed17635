"""A cell's figures out of its records."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ethosu_sdk.sweep import rows
from tests.places import ROOT

OUTPUT = {"elements": 4, "equal": 4}
NEAR = {"elements": 4, "equal": 1, "sqnr_db": 30.0}
UNKNOWN = {"elements": 4, "equal": 1}  # integers, whose differences mean nothing


def compiled(**members: Any) -> dict[str, Any]:
    path = ROOT / "schemas" / "examples" / "valid" / "compile-add.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return {**record, "delegation": [], **members}


@pytest.mark.parametrize(
    ("outputs", "worst"),
    [
        ([OUTPUT], math.inf),
        ([OUTPUT, NEAR], 30.0),
        ([UNKNOWN], None),
        ([UNKNOWN, OUTPUT], math.inf),
        ([], None),
    ],
)
def test_equal_outputs_have_no_noise(outputs: list[dict[str, Any]], worst: float | None) -> None:
    found = rows.figures(compiled(check={"status": "pass", "outputs": outputs}), None)
    assert found["check_sqnr_db"] == worst
    pairs = [{"reference": "float", "candidate": "executed", **part} for part in outputs]
    assert rows.figures(compiled(accuracy={"pairs": pairs}), None)["sqnr_db"] == worst


def test_infinite_figures_come_back_from_a_record() -> None:
    path = ROOT / "schemas" / "examples" / "valid" / "sweep-cell.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert rows.row(record)["sqnr_db"] is None
    assert rows.row({**record, "no_noise": ["sqnr_db"]})["sqnr_db"] == math.inf


def test_only_executed_programs_count() -> None:
    pairs = [
        {"reference": "float", "candidate": "quantised", **NEAR, "top1": {"share": 0.1}},
        {"reference": "labels", "candidate": "float", "top1": {"share": 0.2}},
        {"reference": "labels", "candidate": "executed", "top1": {"share": 0.75}},
        {"reference": "float", "candidate": "executed", "top1": {"share": 0.3}, **OUTPUT},
    ]
    found = rows.figures(compiled(accuracy={"pairs": pairs}), None)
    assert (found["sqnr_db"], found["top1"]) == (math.inf, 0.75)
