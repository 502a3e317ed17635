"""`run --board corstone-320 --simulator qemu` as users start it, and what Arm's prebuilt runner makes of it."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import npz, tools
from ethosu_sdk.records import validation
from tests.conftest import ZooPte
from tests.integration.cli import Outcome, sdk
from tests.integration.qemu.corstone_320.conftest import BOARD, needs_arms_runner
from tests.own_qemu import VARIABLE
from tests.places import GOLDEN_PTE

ADD = GOLDEN_PTE / "add_u85_segment.pte"
SOFTMAX = GOLDEN_PTE / "softmax.pte"
LIMIT_S = 600
ON_320 = ("--board", BOARD, "--simulator", "qemu")

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def run(program: Path, folder: Path, qemu: Path, *options: str | Path) -> tuple[Outcome, dict[str, Any]]:
    arguments = ("run", program, "-o", folder / "out", "--json", *options)
    outcome = sdk(*arguments, cwd=folder, env={VARIABLE: str(qemu)}, timeout_s=LIMIT_S)
    record = json.loads(outcome.out) if outcome.out else {}
    assert not record or validation.record_problems(record) == []
    return outcome, record


def test_an_ethos_u85_on_its_own_board(own_qemu: Path, tmp_path: Path) -> None:
    """Its outputs are the sum; its figures those of the other board, where gdb carries the accesses."""
    given = np.array([-(2**30), 7, 0, 12345, -1], np.int32)
    npz.write_npz(tmp_path / "in.npz", {"input0": given})
    npz.write_npz(tmp_path / "want.npz", {"output0": given + given})
    options = ("--inputs", "in.npz", "--expect", "want.npz")
    outcome, record = run(ADD, tmp_path, own_qemu, *options, *ON_320)
    assert (outcome.code, record["status"]) == (0, "pass"), outcome.err
    assert (record["board"], record["simulator"]["name"]) == (BOARD, "qemu")
    assert "in a QEMU of its own build" in record["simulator"]["fidelity"]
    assert "exists in this simulator alone" not in record["simulator"]["fidelity"]
    outcome, other = run(ADD, tmp_path, own_qemu, *options)
    assert (outcome.code, other["board"]) == (0, "corstone-300")  # the default stays
    assert "exists in this simulator alone" in other["simulator"]["fidelity"]
    assert record["npu"] == other["npu"]
    npz.write_npz(tmp_path / "want.npz", {"output0": given + given + 1})
    outcome, _ = run(ADD, tmp_path, own_qemu, *options, *ON_320)
    assert outcome.code == 7


def test_a_program_without_an_npu(own_qemu: Path, tmp_path: Path) -> None:
    outcome, record = run(SOFTMAX, tmp_path, own_qemu, *ON_320)
    assert (outcome.code, record["board"], "npu" in record) == (0, BOARD, False), outcome.err


def test_without_that_qemu_the_fix_is_named(tmp_path: Path) -> None:
    environment = {VARIABLE: "", "ETHOSU_SDK_CACHE": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    outcome = sdk("run", ADD, *ON_320, "-o", "out", cwd=tmp_path, env=environment)
    assert (outcome.code, "scripts/setup --corstone-320" in outcome.err) == (4, True), outcome.err
    assert not (tmp_path / "out" / "run.json").exists()


def test_doctor_knows_it_and_does_not_miss_it(own_qemu: Path, tmp_path: Path) -> None:
    name = "qemu-corstone"
    outcome = sdk("doctor", "--json", cwd=tmp_path, env={VARIABLE: str(own_qemu)})
    row = next(row for row in json.loads(outcome.out)["checks"] if row["name"] == name)
    assert (row["status"], row["required"]) == ("found", False)
    tool = tools.tool_table()[name]
    assert (tool.optional, tool.fix.split(",")[0]) == (True, "scripts/setup --corstone-320")


# --- Arm's own runner: nothing of our firmware takes part


@pytest.mark.torch
@pytest.mark.parametrize("name", ["add", "digits_cnn", "mobilenet_v2"])
def test_arms_runner_agrees_with_our_firmware(
    name: str, own_qemu: Path, zoo_pte: ZooPte, tmp_path: Path
) -> None:
    needs_arms_runner()
    program = zoo_pte(name, target="ethos-u85-256").pte
    outcome, record = run(program, tmp_path, own_qemu, "--runtime", "both")
    assert outcome.code == 0, outcome.err
    opinion = record["second_opinion"]
    assert [row["differing"] for row in opinion["outputs"]] == [0] * len(record["outputs"])
    assert "Inference completed." in (tmp_path / "out" / "uart-executorch.log").read_text(encoding="utf-8")
