"""The table of operations in a report: its last row is what an inference adds up to, however often each runs."""

import json
from typing import Any

from ethosu_sdk.readers.report.views import operations
from ethosu_sdk.records import kinds
from tests.places import ROOT

PROFILE = ROOT / "schemas" / "examples" / "valid" / "profile-digits_cnn.json"
CALLS = 3


def _sums(profile: dict[str, Any]) -> dict[str, int]:
    found = operations.of(kinds.PROFILE.convert(profile))
    cells = zip(found["columns"], found["sums"], strict=True)
    return {
        column["key"]: int(cell["text"].replace(",", ""))
        for column, cell in cells
        if column["format"] == "whole" and cell["text"]
    }


def test_figures_of_one_call_count_for_each_call_and_instructions_once() -> None:
    profile = json.loads(PROFILE.read_text(encoding="utf-8"))
    totals = profile["totals"]
    before = _sums(profile)
    assert before["instructions"] == totals["cpu"]["instructions"]["value"]
    assert before["macs"] == totals["npu"]["macs"]
    for name in ("read", "written"):
        assert before[name] == sum(
            row[f"{'write' if name == 'written' else name}_bytes"] for row in profile["memories"]
        )
    for row in (*profile["operations"], *profile["delegates"]):
        row["calls"] = CALLS
    after = _sums(profile)
    assert after["instructions"] == before["instructions"]  # the record has those of all calls
    for name in ("macs", "read", "written"):
        assert after[name] == CALLS * before[name]
