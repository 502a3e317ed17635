"""`run --device`: real firmware on QEMU behind a pseudo-terminal or a socket, against the plain run of the program.

Faults of the line are made by a relay between the command and the device.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from ethosu_sdk.base import npz, proc
from ethosu_sdk.program import protocol
from ethosu_sdk.simulate.device import transfer
from tests import simulated_device
from tests.conftest import ZooPte
from tests.integration.cli import COMMAND, Outcome, assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
U55 = "ethos-u55-128"
# Of a record: what a device has in its own way, and what changes with place and time.
_OWN = (
    *(
        "board_reason",
        "created",
        "device",
        "host",
        "memory",
        "provenance",
        "runtime",
        "simulator",
        "unavailable",
    ),
    "wall_time_s",
)


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with simulated_device.running("--target", U55) as (found, _):
        yield found


def content(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "run.json").read_text())
    return {key: value for key, value in record.items() if key not in _OWN}


def results(folder: Path) -> dict[str, Any]:
    return {name: array.tolist() for name, array in npz.read_npz(folder / "outputs.npz").items()}


@pytest.mark.torch
@pytest.mark.parametrize("name", ["digits_cnn", "ds_cnn"])
def test_a_device_gives_the_records_of_the_plain_run(
    name: str, place: str, zoo_pte: ZooPte, tmp_path: Path
) -> None:
    program = zoo_pte(name, U55).pte
    sdk_ok("run", program, "-o", tmp_path / "plain", cwd=tmp_path)
    sdk_ok("run", program, "--device", place, "-o", tmp_path / "wired", cwd=tmp_path)
    assert content(tmp_path / "wired") == content(tmp_path / "plain")
    assert results(tmp_path / "wired") == results(tmp_path / "plain")
    record = json.loads((tmp_path / "wired" / "run.json").read_text())
    assert record["simulator"]["name"] == "device"
    assert record["device"]["kind"] == "simulated"
    assert record["device"]["simulator"].startswith("qemu ")
    assert record["npu"]["cycles"]["source"] == "modelled"


@pytest.mark.torch
def test_other_commands_take_a_run_on_a_device(place: str, zoo_pte: ZooPte, tmp_path: Path) -> None:
    shutil.copytree(zoo_pte("digits_cnn", U55).pte.parent, tmp_path / "wired")
    sdk_ok("run", "wired/digits_cnn.pte", "--device", place, "-o", "wired", cwd=tmp_path)
    for words in (("profile",), ("advise",), ("summary",), ("report",), ("compare", "wired")):
        sdk_ok(*words, "wired", cwd=tmp_path)
    assert_clear(sdk("advise", "wired", "--try", cwd=tmp_path), 3, "the run was on a device")
    assert_clear(sdk("verify", "wired/run.json", cwd=tmp_path), 2, "the run was on a device")


def test_the_firmware_to_flash_is_the_one_that_is_asked_for(place: str, tmp_path: Path) -> None:
    outcome = sdk_ok("firmware", "-o", "flash", cwd=tmp_path)
    assert (tmp_path / "flash" / "device_runner.elf").is_file()
    sdk_ok("run", GOLDEN_PTE / "softmax.pte", "--device", place, "-o", "wired", cwd=tmp_path)
    digest = json.loads((tmp_path / "wired" / "run.json").read_text())["device"]["code_sha256"]
    assert digest[:16] in outcome.out


def test_a_device_takes_one_program_after_the_other(place: str, tmp_path: Path) -> None:
    for name, options in (("softmax", ()), ("add_u55", ("--repeat", "3")), ("softmax", ())):
        sdk_ok("run", GOLDEN_PTE / f"{name}.pte", "--device", place, *options, "-o", "wired", cwd=tmp_path)


def test_a_socket_without_a_mark_has_no_counters(tmp_path: Path) -> None:
    """Neither the device nor this machine knows what its counters are."""
    with simulated_device.running("--target", U55, "--socket", "--unmarked") as (found, _):
        sdk_ok("run", GOLDEN_PTE / "add_u55.pte", "--device", found, "-o", "wired", cwd=tmp_path)
    record = json.loads((tmp_path / "wired" / "run.json").read_text())
    assert record["device"]["kind"] == "unknown"
    assert "cycles" not in record["npu"]
    assert record["npu"]["counters"] == []
    assert any("nobody knows" in row["reason"] for row in record["unavailable"])


# A relay that damages what goes through it.

Change = Callable[[bytes], bytes]


@contextlib.contextmanager
def relay(place: str, to_device: Change, to_host: Change) -> Iterator[str]:
    """The place of a socket whose one connection is that of `place`, a socket as well. `to_device` gets what the host
    sends, `to_host` whole lines."""
    host, _, number = place.removeprefix("socket:").rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            near, _ = server.accept()
            with near, socket.create_connection((host, int(number))) as far:
                back = threading.Thread(target=_copy, args=(far, near, _by_line(to_host)))
                back.start()
                _copy(near, far, to_device)
                back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"socket:127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _by_line(change: Change) -> Change:
    rest = b""

    def changed(data: bytes) -> bytes:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        return b"".join(change(line + b"\n") for line in lines)

    return changed


def _copy(source: socket.socket, sink: socket.socket, change: Change) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(4096):
            sink.sendall(change(data))
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def socket_place() -> Iterator[str]:
    with simulated_device.running("--target", U55, "--socket") as (found, _):
        yield found


def same(data: bytes) -> bytes:
    return data


def run_wired(place: str, folder: Path, program: str = "softmax") -> Outcome:
    return sdk("run", GOLDEN_PTE / f"{program}.pte", "--device", place, "-o", "wired", cwd=folder)


def assert_no_pass(outcome: Outcome, folder: Path, *words: str) -> None:
    assert_clear(outcome, 6, *words)
    assert not (folder / "wired" / "run.json").exists()
    assert not (folder / "wired" / "outputs.npz").exists()


def test_noise_on_the_way_to_the_device_is_repaired(socket_place: str, tmp_path: Path) -> None:
    generator = random.Random(1)

    def noisy(data: bytes) -> bytes:
        if generator.random() < 0.7:
            return data
        at = generator.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    with relay(socket_place, noisy, same) as place:
        outcome = run_wired(place, tmp_path)
    assert outcome.code == 0, outcome.err


def test_noise_in_the_records_is_an_error(socket_place: str, tmp_path: Path) -> None:
    def noisy(data: bytes) -> bytes:
        return data.replace(b'"crc32":"', b'"crc32":"g')

    with relay(socket_place, same, noisy) as place:
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "damaged")


def test_a_wrong_baud_rate_is_an_error(socket_place: str, tmp_path: Path) -> None:
    """What arrives is no record; nothing that is sent arrives as it should."""

    def garbled(data: bytes) -> bytes:
        return bytes(row ^ 0x55 | 0x80 for row in data)

    with relay(socket_place, same, garbled) as place:
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "does not answer", "115,200 baud")


@pytest.mark.thorough
def test_a_silent_port_is_an_error(tmp_path: Path) -> None:
    master, slave = os.openpty()
    try:
        outcome = run_wired(f"serial:{os.ttyname(slave)}", tmp_path)
    finally:
        os.close(master)
        os.close(slave)
    assert_no_pass(outcome, tmp_path, "does not answer", "nothing arrived")


def test_a_second_program_gets_no_port(place: str, tmp_path: Path) -> None:
    with serial.Serial(place.removeprefix("serial:"), exclusive=True):
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "another program has it open")
    assert run_wired(place, tmp_path).code == 0


def test_a_second_writer_is_an_error(socket_place: str, tmp_path: Path) -> None:
    sent = []

    def shared(data: bytes) -> bytes:
        sent.append(data)
        return data + (transfer.frame(9, protocol.FRAME_CHUNK, 0, b"x") if len(sent) == 3 else b"")

    with relay(socket_place, shared, same) as place:
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "another program writes to the device")


def test_a_pulled_cable_is_an_error(socket_place: str, tmp_path: Path) -> None:
    sent = []

    def pulled(data: bytes) -> bytes:
        sent.append(data)
        if len(sent) == 3:
            raise OSError("pulled")
        return data

    with relay(socket_place, pulled, same) as place:
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "closed by the other side")


@pytest.mark.parametrize("after", [b'"state":"taken"', b"~ethosu 1 method"])
def test_a_reset_in_the_middle_is_an_error(after: bytes, socket_place: str, tmp_path: Path) -> None:
    """Of the transfer, and of the run: the device says that it has just started."""
    payload = b'{"wire":1,"firmware":"x","board":"y","code_bytes":0,"code_sha256":"","simulator":""}'
    covered = b"0 device " + payload
    line = b"~ethosu %s %d %08x\n" % (covered, len(payload), zlib.crc32(covered))

    def reset(data: bytes) -> bytes:
        return data + line if after in data else data

    with relay(socket_place, same, reset) as place:
        assert_no_pass(run_wired(place, tmp_path), tmp_path, "reset in the middle")


def test_a_device_with_another_firmware_or_board_is_refused(place: str, tmp_path: Path) -> None:
    outcome = sdk(
        *("run", GOLDEN_PTE / "softmax.pte", "--device", place, "--board", "corstone-320", "-o", "wired"),
        cwd=tmp_path,
    )
    assert_clear(outcome, 6, "the device is a corstone-300")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device", "serial:"), "is no device"),
        (("--device", "socket:192.0.2.1:7"), "another machine"),
        (("--device", "socket:127.0.0.1:0"), "is no device"),
        (("--device", "serial:/dev/null", "--simulator", "qemu"), "--simulator qemu runs on no device"),
        (("--device", "serial:/dev/null", "--runtime", "executorch"), "runs on no device"),
        (("--device", "serial:/dev/null", "--fast"), "--fast is for the FVP"),
    ],
)
def test_what_a_device_cannot_do_is_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert_clear(sdk("run", GOLDEN_PTE / "softmax.pte", *words, cwd=tmp_path), 2, message)


@pytest.mark.parametrize("place", ["serial:/dev/null", "serial:/dev/ttyNONE", "socket:127.0.0.1:9"])
def test_what_is_not_there_is_an_error(place: str, tmp_path: Path) -> None:
    assert_no_pass(run_wired(place, tmp_path), tmp_path, "cannot")


# kill -9 on either side.


def test_a_killed_host_leaves_nothing(place: str, tmp_path: Path) -> None:
    argv = [
        str(COMMAND),
        "run",
        str(GOLDEN_PTE / "add_u55.pte"),
        "--device",
        place,
        "-o",
        "wired",
        "--repeat",
        "2000",
    ]
    with proc.spawn(argv, cwd=tmp_path) as process:
        log = tmp_path / "wired" / "uart.log"
        wait_for(lambda: log.is_file() and log.stat().st_size > 2000)
        os.kill(process.program_pid, signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "wired" / "run.json").exists()
    # A lock is the kernel's, and goes with its process; the manifest says that the folder is incomplete.
    assert {path.name for path in (tmp_path / "wired").iterdir()} <= {".lock", "manifest.json", "uart.log"}
    # Neither the port nor the device is taken; the rest of the run before is not of the next.
    sdk_ok("run", GOLDEN_PTE / "softmax.pte", "--device", place, "-o", "wired", cwd=tmp_path)


def test_a_killed_device_leaves_nothing(tmp_path: Path) -> None:
    with simulated_device.running("--target", U55) as (place, device):
        argv = [str(COMMAND), "run", str(GOLDEN_PTE / "add_u55.pte"), "--device", place, "-o", "wired"]
        with proc.spawn([*argv, "--repeat", "2000"], cwd=tmp_path) as process:
            log = tmp_path / "wired" / "uart.log"
            wait_for(lambda: log.is_file() and log.stat().st_size > 2000)
            below = proc.descendants(device.pid)
            os.kill(device.program_pid, signal.SIGKILL)
            code = process.wait()
            assert process.stdout is not None
            said = process.stdout.read().decode()
        assert code == 6, said
        assert "the connection to" in said
        assert not (tmp_path / "wired" / "run.json").exists()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
