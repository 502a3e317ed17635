"""The check in a compilation's record: statuses, words and exit codes, from figures made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.compile import check_record, compile_facts
from ethosu_sdk.compile.check_record import Checked
from ethosu_sdk.compile.distance import distance
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Start, StartTosa
from tests.records import example

EXAMPLE = example("compile-add")
VALUES = np.linspace(-8, 8, 33, dtype=np.float32)
SOURCE = SourceLine(file="net.py", line=12, module="block.conv", module_type="Conv2d")


def record(checked: Checked) -> dict[str, Any]:
    bare = {"status": "pass", "provenance": {"inputs": [], "tools": []}, "warnings": [], "unavailable": []}
    return check_record.extend_with_check({**EXAMPLE, **bare}, checked, 0.25)


def checked(executed: np.ndarray[Any, Any], tmp_path: Path, start: Start | None = None) -> Checked:
    runner = tmp_path / "host-runner"
    runner.write_bytes(b"runner")
    return Checked(
        executed=[executed],
        distances=[distance(executed, VALUES, [VALUES], 0.5)],
        facts=compile_facts.CheckFacts((compile_facts.CheckedOutput("float32", None, False),), 3, False),
        runner=runner,
        start=start,
    )


def test_equal_outputs_pass(tmp_path: Path) -> None:
    made = record(checked(VALUES, tmp_path))
    assert made["status"] == made["check"]["status"] == "pass"
    assert made["check_time_s"] == 0.25
    assert [row["role"] for row in made["provenance"]["inputs"]] == ["host-runner"]
    (reason,) = made["unavailable"]
    assert reason == {"path": "/check/outputs/0/sqnr_db", "reason": "there is no noise"}
    assert check_record.check_line(made) == "all 33 elements are equal (0.2 s)"
    check_record.raise_if_failed(made, recorded=False)


def test_outputs_that_rounding_does_not_explain_are_a_missed_verdict_with_the_place(tmp_path: Path) -> None:
    start = Start(
        text="starts at aten.relu, net.py:12",
        certain=True,
        tosa=StartTosa(operator="RESCALE", tensor="r"),
        operator="aten.relu",
        source=SOURCE,
    )
    made = record(checked(np.abs(VALUES), tmp_path, start))
    assert made["status"] == made["check"]["status"] == made["check"]["outputs"][0]["status"] == "fail"
    assert made["check"]["start"]["source"]["line"] == 12
    with pytest.raises(VerdictError) as caught:
        check_record.raise_if_failed(made, recorded=True)
    assert "rounding explains" in caught.value.message
    assert "starts at aten.relu, net.py:12" in caught.value.message
    assert "--no-check" in caught.value.hint
    assert caught.value.recorded


def test_what_does_not_run_is_refused_or_warned_of() -> None:
    made = record(Checked(failure=InputError("delegate 0 returned one output, the program has two")))
    assert made["status"] == made["check"]["status"] == "fail"
    with pytest.raises(InputError, match="does not run: delegate 0 returned one output"):
        check_record.raise_if_failed(made, recorded=False)
    made = record(Checked(unavailable="there is no g++"))
    assert made["status"] == "pass"
    assert made["check"] == {"status": "unavailable", "reason": "there is no g++"}
    assert "there is no g++" in made["warnings"][0]
    assert check_record.check_line(made) == "not executed: there is no g++"
    check_record.raise_if_failed(made, recorded=False)
