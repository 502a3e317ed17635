"""The programs of tests/golden/pte on the board: every kind of instruction, against ExecuTorch's own runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ethosu_sdk import npz, schema
from ethosu_sdk.simulators import host
from ethosu_sdk.simulators.host.npu_model import NpuModel
from tests.integration.cli import sdk

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pte"
UP = np.linspace(0.1, 2.0, 8, dtype=np.float32)

CASES: dict[str, tuple[str, tuple[npt.NDArray[Any], ...], set[str]]] = {
    "taken branch": ("choice", (UP[:6].reshape(2, 3),), {"kernel", "jump", "move"}),
    "other branch": ("choice", (-UP[:6].reshape(2, 3),), {"kernel", "jump", "move"}),
    "buffer": ("counter", (UP[:2],), {"kernel"}),
    "lists": ("lists", (UP.reshape(2, 4), np.array([6, 0], np.int64)), {"kernel"}),
}


@pytest.mark.parametrize("case", CASES)
def test_control_flow_runs_on_the_board(case: str, host_runner: Path, tmp_path: Path) -> None:
    name, inputs, kinds = CASES[case]
    program = GOLDEN / f"{name}.pte"
    with host.open_pte(host_runner, program, NpuModel()) as runtime:
        expected = runtime.run(inputs)
    npz.write_npz(tmp_path / "in.npz", {f"input{i}": value for i, value in enumerate(inputs)})
    npz.write_npz(tmp_path / "want.npz", {f"output{i}": value for i, value in enumerate(expected)})
    command = ("run", program, "--inputs", "in.npz", "--expect", "want.npz", "-o", "out", "--json")
    outcome = sdk(*command, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert schema.problems(record) == []
    assert {row["kind"] for row in record["operators"]} == kinds
