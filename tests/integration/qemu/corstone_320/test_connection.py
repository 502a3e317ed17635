"""What Corstone-320 has beside what tests/integration/qemu/scenarios asks of both boards: memories that are laid and
read back, and the device's end of the connection. A peer that goes away or answers nonsense ends QEMU."""

import dataclasses
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from tests.integration.qemu.conftest import RequestFor
from tests.integration.qemu.corstone_320.conftest import BOARD
from tests.integration.qemu.firmware.build import Scenario, parameters

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

READ, WRITE = 1, 2
Start = Callable[[Scenario], tuple["subprocess.Popen[bytes]", socket.socket]]


@pytest.fixture
def start(own_qemu: Path, scenarios: Path, tmp_path: Path) -> Iterator[Start]:
    """QEMU with a scenario, and our end of its NPU's connection."""
    started: list[subprocess.Popen[bytes]] = []

    def run(scenario: Scenario) -> tuple[subprocess.Popen[bytes], socket.socket]:
        address, data = parameters(scenario, 8, 8)
        ddr = tmp_path / "ddr"
        with ddr.open("wb") as stream:
            stream.truncate(2 << 30)  # sparse
        ours, theirs = socket.socketpair()
        ours.settimeout(20)
        argv = [own_qemu, "-nodefaults", "-display", "none", "-monitor", "stdio", "-S"]
        argv += ["-object", f"memory-backend-file,id=ddr,size=2G,share=on,mem-path={ddr}"]
        argv += ["-M", f"{BOARD},memory-backend=ddr"]
        argv += ["-semihosting-config", "enable=on", "-kernel", scenarios]
        argv += ["-chardev", f"socket,id=npu,fd={theirs.fileno()}", "-global", "ethos-u.chardev=npu"]
        with theirs:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], **pipes)
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"info status\n")  # answered once the firmware has been laid into memory
        process.stdin.flush()
        answer = b""
        while b"paused" not in answer:
            answer += process.stdout.read1(256)
            assert process.poll() is None
        with ddr.open("r+b") as stream:
            stream.seek(address - 0x6000_0000)
            stream.write(data)
        process.stdin.write(b"cont\n")
        process.stdin.flush()
        return process, ours

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, messages = process.communicate(timeout=20)
    return process.returncode, messages.decode()


def test_an_access_is_a_frame_and_its_answer_goes_on(start: Start) -> None:
    process, ours = start(Scenario.READ_REGISTER)
    with ours:
        for _ in range(2):  # by both aliases
            assert struct.unpack("<BBHII", ours.recv(12)) == (READ, 4, 0, 8, 0)
            ours.sendall(struct.pack("<BBHI", 0, 0, 0, 7))
        assert ended(process) == (0, "")


def test_a_write_carries_its_value(start: Start) -> None:
    process, ours = start(Scenario.WRITE_REGISTER)
    with ours:
        assert struct.unpack("<BBHII", ours.recv(12)) == (WRITE, 4, 0, 8, 8)
        ours.sendall(struct.pack("<BBHI", 0, 1, 0, 0))
        assert ended(process) == (0, "")


@pytest.mark.parametrize("scenario", [Scenario.SPIN, Scenario.SLEEP, Scenario.READ_REGISTER])
def test_a_peer_that_goes_away_ends_qemu(start: Start, scenario: Scenario) -> None:
    process, ours = start(scenario)
    with ours:
        if scenario == Scenario.READ_REGISTER:
            assert len(ours.recv(12)) == 12  # in the middle of an access
    code, messages = ended(process)
    assert code == 1
    assert "the process that computes the NPU has closed its connection" in messages


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack("<BBHI", 2, 0, 0, 0),
        struct.pack("<BBHI", 0, 2, 0, 0),
        struct.pack("<BBHI", 0, 0, 1, 0),
    ],
    ids=["status", "interrupt", "reserved"],
)
def test_an_answer_that_is_none_ends_qemu(start: Start, answer: bytes) -> None:
    process, ours = start(Scenario.READ_REGISTER)
    with ours:
        ours.recv(12)
        ours.sendall(answer)
        code, messages = ended(process)
    assert code == 1
    assert "not a valid answer for the register at offset 0x8" in messages


def test_a_value_that_answers_a_write_ends_qemu(start: Start) -> None:
    process, ours = start(Scenario.WRITE_REGISTER)
    with ours:
        ours.recv(12)
        ours.sendall(struct.pack("<BBHI", 0, 0, 0, 1))
        assert ended(process)[0] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-global", "ethos-u.size=0x4000"], "a register window of 0x4000 bytes is not possible"),
        (["-m", "1G"], "the board's DDR has 2 GiB"),
        (["-machine", "internal-sram=absent"], "there is no memory backend 'absent'"),
        (
            ["-object", "memory-backend-ram,id=small,size=1M", "-machine", "internal-sram=small"],
            "'small' must have 4194304 bytes",
        ),
    ],
)
def test_a_board_that_cannot_be_is_refused(own_qemu: Path, options: list[str], said: str) -> None:
    argv = [own_qemu, "-M", BOARD, "-nodefaults", "-display", "none", "-monitor", "none", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_memory_is_laid_and_read_back(request_for: RequestFor, simulator: QemuSimulator) -> None:
    """In SRAM as well, by both aliases."""
    request = request_for(Scenario.EXIT, 5)
    read_back = ((0x7000_0000, 4), (0x3100_0000, 4), (0x2100_0000, 4))
    images = (*request.images, (0x3100_0000, b"sram"))
    result = simulator.run(dataclasses.replace(request, images=images, read_back=read_back))
    assert result.exit_code == 5
    assert result.memory == (bytes(4), b"sram", b"sram")
