"""Without options: a network larger than the board's SRAM, on the NPU whose own board no simulator has here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ethosu_sdk.records import validation
from tests.integration.cli import sdk, sdk_ok
from tests.records import printed

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]
# 2.7 MB of weights; Corstone-300 has 2 MiB of SRAM.
NETWORK = """
import torch

torch.manual_seed(5)
model = torch.nn.Sequential(torch.nn.Linear(1200, 1500), torch.nn.ReLU(), torch.nn.Linear(1500, 600)).eval()
example_inputs = (torch.rand(1, 1200),)
"""
U85 = ("--target", "ethos-u85-256")
LIMIT_S = 900  # for a busy machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("defaults")
    (place / "net.py").write_text(NETWORK, encoding="utf-8")
    return place


def test_run_and_build_agree_on_a_board_that_runs_it(folder: Path) -> None:
    ran = printed(sdk("run", "net.py", *U85, "-o", "default", "--json", cwd=folder, timeout_s=LIMIT_S))
    assert ran["status"] == "pass"
    assert ran["model"]["bytes"] > 2_600_000
    assert ran["target"]["memory_mode"] == "Dedicated_Sram_384KB"
    built = printed(sdk("build", "default/net.pte", "-o", "built", "--json", cwd=folder, timeout_s=LIMIT_S))
    assert built["board"] == ran["board"] == "corstone-300"
    assert built["board_reason"] == ran["board_reason"]
    assert "qemu is installed here" in built["board_reason"]
    assert built["elf"]["sha256"] == next(
        row["sha256"] for row in ran["provenance"]["inputs"] if row["role"] == "firmware"
    )
    assert validation.record_problems(built) == validation.record_problems(ran) == []


def test_the_mode_of_executorch_is_refused_with_command_lines_that_work(folder: Path) -> None:
    asked = ("run", "net.py", *U85, "--memory-mode=Sram_Only", "-o", "sram only")
    outcome = sdk(*asked, cwd=folder, timeout_s=LIMIT_S)
    assert outcome.code == 5, outcome.err
    other, spill = (row.removeprefix("try: ") for row in outcome.err.splitlines() if row.startswith("try: "))
    start = "ethosu-sdk run net.py --target ethos-u85-256"
    assert spill == f"{start} --memory-mode=Sram_Only -o 'sram only' --allow-spill"
    assert other == f"{start} -o 'sram only' --memory-mode Shared_Sram"
    # The program is there: for a command that cannot compile, the advice is to compile it again.
    outcome = sdk("build", "sram only/net.pte", cwd=folder)
    assert outcome.code == 5, outcome.err
    assert (
        "try: ethosu-sdk compile net.py --target ethos-u85-256 --system-config Ethos_U85_SYS_DRAM_Mid --memory-mode "
        "Shared_Sram --quantize int8 --quantize-per channel --io float -o 'sram only', then the same again\n"
    ) in outcome.err
    sdk_ok(*shlex.split(other)[1:], cwd=folder, timeout_s=LIMIT_S)
