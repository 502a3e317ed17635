"""What a firmware sees of the NPU and of its inputs, with a device double at the NPU's place."""

import dataclasses
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.npu.device import BusError
from ethosu_sdk.simulate.qemu import memories
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest
from tests.integration.qemu.conftest import IDLE_S, SMOKE, TIMEOUT_S, Board, RequestFor
from tests.integration.qemu.firmware import traces
from tests.integration.qemu.firmware.build import Scenario, parameters
from tests.integration.qemu.firmware.doubles import MemoryLikeDevice
from tests.integration.qemu.firmware.traces import meanwhile

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def test_every_access_form_acts_on_the_npu_as_on_memory(board: Board, forms: Path, tmp_path: Path) -> None:
    request = SimulationRequest(forms, (), board.target, TIMEOUT_S, IDLE_S, uart_log=tmp_path / "uart.log")
    result = board.simulator(lambda *_: MemoryLikeDevice()).run(request)
    assert result.uart.decode() == "forms 00000011\n"
    assert result.exit_code == 0
    assert result.npu_accesses > 2 * 17 * (32 + 32)


def test_a_register_that_forgets_is_noticed(board: Board, forms: Path, tmp_path: Path) -> None:
    class Forgetful(MemoryLikeDevice):
        def read32(self, offset: int) -> int:
            return super().read32(offset) & ~(offset == 4)

    request = SimulationRequest(forms, (), board.target, TIMEOUT_S, IDLE_S, uart_log=tmp_path / "uart.log")
    assert board.simulator(lambda *_: Forgetful()).run(request).exit_code != 0


@SMOKE
def test_the_exit_code_is_the_firmwares(request_for: RequestFor, simulator: QemuSimulator) -> None:
    for code in (0, 1, 42, 255):
        assert simulator.run(request_for(Scenario.EXIT, code)).exit_code == code


def test_an_interrupt_wakes_the_processor(request_for: RequestFor, simulator: QemuSimulator) -> None:
    result = simulator.run(request_for(Scenario.WAIT_FOR_IRQ, 20))
    assert result.exit_code == 0
    assert result.npu_jobs == (4,) * 20


def test_a_polling_driver_needs_no_interrupt(request_for: RequestFor, simulator: QemuSimulator) -> None:
    assert simulator.run(request_for(Scenario.POLL)).exit_code == 0


@pytest.mark.parametrize(
    ("board", "through_gdb"),
    [("corstone-300", False), ("corstone-300", True), ("corstone-320", False)],
    indirect=["board"],
)
def test_jobs_reach_every_memory_by_both_aliases(
    request_for: RequestFor,
    board: Board,
    simulator: QemuSimulator,
    monkeypatch: pytest.MonkeyPatch,
    through_gdb: bool,
) -> None:
    """Corstone-320 shares all its memories: nothing of them is copied."""
    found = []
    places = memories.ProcessBankAccess.places

    def spy(access: memories.ProcessBankAccess, bank: object) -> object:
        found.append(None if through_gdb else places(access, bank))
        return found[-1]

    monkeypatch.setattr(memories.ProcessBankAccess, "places", spy)
    result = simulator.run(request_for(Scenario.MEMORIES))
    assert result.exit_code == 0
    assert len(result.npu_jobs) == 6
    assert bool(found) == (board.name == "corstone-300")
    assert all((place is None) == through_gdb for place in found)


def test_the_processors_private_memory_is_hidden_from_the_npu(
    request_for: RequestFor, simulator: QemuSimulator, board: Board
) -> None:
    with pytest.raises(BusError, match="private to the processor") as caught:
        simulator.run(request_for(Scenario.PRIVATE_MEMORY))
    assert f"at pc {board.code}" in caught.value.message


