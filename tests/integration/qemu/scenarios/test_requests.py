"""Requests that cannot be run, and a QEMU that cannot run them."""

import dataclasses
import random
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError, ToolError, UsageError
from ethosu_sdk.simulate.qemu import firmware_image
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from tests import processes
from tests.integration.qemu.conftest import RequestFor
from tests.integration.qemu.firmware.build import Scenario

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


@pytest.mark.parametrize("board", ["corstone-300"], indirect=True)  # the other takes images in more memories
@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ((0x3100_0000, b"1234"), "does not lie in the board's DDR"),
        ((0xDFFF_FFFD, b"1234"), "does not lie in the board's DDR"),
        ((0x7000_0004, b"1234"), "overlaps the 12 bytes at 0x70000000"),
    ],
)
def test_an_image_must_lie_in_ddr_and_alone(
    request_for: RequestFor, simulator: QemuSimulator, image: tuple[int, bytes], reason: str
) -> None:
    request = request_for(Scenario.EXIT)
    with pytest.raises(InputError, match=reason):
        simulator.run(dataclasses.replace(request, images=(*request.images, image)))


def test_an_image_may_not_replace_what_the_elf_loads(
    request_for: RequestFor, simulator: QemuSimulator
) -> None:
    request = request_for(Scenario.EXIT, payload=bytes(65537))  # one byte more than its place
    with pytest.raises(InputError, match="overlaps"):
        simulator.run(request)


def test_a_damaged_elf_is_bad_input(
    request_for: RequestFor, simulator: QemuSimulator, scenarios: Path
) -> None:
    damaged = scenarios.with_name("damaged.elf")
    whole = scenarios.read_bytes()
    for content in (b"", b"not an ELF file", whole[:40], whole[:100], bytes(1000)):
        damaged.write_bytes(content)
        with pytest.raises(InputError):
            simulator.run(dataclasses.replace(request_for(Scenario.EXIT), elf=damaged))
    with pytest.raises(InputError, match="there is no file"):
        simulator.run(dataclasses.replace(request_for(Scenario.EXIT), elf=scenarios.with_name("absent.elf")))


@pytest.mark.parametrize("board", ["corstone-300"], indirect=True)  # nothing is simulated
def test_an_elf_with_random_damage_is_read_or_refused(scenarios: Path) -> None:
    source = random.Random(11)
    whole = scenarios.read_bytes()
    sections = int.from_bytes(whole[32:36], "little")  # e_shoff
    damaged = scenarios.with_name("random.elf")
    refused = 0
    for _ in range(200):
        content = bytearray(whole)
        for _ in range(source.choice((1, 2, 8))):
            start, end = source.choice(((0, 52 + 160), (sections, len(whole))))
            content[source.randrange(start, end)] = source.choice((0, 0x80, 0xFF, source.getrandbits(8)))
        damaged.write_bytes(content)
        try:
            firmware_image.read_loaded(damaged)
        except InputError:
            refused += 1
        firmware_image.read_symbols(damaged)
    assert 20 < refused < 200


def test_impossible_requests_are_refused(
    request_for: RequestFor, simulator: QemuSimulator, tmp_path: Path
) -> None:
    request = request_for(Scenario.EXIT)
    assert request.target is not None
    with pytest.raises(UsageError, match="unknown NPU 'ethos-u56'"):
        simulator.run(
            dataclasses.replace(request, target=dataclasses.replace(request.target, npu="ethos-u56"))
        )
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="time limit"):
            simulator.run(dataclasses.replace(request, timeout_s=seconds))
    with pytest.raises(InputError, match="cannot write"):
        simulator.run(dataclasses.replace(request, uart_log=tmp_path / "no folder" / "uart.log"))


def test_a_qemu_that_cannot_start_the_board_says_why(
    request_for: RequestFor, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ethosu_sdk.simulate.qemu import machine

    argv = machine.qemu_argv
    monkeypatch.setattr(
        machine, "qemu_argv", lambda *args, **options: (*argv(*args, **options), "-global", "nonsense")
    )
    with pytest.raises(ToolError, match=r"could not start the board: .*nonsense"):
        simulator.run(request_for(Scenario.EXIT))


@pytest.mark.parametrize(
    "board", ["corstone-300"], indirect=True
)  # the other's is asked for where it is built
def test_the_version_is_the_installed_ones(simulator: QemuSimulator) -> None:
    output = processes.run(["qemu-system-arm", "--version"], check=True).stdout
    assert f"version {simulator.version()} " in output
