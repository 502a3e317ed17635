"""`run --simulator fvp` against a double of the FVP (fvp_double.py): only a run that went well is green.

The double really runs the firmware. It is no FVP: nothing here says that a real one would behave like this.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile.compile_facts import CompileOutput
from ethosu_sdk.records import validation
from ethosu_sdk.simulate.fvp_simulator import FvpSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest
from tests.conftest import ExpectedOutputs, ZooPte
from tests.integration.cli import Outcome, sdk
from tests.integration.fvp import double as fvp_double
from tests.integration.qemu.firmware.build import compile_program

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
PROGRAM = "FVP_Corstone_SSE-300_Ethos-U55"

RunOnDouble = Callable[..., tuple[Outcome, dict[str, Any]]]


@pytest.fixture(scope="module")
def compiled(zoo_pte: ZooPte) -> CompileOutput:
    return zoo_pte("add")


@pytest.fixture
def run_on_double(compiled: CompileOutput, shared_folder: Path, tmp_path: Path) -> RunOnDouble:
    fvp_double.install(tmp_path, PROGRAM)
    results = shared_folder / "fvp-run"  # the firmware is built once

    def run(behaviour: str, *options: str | Path) -> tuple[Outcome, dict[str, Any]]:
        arguments = ("run", compiled.pte, "--simulator", "fvp", "-o", results, "--json", *options)
        variables = {"FVP_DOUBLE": behaviour, "ETHOSU_FVP_DIR": str(tmp_path)}
        outcome = sdk(*arguments, cwd=tmp_path, env=variables)
        assert (results / "run.json").exists() == (outcome.code == 0)
        return outcome, json.loads(outcome.out)

    return run


def test_a_run_that_goes_well_is_green_and_measured(
    compiled: CompileOutput, run_on_double: RunOnDouble, expected_outputs: ExpectedOutputs, tmp_path: Path
) -> None:
    examples = np.load(compiled.pte.with_suffix(".io.npz"))
    want = expected_outputs(compiled, [examples["input0"]])
    npz.write_npz(tmp_path / "want.npz", {f"output{i}": array for i, array in enumerate(want)})
    outcome, record = run_on_double("success", "--expect", tmp_path / "want.npz")
    assert outcome.code == 0, outcome.err
    assert validation.record_problems(record) == []
    assert record["simulator"]["name"] == "fvp"
    assert record["simulator"]["version"] == f"{fvp_double.VERSION} ({PROGRAM})"
    assert record["npu"]["cycles"]["source"] == "measured"
    assert {row["source"] for row in record["npu"]["counters"]} == {"measured"}
    assert len(record["npu"]["counters"]) == 4  # stalls and idle cycles too, which the NPU model cannot know
    assert "cycles" not in record["cpu"]
    assert "/cpu/cycles" in {row["path"] for row in record["unavailable"]}


def test_fast_counters_are_not_reported(run_on_double: RunOnDouble) -> None:
    outcome, record = run_on_double("success", "--fast")
    assert outcome.code == 0, outcome.err
    assert "--fast" in record["simulator"]["fidelity"]
    assert record["npu"]["counters"] == []
    assert not any("npu_cycles" in row for row in record["operators"])
    reasons = {row["path"]: row["reason"] for row in record["unavailable"]}
    assert "not representative" in reasons["/npu/cycles"]
    assert sum(path.startswith("/npu/counters/") for path in reasons) == 4


@pytest.mark.parametrize(
    ("behaviour", "message", "hint"),
    [
        ("hang", "did not end within", "--timeout"),
        ("half a log", "record", ""),
        ("exits non-zero", "exit status 3", ""),
        ("error then success", "Execution of method forward failed", "executorch-internal"),
        ("time limit", "CPU time has been exceeded", "fvp-cpu-time-limit"),
        ("simulated limit", "Simulated time has been exceeded", "fvp-simulated-time-limit"),
    ],
)
def test_nothing_else_is_green(behaviour: str, message: str, hint: str, run_on_double: RunOnDouble) -> None:
    limit = ("--timeout", "5") if behaviour == "hang" else ()
    outcome, record = run_on_double(behaviour, *limit)
    assert outcome.code == SimulationError.exit_code, outcome.err
    assert message in record["error"]["message"]
    assert hint in record["error"].get("hint", "")


def test_a_replayed_log_is_not_green(run_on_double: RunOnDouble, shared_folder: Path, tmp_path: Path) -> None:
    """Every record of it is whole, and of the same model with the same inputs."""
    assert run_on_double("success")[0].code == 0
    kept = tmp_path / "kept.log"
    kept.write_bytes((shared_folder / "fvp-run" / "uart.log").read_bytes())
    outcome, record = run_on_double(f"replay {kept}")
    assert outcome.code == SimulationError.exit_code, outcome.err
    assert "the log is not from this run" in record["error"]["message"]


def test_an_fvp_that_does_not_start(run_on_double: RunOnDouble) -> None:
    outcome, record = run_on_double("missing library")
    assert outcome.code == 4
    assert "fvp-missing-library" in record["error"]["hint"]


def test_without_an_fvp_the_way_to_one_is_shown(compiled: CompileOutput, tmp_path: Path) -> None:
    variables = {"ETHOSU_FVP_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    outcome = sdk(
        "run", compiled.pte, "--simulator", "fvp", "-o", tmp_path / "o", cwd=tmp_path, env=variables
    )
    assert outcome.code == 4
    assert "ethosu-sdk fvp install corstone-300" in outcome.err
    assert not (tmp_path / "o" / "executor_runner.elf").exists()  # said before anything was built


def test_the_launchers_do_not_pass_for_an_fvp(compiled: CompileOutput, tmp_path: Path) -> None:
    assert sdk("fvp", "install-launchers", tmp_path, cwd=tmp_path).code == 0
    variables = {"ETHOSU_FVP_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    outcome = sdk(
        "run", compiled.pte, "--simulator", "fvp", "-o", tmp_path / "o", cwd=tmp_path, env=variables
    )
    assert outcome.code == 4
    assert "not Arm's FVP" in outcome.err


def test_an_fvp_that_falls_silent_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / PROGRAM
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "Fast Models [1.2.3]" && exit\necho begins; sleep 60\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("ETHOSU_FVP_DIR", str(tmp_path))
    request = SimulationRequest(
        elf=compile_program("scenarios", tmp_path),
        images=(),
        target=parse_target("ethos-u55-128"),
        timeout_s=50.0,
        idle_timeout_s=5.0,
        uart_log=tmp_path / "uart.log",
    )
    begun = time.monotonic()
    with pytest.raises(SimulationError, match="printed nothing") as silent:
        FvpSimulator("ethos-u55").run(request)
    assert time.monotonic() - begun < 45
    assert "begins" in silent.value.message
    assert (tmp_path / "uart.log").read_bytes() == b"begins\n"


def test_options_of_the_fvp_are_refused_elsewhere(compiled: CompileOutput, tmp_path: Path) -> None:
    for simulator in ("qemu", "host"):
        outcome = sdk(
            "run", compiled.pte, "--simulator", simulator, "--fast", "-o", tmp_path / "o", cwd=tmp_path
        )
        assert outcome.code == 2, outcome.err
        assert "for the FVP" in outcome.err
