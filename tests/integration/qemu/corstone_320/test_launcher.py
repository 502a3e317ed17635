"""Launchers run firmware that is linked for Corstone-310 and Corstone-320, on these boards."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.installation import install_fvp
from ethosu_sdk.simulate.arm_runners import runner_executable, runner_for
from tests import processes
from tests.integration.qemu.corstone_320.conftest import needs_arms_runner
from tests.integration.qemu.firmware.build import Scenario, parameters
from tests.own_qemu import VARIABLE
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launchers")
    install_fvp.install_launchers(folder, Reporter())
    return folder


def launch(program: Path, qemu: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return processes.run([program, *map(str, words)], env={VARIABLE: str(qemu)})


def test_firmware_of_corstone_320_runs_on_it(
    launchers: Path, own_qemu: Path, scenarios: Path, tmp_path: Path
) -> None:
    address, data = parameters(Scenario.PRINT_MANY, 3)
    (tmp_path / "parameters.bin").write_bytes(data)
    words = ("-a", scenarios, "--data", f"{tmp_path / 'parameters.bin'}@{address:#x}")
    uart = ("-C", "mps4_board.uart0.out_file=-")
    done = launch(launchers / "FVP_Corstone_SSE-320", own_qemu, *words, *uart)
    assert (done.returncode, done.stdout) == (0, "abc"), done.stderr
    assert "corstone-300" not in done.stderr


def test_arms_runner_of_corstone_320_completes(launchers: Path, own_qemu: Path, tmp_path: Path) -> None:
    needs_arms_runner()
    runner = runner_executable(runner_for("ethos-u85"))
    program = GOLDEN_PTE / "add_u85_segment.pte"
    words = (
        "-a",
        runner,
        "--data",
        f"{program}@0x90000000",
        "--dump",
        f"{tmp_path / 'out.bin'}@0x93000000,20",
    )
    uart = ("-C", "mps4_board.uart0.out_file=-", "-C", "mps4_board.uart0.shutdown_on_eot=1")
    macs = ("-C", "mps4_board.subsystem.ethosu.num_macs=256")
    done = launch(launchers / "FVP_Corstone_SSE-320", own_qemu, *words, *uart, *macs)
    assert done.returncode == 0, done.stderr
    assert "CPU: Cortex-M85 r1p0" in done.stdout
    assert "Inference completed." in done.stdout
    assert (tmp_path / "out.bin").read_bytes() == bytes(
        20
    )  # the sum of zeros, for nothing was laid at the inputs


@dataclass(frozen=True)
class Kit:
    """One of Arm's runners: the launcher that takes it, its folder's name, and how it calls its board and CPU."""

    program: str
    folder: str
    board: str
    cpu: str = "Cortex-M85 r1p0"


KITS = (
    Kit(
        "FVP_Corstone_SSE-300_Ethos-U55",
        "sse-300-*-executorch-ethos-U55",
        "Corstone-300 - AN552",
        "Cortex-M55",
    ),
    Kit("FVP_Corstone_SSE-300_Ethos-U55", "sse-300-*-tflm-ethos-U55", "Corstone-300 - AN552", "Cortex-M55"),
    Kit("FVP_Corstone_SSE-300_Ethos-U65", "sse-300-*-tflm-ethos-U65", "Corstone-300 - AN552", "Cortex-M55"),
    Kit("FVP_Corstone_SSE-310", "sse-310-*-tflm-ethos-U55", "Corstone-310 - AN555"),
    Kit("FVP_Corstone_SSE-310_Ethos-U65", "sse-310-*-tflm-ethos-U65", "Corstone-310 - AN555"),
    Kit("FVP_Corstone_SSE-320", "sse-320-*-executorch-ethos-U85", "Corstone-320"),
    Kit("FVP_Corstone_SSE-320", "sse-320-*-tflm-ethos-U85", "Corstone-320"),
)


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.folder.replace("*-", ""))
def test_every_runner_of_arms_finds_its_board_and_npu(kit: Kit, launchers: Path, own_qemu: Path) -> None:
    """Without a model they end with an error, after Arm's driver has initialised the NPU."""
    needs_arms_runner()
    (folder,) = executables().glob(f"inference_runner-{kit.folder}-*")
    board = "mps4_board" if "SSE-320" in kit.program else "mps3_board"
    uart = ("-C", f"{board}.uart0.out_file=-", "-C", f"{board}.uart0.shutdown_on_eot=1")
    done = launch(launchers / kit.program, own_qemu, "-a", folder / "mlek_inference_runner.axf", *uart)
    assert "Ethos-U device initialised" in done.stdout, done.stderr
    assert f"Target system design: Arm {kit.board}" in done.stdout
    assert f"CPU: {kit.cpu}" in done.stdout
    assert done.returncode == 0


def executables() -> Path:
    return runner_executable(runner_for("ethos-u85")).parent.parent
