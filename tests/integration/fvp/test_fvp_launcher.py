"""The launchers as scripts for Arm's FVPs call them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ethosu_sdk.commands.fvp import launchers as fvp_launchers
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.errors import UsageError
from tests.integration.cli import sdk
from tests.integration.qemu.firmware import traces
from tests.integration.qemu.firmware.build import PARAMETERS_ADDRESS, Scenario, compile_program, parameters

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
U55, U65, U85 = "FVP_Corstone_SSE-300_Ethos-U55", "FVP_Corstone_SSE-300_Ethos-U65", "FVP_Corstone_SSE-320"
UART = ("-C", "mps3_board.uart0.out_file='-'")
UART_320 = ("-C", "mps4_board.uart0.out_file=-")
CONFIG = 0x28  # Ethos-U register: product in bits 31:28, log2 of the MACs in 3:0


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launchers with a space")
    outcome = sdk("fvp", "install-launchers", folder, cwd=folder)
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in folder.iterdir()) == [U55, U65, U85]
    return folder


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("scenarios", tmp_path_factory.mktemp("firmware"))


class Launch:
    """Starts launchers for `firmware`, which does what the words at PARAMETERS_ADDRESS say."""

    def __init__(self, launchers: Path, firmware: Path, folder: Path) -> None:
        self.launchers, self.firmware, self.folder = launchers, firmware, folder

    def words(self, program: str, scenario: Scenario, first: int, *options: str) -> list[str]:
        image = self.folder / "parameters.bin"
        image.write_bytes(parameters(scenario, first)[1])
        data = f"{image}@{PARAMETERS_ADDRESS:#x}"
        return [str(self.launchers / program), *options, "--data", data, "-a", str(self.firmware)]

    def __call__(
        self, program: str, scenario: Scenario, first: int = 0, *options: str
    ) -> subprocess.CompletedProcess[str]:
        words = self.words(program, scenario, first, *options)
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=120, check=False, cwd=self.folder
        )
        assert traces.qemu_processes(self.firmware) == []
        return done


@pytest.fixture
def launch(launchers: Path, firmware: Path, tmp_path: Path) -> Launch:
    return Launch(launchers, firmware, tmp_path)


def test_the_firmwares_output_and_exit_code_come_through(launch: Launch) -> None:
    done = launch(U55, Scenario.PRINT_MANY, 30, *UART)
    assert (done.returncode, done.stdout) == (0, "abcdefghijklmnopqrstuvwxyzabcd")
    assert done.stderr.count("\n") == 1
    assert "not Arm's FVP" in done.stderr
    assert launch(U55, Scenario.EXIT, 7, *UART).returncode == 7


def test_the_output_goes_to_a_file(launch: Launch) -> None:
    done = launch(U55, Scenario.PRINT_MANY, 3, "-C", f"mps3_board.uart0.out_file={launch.folder}/uart.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert (launch.folder / "uart.txt").read_text() == "abc"


@pytest.mark.parametrize(
    ("program", "options", "product", "macs"),
    [
        (U55, UART, 0, 128),
        (U55, (*UART, "-C", "ethosu.num_macs=32"), 0, 32),
        (U65, UART, 1, 256),
        (U85, UART_320, 2, 1024),
        (U85, (*UART_320, "-C", "mps4_board.subsystem.ethosu.num_macs=0x80"), 2, 128),
    ],
)
def test_the_npu_is_the_fvps(
    launch: Launch, program: str, options: tuple[str, ...], product: int, macs: int
) -> None:
    done = launch(program, Scenario.READ_REGISTER, CONFIG, *options)
    config = int(done.stdout[:8], 16)
    assert done.stdout == 2 * done.stdout[:8]  # through both aliases
    assert (config >> 28, 1 << (config & 0xF)) == (product, macs), done.stderr
    if program == U85:
        assert "corstone-300 with ethos-u85 in it" in done.stderr


def test_a_time_limit_is_told_in_the_fvps_words(launch: Launch) -> None:
    done = launch(U55, Scenario.SPIN, 0, *UART, "--timelimit", "1.5")
    assert done.returncode == 6
    assert done.stdout.startswith("going round\n")
    assert "Info: Simulation is stopping. Reason: CPU time has been exceeded." in done.stdout


def test_a_crash_is_told(launch: Launch) -> None:
    done = launch(U55, Scenario.LOCKUP, 0, *UART)
    assert done.returncode == 6
    assert done.stdout == "about to fault\n"
    assert "error: " in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("-C", "ethosu.num_macs=100"), 2, "is not valid"),
        (("-C", "ethosu.speed=11"), 2, "no parameter 'ethosu.speed'"),
        (("-C", "cpu0.semihosting-cwd=/no/such/folder"), 3, "/no/such/folder"),
        (("-C", "mps3_board.uart0.out_file=/no/such/folder/uart"), 3, "cannot write"),
    ],
)
def test_what_cannot_be_done_is_refused(
    launch: Launch, options: tuple[str, ...], code: int, message: str
) -> None:
    done = launch(U55, Scenario.EXIT, 0, *options)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_no_firmware_are_refused(launchers: Path, tmp_path: Path) -> None:
    (tmp_path / "text.elf").write_text("no ELF")
    for name in ("text.elf", "missing.elf"):
        done = subprocess.run(
            [launchers / U55, "-a", tmp_path / name], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 3
        assert name in done.stderr


def test_a_firmware_for_corstone_320_is_refused(launchers: Path, firmware: Path, tmp_path: Path) -> None:
    """The same program, moved to where an SSE-320 boots."""
    other = tmp_path / "moved.elf"
    image = bytearray(firmware.read_bytes())
    header = int.from_bytes(image[28:32], "little")
    for entry in range(int.from_bytes(image[44:46], "little")):
        at = header + entry * int.from_bytes(image[42:44], "little")
        address = int.from_bytes(image[at + 12 : at + 16], "little")
        if address in (0x10000000, 0):
            image[at + 12 : at + 16] = (0x11000000).to_bytes(4, "little")
    other.write_bytes(image)
    done = subprocess.run(
        [launchers / U85, "-a", other], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert "corstone-320" in done.stderr
    assert "--board corstone-300" in done.stderr


def test_version_says_what_it_is(launchers: Path) -> None:
    for program in (U55, U65, U85):
        done = subprocess.run([launchers / program, "--version"], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert "not Arm's FVP" in done.stdout
        assert program in done.stdout


def test_terminating_a_launcher_ends_qemu(launch: Launch) -> None:
    words = launch.words(U55, Scenario.SPIN, 0, *UART)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"going round\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 130
    deadline = time.monotonic() + 10
    while traces.qemu_processes(launch.firmware) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert traces.qemu_processes(launch.firmware) == []


def test_programs_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / U85).write_text("Arm's")
    with pytest.raises(UsageError, match="is no launcher"):
        fvp_launchers.install(tmp_path, Reporter())
    assert [path.name for path in tmp_path.iterdir()] == [U85]
    fvp_launchers.install(tmp_path, Reporter(), force=True)
    fvp_launchers.install(tmp_path, Reporter())  # over one's own, at any time
    assert len(list(tmp_path.iterdir())) == 3
