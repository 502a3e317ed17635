"""A cell's figures out of its records."""

import math
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from ethosu_sdk.records import kinds
from ethosu_sdk.records.compile import Check, CheckedOutput, Compilation
from ethosu_sdk.records.parts.accuracy import Accuracy, EvaluationData, Pair, Top1
from ethosu_sdk.sweep import rows
from tests.places import ROOT
from tests.records import example

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
OUTPUT = {"elements": 4, "equal": 4}
NEAR = {"elements": 4, "equal": 1, "sqnr_db": 30.0}
UNKNOWN = {"elements": 4, "equal": 1}  # integers, whose differences mean nothing


def compiled(*pairs: Pair, outputs: tuple[CheckedOutput, ...] = ()) -> Compilation:
    data = EvaluationData(file="a.npz", sha256="0" * 64, samples=1, labels=(), expected=False)
    return replace(
        kinds.COMPILE.convert(example("compile-add")),
        check=Check(status="pass", outputs=outputs),
        accuracy=Accuracy(data=data, executions=(), missing=(), outputs=(), pairs=pairs),
    )


def output(**members: Any) -> CheckedOutput:
    known = {
        "index": 0,
        "status": "pass",
        "detail": "",
        "sha256": "",
        "left_out": 0,
        "not_finite": 0,
        "step": 0,
    }
    return CheckedOutput(**{**known, **members})


def pair(
    reference: Literal["float", "labels"],
    candidate: Literal["float", "quantised", "executed"],
    share: float | None = None,
    **members: Any,
) -> Pair:
    top1 = None if share is None else Top1(share=share, right=0, total=0, ties=0)
    return Pair(reference=reference, candidate=candidate, output=0, top1=top1, **members)


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
    record = compiled(outputs=tuple(output(**part) for part in outputs))
    assert rows.figures(record, None)["check_sqnr_db"] == worst
    record = compiled(*(pair("float", "executed", **part) for part in outputs))
    assert rows.figures(record, None)["sqnr_db"] == worst


def test_infinite_figures_come_back_from_a_record() -> None:
    record = kinds.SWEEP_CELL.convert(example("sweep-cell"))
    assert rows.row(record)["sqnr_db"] is None
    assert rows.row(replace(record, no_noise=("sqnr_db",)))["sqnr_db"] == math.inf


def test_only_executed_programs_count() -> None:
    record = compiled(
        pair("float", "quantised", share=0.1, **NEAR),
        pair("labels", "float", share=0.2),
        pair("labels", "executed", share=0.75),
        pair("float", "executed", share=0.3, **OUTPUT),
    )
    found = rows.figures(record, None)
    assert (found["sqnr_db"], found["top1"]) == (math.inf, 0.75)
