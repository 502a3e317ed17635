"""Several runs in a report: what was changed comes first, and no row stands twice on a page."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ethosu_sdk.readers.report.inputs import PROFILE, Inputs
from ethosu_sdk.readers.report.views import run_rows, side_by_side
from ethosu_sdk.records import kinds
from ethosu_sdk.records.run import Reference, ReferenceOutput, Run
from ethosu_sdk.results.run_facts import RunFacts
from tests.places import ROOT

EXAMPLES = ROOT / "schemas" / "examples" / "valid"


def _record(name: str) -> Any:
    return kinds.content(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def _inputs(run: Run, label: str = "a") -> Inputs:
    return Inputs(label, Path(), run, {PROFILE: _record("profile-add-timed")}, None, None, RunFacts())


def _beside(run: Run, other: Run) -> dict[str, Any]:
    return side_by_side.of([_inputs(run, "1: a"), _inputs(other, "2: b")])


def test_what_was_changed_is_said_first() -> None:
    run = _record("run-add-timed")
    other = replace(run, target=replace(run.target, memory_mode="Sram_Only"))
    found = _beside(run, other)
    assert found["cause"] == "What differs: memory mode Shared_Sram → Sram_Only."
    assert [(row["name"], row["cells"]) for row in found["changed"]] == [
        ("memory mode", ["Shared_Sram", "Sram_Only"])
    ]
    assert "memory mode" not in dict(found["same"])
    assert dict(found["same"])["target"] == "ethos-u55-128"


@pytest.mark.parametrize(
    ("digest", "words"),
    [
        (None, "Nothing that the records name differs"),
        ("0" * 64, "The programs differ, and the records name no"),
    ],
)
def test_equal_settings_are_no_cause(digest: str | None, words: str) -> None:
    run = _record("run-add-timed")
    other = run if digest is None else replace(run, model=replace(run.model, sha256=digest))
    found = _beside(run, other)
    assert found["cause"].startswith(words)
    assert found["changed"] == []


def test_verdict_time_and_accuracy_lead_the_figures() -> None:
    run = _record("run-add-timed")
    rows = [ReferenceOutput(index=0, elements=8, equal=5, max_abs_error=0.1, sqnr_db=31.27)]
    other = replace(run, reference=Reference(file="a.io.npz", outputs=tuple(rows)))
    found = _beside(run, other)
    names = [row["name"] for row in found["rows"]]
    assert names[:4] == ["verdict", "inference", "time of the CPU", "time of the NPU"]
    row = next(row for row in found["rows"] if row["name"] == "accuracy of output 0")
    assert row["cells"] == ["", "SQNR 31.3 dB beside the model in PyTorch"]
    assert row["differences"] == ["new"]


@pytest.mark.parametrize("name", ["run-add-timed", "run-cpu-cycles", "run-softmax-cpu-only"])
def test_what_ran_repeats_nothing_of_the_headline(name: str) -> None:
    inputs = _inputs(_record(name))
    ran = [row.name for row in (*run_rows.settings(inputs), *run_rows.counts(inputs))]
    assert len(set(ran)) == len(ran)
    assert not {row.name for row in run_rows.decisive(inputs)} & set(ran)
    assert "target" in ran or inputs.run.target is None