def test_images_and_the_elfs_own_data_stand_in_ddr(request_for: RequestFor, simulator: QemuSimulator) -> None:
    payload = bytes(range(256)) * 200
    expected = 0
    for byte in payload:
        expected = (expected * 31 + byte) & 0xFFFF_FFFF
    far = 0xDFFF_FFFC  # the last word of DDR
    request = request_for(Scenario.SUM_PAYLOAD, len(payload), far, payload)
    images = (*request.images, (far, bytes.fromhex("efbeadde")))
    result = simulator.run(dataclasses.replace(request, images=images))
    assert result.uart.decode() == f"{expected:08x}deadbeef"
    assert result.exit_code == 0


def test_instructions_are_counted(request_for: RequestFor, simulator: QemuSimulator) -> None:
    for rounds in (1, 1000, 100_000):
        request = dataclasses.replace(request_for(Scenario.COUNT_CYCLES, rounds), count_instructions=True)
        cycles = int(simulator.run(request).uart, 16)
        counted = cycles * simulator.figures.instructions_per_cycle
        around = 4  # the reads of the counter, which counts in steps of its own
        assert 2 * rounds - 2 <= counted <= 2 * rounds + around + 2


@pytest.mark.parametrize(
    ("board", "target", "offset", "value"),
    [
        ("corstone-300", "ethos-u65-256", 0x0FC, 77),
        ("corstone-300", "ethos-u85-256", 0x1180, 78),
        ("corstone-320", "ethos-u85-256", 0x1FFC, 79),
    ],
    indirect=["board"],
)
def test_the_register_window_has_the_npus_size(
    request_for: RequestFor, board: Board, target: str, offset: int, value: int
) -> None:
    device = MemoryLikeDevice(words={offset: value})
    request = dataclasses.replace(request_for(Scenario.READ_REGISTER, offset), target=parse_target(target))
    result = board.simulator(lambda *_: device).run(request)
    assert result.uart.decode() == f"{value:08x}" * 2
    assert result.npu_accesses == 2


def test_without_an_npu_its_registers_read_as_zero(request_for: RequestFor, simulator: QemuSimulator) -> None:
    request = dataclasses.replace(request_for(Scenario.READ_REGISTER, 0), target=None)
    result = simulator.run(request)
    assert result.uart == b"0" * 16
    assert result.npu_accesses == 0


def test_much_output_arrives_whole_and_is_logged(
    request_for: RequestFor, simulator: QemuSimulator, tmp_path: Path
) -> None:
    size = 500_000
    result = simulator.run(request_for(Scenario.PRINT_MANY, size))
    expected = (b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]
    assert result.uart == expected
    assert (tmp_path / "uart.log").read_bytes() == expected


def test_the_log_is_written_while_the_firmware_runs(
    request_for: RequestFor, simulator: QemuSimulator, tmp_path: Path, scenarios: Path
) -> None:
    def stop_once_logged() -> None:
        traces.wait_for_text(tmp_path / "uart.log", b"still here")
        os.kill(traces.wait_for_qemu(scenarios), signal.SIGKILL)

    with meanwhile(stop_once_logged), pytest.raises(SimulationError, match="SIGKILL"):
        simulator.run(request_for(Scenario.CHATTER))


def test_runs_side_by_side_do_not_meet(
    request_for: RequestFor, simulator: QemuSimulator, tmp_path: Path
) -> None:
    base = request_for(Scenario.EXIT)

    def one(number: int) -> tuple[int, int]:
        payload = bytes([number]) * 1000
        image = parameters(Scenario.SUM_PAYLOAD, 1000, 0xD000_0000, payload)
        images = (image, (0xD000_0000, number.to_bytes(4, "little")))
        result = simulator.run(dataclasses.replace(base, images=images, uart_log=Path(os.devnull)))
        jobs = simulator.run(
            dataclasses.replace(
                base, images=(parameters(Scenario.WAIT_FOR_IRQ, number + 1),), uart_log=Path(os.devnull)
            )
        )
        return int(result.uart[8:], 16), len(jobs.npu_jobs)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [(number, number + 1) for number in range(4)]
    assert not (tmp_path / "uart.log").exists()
