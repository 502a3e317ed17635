"""What a device may say of its counters, where it can be, and what its port is."""

from __future__ import annotations

import hashlib
import zlib

import pytest
from msgspec.structs import replace

from ethosu_sdk.base.errors import SimulationError, UsageError
from ethosu_sdk.simulate.device import device
from ethosu_sdk.simulate.device.device import Identity
from ethosu_sdk.simulate.device.port import Place, parse_place, record_of

ADAPTER = "USB VID:PID=0D28:0204"


def identity(simulator: str = "", adapter: str = "") -> Identity:
    return Identity(
        "serial:/dev/ttyACM0", "device_runner 0.1.0", "corstone-300", 4, "0" * 64, simulator, adapter
    )


@pytest.mark.parametrize(
    ("found", "kind", "source", "is_absent"),
    [
        (identity(adapter=ADAPTER), "hardware", "measured", False),
        (identity("qemu 7.2", ADAPTER), "simulated", "modelled", False),  # a second machine may simulate
        (identity("qemu 7.2"), "simulated", "modelled", False),
        (identity("fvp 11.27"), "simulated", "measured", False),
        (identity("renode 1.15", ADAPTER), "simulated", "measured", True),
        (identity(), "unknown", "measured", True),
    ],
)
def test_counters_are_measured_on_hardware_alone(
    found: Identity, kind: str, source: str, is_absent: bool
) -> None:
    assert found.kind == kind
    assert (found.figures.source, bool(found.figures.absent)) == (source, is_absent)


def test_hardware_is_untested() -> None:
    class NoWire:
        pass

    opened = device.Device(NoWire(), identity(adapter=ADAPTER))  # type: ignore[arg-type]
    assert "untested on hardware" in opened.fidelity("ethos-u55", 128)


def test_a_place_is_a_port_or_a_socket_of_this_machine() -> None:
    assert parse_place("serial:/dev/ttyUSB0") == Place("serial", "/dev/ttyUSB0")
    assert parse_place("serial:COM3") == Place("serial", "COM3")
    assert parse_place("socket:localhost:4000") == Place("socket", "localhost", 4000)
    assert parse_place("socket:[::1]:4000") == Place("socket", "::1", 4000)


@pytest.mark.parametrize(
    "text",
    ["", "serial", "serial:", "socket:", "socket::1", "socket:127.0.0.1:", "socket:127.0.0.1:65536", "tty:x"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no device"):
        parse_place(text)


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "example.org", "::"])
def test_another_machine_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="another machine"):
        parse_place(f"socket:{host}:4000")


@pytest.mark.parametrize("change", [{"board": "corstone-320"}, {"code_bytes": 5}, {"code_sha256": "1" * 64}])
def test_other_firmware_is_refused(change: dict[str, object]) -> None:
    code = b"code"
    right = replace(identity(), code_sha256=hashlib.sha256(code).hexdigest())
    device.check_firmware(right, "corstone-300", code, "device_runner.elf")
    with pytest.raises(SimulationError):
        device.check_firmware(replace(right, **change), "corstone-300", code, "device_runner.elf")


def test_a_mark_has_the_simulator_and_a_crc() -> None:
    found = device.mark("qemu 7.2")
    assert len(found) == 64
    assert found[:4] == b"EUD1"
    assert int.from_bytes(found[4:8], "little") == zlib.crc32(found[8:])
    assert found[8:].rstrip(b"\0") == b"qemu 7.2"


def test_damaged_lines_are_no_records() -> None:
    assert record_of(b"~ethosu 0 transfer {} 2 00000000\n") is None
    assert record_of(b"\xff\xfe\n") is None
