"""A delegate that two instructions call: its cycles and bytes count for each call."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.analysis import profile_command
from ethosu_sdk.analysis.profile_command import ProfileFacts
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall
from ethosu_sdk.records import kinds, validation
from ethosu_sdk.run.time_line import CpuClock
from tests.places import GOLDEN_PTE, ROOT

PROGRAM = GOLDEN_PTE / "add_u55.pte"
EXAMPLES = ROOT / "schemas" / "examples" / "valid"


def _profile(instructions: int, tmp_path: Path) -> dict[str, Any]:
    """The profile of a program that calls its delegate so many times, one instruction after the other."""
    program = pte.read(PROGRAM)
    plan = program.plan("forward")
    (chain,) = plan.chains
    (call,) = (row for row in chain.instructions if isinstance(row, DelegateCall))
    plan = replace(plan, chains=(replace(chain, instructions=(call,) * instructions),))
    run = json.loads((EXAMPLES / "run-ds_cnn.json").read_text(encoding="utf-8"))
    run["model"] = {"file": PROGRAM.name, "sha256": program.sha256, "bytes": program.size, "entry": "forward"}
    run["operators"] = [
        {"instruction": index, "kind": "delegate", "name": "EthosUBackend"} for index in range(instructions)
    ]
    run_file = tmp_path / "run.json"
    run_file.write_text(json.dumps(run))
    facts = ProfileFacts(
        path=PROGRAM,
        program=replace(program, plans=(plan,)),
        run=kinds.RUN.convert(run),
        run_file=run_file,
        priced=pricing_system.pricing_of_program(PROGRAM, program),
        compiled=None,
        compiled_file=tmp_path / "missing.compile.json",
        clock_hz=None,
        cpu_clock=CpuClock("", None),
    )
    return profile_command.make_profile_record(facts).to_json()


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_every_call_counts(calls: int, tmp_path: Path) -> None:
    once, profile = _profile(1, tmp_path), _profile(calls, tmp_path)
    assert validation.record_problems(profile) == []
    assert profile["delegates"][0]["calls"] == calls
    (cycles,) = profile["totals"]["npu"]["cycles"]
    assert cycles["value"] == calls * once["totals"]["npu"]["cycles"][0]["value"]
    read = [sum(row["read_beats"] for row in found["memories"]) for found in (once, profile)]
    assert read[1] == calls * read[0] > 0


def test_rows_that_lack_a_call_are_refused(tmp_path: Path) -> None:
    profile = _profile(2, tmp_path)
    profile["operations"] = [row for row in profile["operations"] if row["instruction"] == 0]
    assert any("profile_adds_up" in problem for problem in validation.record_problems(profile))
