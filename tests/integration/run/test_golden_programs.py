"""The programs of tests/golden/pte on the board: every kind of instruction, against ExecuTorch's own runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
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
    program = GOLDEN_PTE / f"{name}.pte"
    with host_runtime.open_pte(host_runner, program, NpuModel()) as runtime:
        expected = runtime.run(inputs)
    npz.write_npz(tmp_path / "in.npz", {f"input{i}": value for i, value in enumerate(inputs)})
    npz.write_npz(tmp_path / "want.npz", {f"output{i}": value for i, value in enumerate(expected)})
    command = ("run", program, "--inputs", "in.npz", "--expect", "want.npz", "-o", "out", "--json")
    record = printed(sdk(*command, cwd=tmp_path))
    assert {row["kind"] for row in record["operators"]} == kinds


def test_the_host_runtime_names_the_operator_that_it_lacks(tmp_path: Path) -> None:
    program = tmp_path / "other.pte"
    content = (GOLDEN_PTE / "softmax.pte").read_bytes()
    assert content.count(b"aten::_softmax") == 1
    program.write_bytes(content.replace(b"aten::_softmax", b"aten::_softmix"))
    outcome = sdk("run", program, "--simulator", "host", "-o", "out", cwd=tmp_path)
    assert outcome.code == 6, outcome.err
    assert "error: ExecuTorch's host runtime has no kernel for aten::_softmix.out: " in outcome.err
    assert "Missing operator" not in outcome.err
