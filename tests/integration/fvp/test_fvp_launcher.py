"""The launchers as scripts for Arm's FVPs call them."""

import json
import os
import platform
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.installation import install_fvp
from tests import processes
from tests.integration.cli import sdk, sdk_ok
from tests.integration.qemu.firmware import traces
from tests.integration.qemu.firmware.build import PARAMETERS_ADDRESS, Scenario, compile_program, parameters

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
U55, U65, U85 = "FVP_Corstone_SSE-300_Ethos-U55", "FVP_Corstone_SSE-300_Ethos-U65", "FVP_Corstone_SSE-320"
UART = ("-C", "mps3_board.uart0.out_file='-'")
UART_320 = ("-C", "mps4_board.uart0.out_file=-")
FOLDERS = {"x86_64": "Linux64_GCC-9.3", "aarch64": "Linux64_armv8l_GCC-9.3"}
CONFIG = 0x28  # Ethos-U register: product in bits 31:28, log2 of the MACs in 3:0


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launchers with a space")
    sdk_ok("fvp", "install-launchers", folder, cwd=folder)
    kinds = ("SSE-300_Ethos-U55", "SSE-300_Ethos-U65", "SSE-310", "SSE-310_Ethos-U65", "SSE-320")
    names = [f"{maker}_Corstone_{kind}" for maker in ("FVP", "VHT") for kind in kinds]
    assert sorted(path.name for path in folder.iterdir()) == names
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
        done = processes.run(words, cwd=self.folder)
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
        done = processes.run([launchers / U55, "-a", tmp_path / name])
        assert done.returncode == 3
        assert name in done.stderr


def without_own_qemu(words: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a launcher where Debian's QEMU alone is installed."""
    environment = {**os.environ, "ETHOSU_SDK_CACHE": str(folder), "ETHOSU_SDK_QEMU_CORSTONE": ""}
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=environment)


def test_a_firmware_for_corstone_320_is_refused_without_its_qemu(
    launchers: Path, firmware: Path, tmp_path: Path
) -> None:
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
    done = without_own_qemu([launchers / U85, "-a", other], tmp_path)
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
    with pytest.raises(UsageError, match="is not a launcher"):
        install_fvp.install_launchers(tmp_path, Reporter())
    assert [path.name for path in tmp_path.iterdir()] == [U85]
    install_fvp.install_launchers(tmp_path, Reporter(), force=True)
    install_fvp.install_launchers(tmp_path, Reporter())  # over one's own, at any time
    assert len(list(tmp_path.iterdir())) == 10


def test_the_layout_of_an_fvp_says_that_it_is_none(tmp_path: Path) -> None:
    """As Arm's installer lays an FVP out. Callers name the folder of its Python: it must not be the launcher's."""
    outcome = sdk_ok("fvp", "install-launchers", "sdk", "--layout", "fvp", "--json", cwd=tmp_path)
    programs = tmp_path / "sdk" / "models" / FOLDERS[platform.machine()]
    assert json.loads(outcome.out)["folder"] == str(programs)
    assert {path.name for path in programs.parents[1].iterdir()} == {"models", "python", "ETHOSU-SDK.txt"}
    told = (programs.parents[1] / "ETHOSU-SDK.txt").read_text()
    assert "not Arm's FVP" in told
    assert str(programs.relative_to(tmp_path / "sdk")) in told
    assert [path.name for path in (tmp_path / "sdk" / "python").iterdir()] == ["ETHOSU-SDK.txt"]
    environment = {**os.environ, "PYTHONHOME": str(tmp_path / "sdk" / "python")}
    done = subprocess.run(
        [programs / U85, "--version"], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, "not Arm's FVP" in done.stdout) == (0, True), done.stderr
    outcome = sdk("fvp", "install-launchers", "other", "--layout", "fvq", cwd=tmp_path)
    assert (outcome.code, "did you mean 'fvp'" in outcome.err) == (2, True)
    assert not (tmp_path / "other").exists()


def linked_at(path: Path, address: int) -> Path:
    """An executable with nothing but a segment at `address`."""
    head = struct.pack(
        "<16sHHIIIIIHHHHHH",
        b"\x7fELF\x01\x01\x01",
        *(2, 40, 1, address | 1, 52, 0, 0x5000200, 52, 32, 1, 40, 0, 0),
    )
    path.write_bytes(head + struct.pack("<8I", 1, 0x60, address, address, 32, 32, 7, 4) + bytes(44))
    return path


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("FVP_Corstone_SSE-310", "for corstone-310, which the installed QEMU does not support"),
        ("VHT_Corstone_SSE-310_Ethos-U65", "for corstone-310, which the installed QEMU does not support"),
        ("VHT_Corstone_SSE-320", "for corstone-320, which the installed QEMU does not support"),
        (U55, f"for corstone-320, which is not the board of {U55}"),
    ],
)
def test_a_board_that_cannot_be_simulated_is_named(
    program: str, said: str, launchers: Path, tmp_path: Path
) -> None:
    """Firmware of Corstone-310 and Corstone-320 has its vectors at 0x11000000."""
    elf = linked_at(tmp_path / "other.axf", 0x1100_0000)
    done = without_own_qemu([launchers / program, "-a", elf], tmp_path)
    assert done.returncode == 3
    assert f"is linked {said}" in done.stderr
    assert "build it for corstone-300" in done.stderr
    assert ("scripts/setup --corstone-320" in done.stderr) == (program != U55)


@pytest.mark.parametrize("program", ["FVP_Corstone_SSE-310", "VHT_Corstone_SSE-300_Ethos-U55"])
def test_other_names_run_firmware_of_corstone_300(program: str, launch: Launch) -> None:
    done = launch(program, Scenario.PRINT_MANY, 3, *UART)
    assert (done.returncode, done.stdout) == (0, "abc")
    assert ("in it, no corstone-310" in done.stderr) == ("SSE-310" in program)


def test_memory_is_dumped_whole_or_not_at_all(launch: Launch) -> None:
    """What --data laid is what --dump gives, of several files; another run leaves no file."""
    (launch.folder / "more.bin").write_bytes(b"laid by a second --data")
    data = ("--data", "more.bin@0x70100000")
    dumps = ("--dump", f"a.bin@{PARAMETERS_ADDRESS:#x},8", "--dump", "b.bin@0x70100002,5")
    done = launch(U55, Scenario.EXIT, 0, *data, *dumps)
    assert done.returncode == 0, done.stderr
    assert (launch.folder / "a.bin").read_bytes() == (launch.folder / "parameters.bin").read_bytes()[:8]
    assert (launch.folder / "b.bin").read_bytes() == b"id by"
    for name in ("a.bin", "b.bin"):
        (launch.folder / name).unlink()
    outside = launch(U55, Scenario.EXIT, 0, *dumps, "--dump", "c.bin@0x31000000,0x7000000")
    assert (outside.returncode, "do not lie in one memory" in outside.stderr) == (3, True)
    gone = launch(U55, Scenario.EXIT, 0, *dumps, "--dump", "c.bin@0x31000000,16")
    assert (gone.returncode, "ended QEMU by semihosting" in gone.stderr) == (6, True)
    assert not [path.name for path in launch.folder.glob("[abc].bin")]
