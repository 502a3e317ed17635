"""QEMU with a device double at the NPU's place: what the firmware sees, and how its ends are told apart."""

from __future__ import annotations

import dataclasses
import gc
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ethosu_sdk.errors import InputError, SimulationError, ToolError, UsageError
from ethosu_sdk.npu.device import BusError
from ethosu_sdk.simulators.base import SimulationRequest, SimulationResult
from ethosu_sdk.simulators.qemu import bank_access, console, firmware_image
from ethosu_sdk.simulators.qemu.simulator import QemuSimulator
from tests.integration.qemu_firmware import traces
from tests.integration.qemu_firmware.build import Scenario, compile_program, parameters
from tests.integration.qemu_firmware.doubles import IncrementDevice, MemoryLikeDevice

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

_TIMEOUT_S = 60.0
_IDLE_S = 20.0

Run = Callable[..., SimulationResult]


@pytest.fixture(scope="session")
def elf_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qemu firmware")  # with a space, which must not matter


@pytest.fixture(scope="session")
def scenarios(elf_folder: Path) -> Path:
    return compile_program("scenarios", elf_folder)


@pytest.fixture(scope="session")
def forms(elf_folder: Path) -> Path:
    return compile_program("forms", elf_folder)


@pytest.fixture
def request_for(scenarios: Path, tmp_path: Path) -> Callable[..., SimulationRequest]:
    def make(scenario: Scenario, first: int = 0, second: int = 0, payload: bytes = b"") -> SimulationRequest:
        return SimulationRequest(
            elf=scenarios,
            images=(parameters(scenario, first, second, payload),),
            npu="ethos-u55",
            macs=128,
            timeout_s=_TIMEOUT_S,
            idle_timeout_s=_IDLE_S,
            uart_log=tmp_path / "uart.log",
        )

    return make


@pytest.fixture
def simulator() -> QemuSimulator:
    return QemuSimulator(lambda _npu, _macs, memory: IncrementDevice(memory))


@pytest.fixture(autouse=True)
def nothing_is_left(scenarios: Path, tmp_path: Path) -> Iterator[None]:
    before = traces.open_resources()
    yield
    assert traces.qemu_processes(scenarios) == []
    gc.collect()  # an exception that a test looked at is in a cycle with its frame, and that holds the board
    assert traces.open_resources() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"uart.log", "other.log"}


# --- what the firmware sees


def test_every_access_form_acts_on_the_npu_as_on_memory(forms: Path, tmp_path: Path) -> None:
    request = SimulationRequest(
        forms, (), "ethos-u55", 128, _TIMEOUT_S, _IDLE_S, uart_log=tmp_path / "uart.log"
    )
    result = QemuSimulator(lambda *_: MemoryLikeDevice()).run(request)
    assert result.uart.decode() == "forms 00000011\n"
    assert result.exit_code == 0
    assert result.npu_accesses > 2 * 17 * (32 + 32)


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_is_the_firmwares(request_for: Run, simulator: QemuSimulator, code: int) -> None:
    assert simulator.run(request_for(Scenario.EXIT, code)).exit_code == code


def test_an_interrupt_wakes_the_processor(request_for: Run, simulator: QemuSimulator) -> None:
    result = simulator.run(request_for(Scenario.WAIT_FOR_IRQ, 20))
    assert result.exit_code == 0
    assert result.npu_jobs == (4,) * 20


def test_a_polling_driver_needs_no_interrupt(request_for: Run, simulator: QemuSimulator) -> None:
    assert simulator.run(request_for(Scenario.POLL)).exit_code == 0


@pytest.mark.parametrize("through_gdb", [False, True])
def test_jobs_reach_every_memory_by_both_aliases(
    request_for: Run, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch, through_gdb: bool
) -> None:
    found = []
    places = bank_access.ProcessBankAccess.places

    def spy(access: bank_access.ProcessBankAccess, bank: object) -> object:
        found.append(None if through_gdb else places(access, bank))
        return found[-1]

    monkeypatch.setattr(bank_access.ProcessBankAccess, "places", spy)
    result = simulator.run(request_for(Scenario.MEMORIES))
    assert result.exit_code == 0
    assert len(result.npu_jobs) == 6
    assert found
    assert all((place is None) == through_gdb for place in found)


def test_the_processors_private_memory_is_hidden_from_the_npu(
    request_for: Run, simulator: QemuSimulator
) -> None:
    with pytest.raises(BusError, match="private to the processor") as caught:
        simulator.run(request_for(Scenario.PRIVATE_MEMORY))
    assert "at pc 0x1000" in caught.value.message


def test_images_and_the_elfs_own_data_stand_in_ddr(request_for: Run, simulator: QemuSimulator) -> None:
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


@pytest.mark.parametrize(("npu", "offset", "value"), [("ethos-u65", 0x0FC, 77), ("ethos-u85", 0x1180, 78)])
def test_the_register_window_has_the_npus_size(request_for: Run, npu: str, offset: int, value: int) -> None:
    device = MemoryLikeDevice(words={offset: value})
    request = dataclasses.replace(request_for(Scenario.READ_REGISTER, offset), npu=npu)
    result = QemuSimulator(lambda *_: device).run(request)
    assert result.uart.decode() == f"{value:08x}" * 2
    assert result.npu_accesses == 2


def test_without_an_npu_its_registers_read_as_zero(request_for: Run, simulator: QemuSimulator) -> None:
    request = dataclasses.replace(request_for(Scenario.READ_REGISTER, 0), with_npu=False, npu="", macs=0)
    result = simulator.run(request)
    assert result.uart == b"0" * 16
    assert result.npu_accesses == 0


def test_much_output_arrives_whole_and_is_logged(
    request_for: Run, simulator: QemuSimulator, tmp_path: Path
) -> None:
    size = 500_000
    result = simulator.run(request_for(Scenario.PRINT_MANY, size))
    expected = (b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]
    assert result.uart == expected
    assert (tmp_path / "uart.log").read_bytes() == expected


def test_the_log_is_written_while_the_firmware_runs(
    request_for: Run, simulator: QemuSimulator, tmp_path: Path, scenarios: Path
) -> None:
    def stop_once_logged() -> None:
        traces.wait_for_text(tmp_path / "uart.log", b"still here")
        os.kill(traces.wait_for_qemu(scenarios), signal.SIGKILL)

    thread = threading.Thread(target=stop_once_logged)
    thread.start()
    with pytest.raises(SimulationError, match="SIGKILL"):
        simulator.run(request_for(Scenario.CHATTER))
    thread.join()


def test_runs_side_by_side_do_not_meet(request_for: Run, simulator: QemuSimulator, tmp_path: Path) -> None:
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


# --- how runs end that do not end well


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (Scenario.SPIN, "going round"),
        (Scenario.SLEEP, "nothing was printed"),
        (Scenario.HALF_LINE, "second li"),
    ],
)
def test_a_silent_firmware_is_stopped_and_located(
    request_for: Run, simulator: QemuSimulator, scenario: Scenario, said: str
) -> None:
    with pytest.raises(SimulationError, match=r"hangs: for 0\.7 s") as caught:
        simulator.run(dataclasses.replace(request_for(scenario), idle_timeout_s=0.7))
    function = "main" if scenario == Scenario.SLEEP else "spin_forever"
    assert f"({function}+0x" in caught.value.message
    assert said in caught.value.message


def test_a_talking_firmware_is_stopped_at_the_time_out(request_for: Run, simulator: QemuSimulator) -> None:
    with pytest.raises(SimulationError, match="did not end within 1 s") as caught:
        simulator.run(dataclasses.replace(request_for(Scenario.CHATTER), timeout_s=1.0, idle_timeout_s=0.5))
    assert caught.value.message.count("still here") >= 9  # of the last ten lines, one may be unfinished


def test_a_firmware_that_uses_the_npu_is_not_idle(request_for: Run, simulator: QemuSimulator) -> None:
    request = request_for(Scenario.MANY_READS, 0xFFFF_FFFF)
    with pytest.raises(SimulationError, match=r"did not end within 1\.5 s"):
        simulator.run(dataclasses.replace(request, timeout_s=1.5, idle_timeout_s=0.5))


def test_endless_output_ends_the_run(
    request_for: Run, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "MAX_UART_BYTES", 10_000)
    with pytest.raises(SimulationError, match="printed more than 10,000 bytes") as caught:
        simulator.run(request_for(Scenario.CHATTER))
    assert "(main+0x" in caught.value.message


@pytest.mark.parametrize("scenario", [Scenario.CHATTER, Scenario.PRINT_MANY])
def test_a_log_that_cannot_be_written_ends_the_run(
    request_for: Run, simulator: QemuSimulator, scenario: Scenario
) -> None:
    request = dataclasses.replace(request_for(scenario, 10), uart_log=Path("/dev/full"))
    with pytest.raises(SimulationError, match="UART log cannot be written: No space left"):
        simulator.run(request)


def test_a_lockup_is_located(request_for: Run, simulator: QemuSimulator) -> None:
    with pytest.raises(SimulationError, match="locked up") as caught:
        simulator.run(request_for(Scenario.LOCKUP))
    assert "(fault+0x0)" in caught.value.message
    assert "about to fault" in caught.value.message


def test_a_board_reset_is_no_clean_end(request_for: Run, simulator: QemuSimulator) -> None:
    with pytest.raises(SimulationError, match="reset or powered off"):
        simulator.run(request_for(Scenario.RESET_BOARD))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("scenario", [Scenario.SPIN, Scenario.MANY_READS])
def test_a_simulator_killed_from_outside_is_named(
    request_for: Run, simulator: QemuSimulator, scenarios: Path, number: signal.Signals, scenario: Scenario
) -> None:
    def kill() -> None:
        pid = traces.wait_for_qemu(scenarios)
        killer.wait(0.3)
        os.kill(pid, number)

    killer = threading.Event()
    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(SimulationError, match=f"killed from outside by {number.name}"):
        simulator.run(request_for(scenario, 0xFFFF_FFFF))
    thread.join()


def test_a_signal_that_asks_qemu_to_end_does_not_end_a_run_early(
    request_for: Run, simulator: QemuSimulator, scenarios: Path
) -> None:
    # QEMU would report the same as for a firmware that exits with code 0.
    def ask() -> None:
        pid = traces.wait_for_qemu(scenarios)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            threading.Event().wait(0.1)
            os.kill(pid, number)

    thread = threading.Thread(target=ask)
    thread.start()
    result = simulator.run(request_for(Scenario.MANY_READS, 3000))
    thread.join()
    assert result.exit_code == 0
    assert result.npu_accesses == 3001


def test_a_frozen_simulator_does_not_freeze_the_run(
    request_for: Run, simulator: QemuSimulator, scenarios: Path
) -> None:
    def freeze() -> None:
        pid = traces.wait_for_qemu(scenarios)
        threading.Event().wait(0.3)
        os.kill(pid, signal.SIGSTOP)

    thread = threading.Thread(target=freeze)
    thread.start()
    with pytest.raises(SimulationError, match="hangs"):
        simulator.run(dataclasses.replace(request_for(Scenario.SPIN), idle_timeout_s=0.7))
    thread.join()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_qemu_does_not_outlive_the_sdk(
    request_for: Run, scenarios: Path, tmp_path: Path, number: signal.Signals
) -> None:
    address, data = parameters(Scenario.SPIN)
    log = tmp_path / "uart.log"
    code = (
        "from pathlib import Path\n"
        "from ethosu_sdk.simulators.base import SimulationRequest\n"
        "from ethosu_sdk.simulators.qemu.simulator import QemuSimulator\n"
        f"images = (({address}, bytes.fromhex('{data.hex()}')),)\n"
        f"QemuSimulator().run(SimulationRequest(Path({str(scenarios)!r}), images, '', 0, 60, 60,"
        f" Path({str(log)!r}), with_npu=False))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as child:
        traces.wait_for_text(log, b"going round")
        child.send_signal(number)
        child.wait(10)
    assert traces.wait_until_gone(scenarios)


# --- what the NPU model does


@pytest.mark.parametrize(
    ("scenario", "first", "reason"),
    [
        (Scenario.EXCLUSIVE, 0, r"not emulated: cannot emulate the instruction 5[0-9a-f] e8"),
        (Scenario.UNALIGNED, 0, r"4 bytes at 0x58102002, which is unaligned"),
        (Scenario.STRADDLE, 0xFFC, r"8 bytes at 0x58102ffc, which is unaligned or partly outside"),
    ],
)
def test_an_access_that_cannot_be_emulated_is_an_error(
    request_for: Run, simulator: QemuSimulator, scenario: Scenario, first: int, reason: str
) -> None:
    with pytest.raises(SimulationError, match=reason) as caught:
        simulator.run(request_for(scenario, first))
    assert "at pc 0x1000" in caught.value.message


def test_the_models_own_errors_keep_their_type_and_gain_the_place(request_for: Run) -> None:
    class NotModelledError(SimulationError):
        pass

    raised = NotModelledError("NPU_OP_X is not modelled", "a hint")
    simulator = QemuSimulator(lambda _npu, _macs, memory: IncrementDevice(memory, {0x20: raised}))
    with pytest.raises(NotModelledError, match="NPU_OP_X is not modelled") as caught:
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x20, 5))
    assert caught.value is raised
    assert caught.value.hint == "a hint"
    assert "at pc 0x1000" in str(caught.value)
    assert "(main+0x" in caught.value.message


def test_a_fault_in_the_model_is_a_failed_simulation(request_for: Run) -> None:
    fault = IndexError("out of range")
    simulator = QemuSimulator(lambda _npu, _macs, memory: IncrementDevice(memory, {0x24: fault}))
    with pytest.raises(SimulationError, match="NPU model failed at register 0x0024: IndexError") as caught:
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x24, 5))
    assert caught.value.__cause__ is fault


def test_an_interrupt_by_the_user_passes_through(request_for: Run) -> None:
    interrupt = KeyboardInterrupt()
    simulator = QemuSimulator(
        lambda _npu, _macs, memory: IncrementDevice(memory, {0x24: interrupt})  # type: ignore[dict-item]
    )
    with pytest.raises(KeyboardInterrupt):
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x24, 5))


# --- requests and tools


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ((0x3100_0000, b"1234"), "does not lie in the board's DDR"),
        ((0xDFFF_FFFD, b"1234"), "does not lie in the board's DDR"),
        ((0x7000_0004, b"1234"), "overlaps the 12 bytes at 0x70000000"),
    ],
)
def test_an_image_must_lie_in_ddr_and_alone(
    request_for: Run, simulator: QemuSimulator, image: tuple[int, bytes], reason: str
) -> None:
    request = request_for(Scenario.EXIT)
    with pytest.raises(InputError, match=reason):
        simulator.run(dataclasses.replace(request, images=(*request.images, image)))


def test_an_image_may_not_replace_what_the_elf_loads(request_for: Run, simulator: QemuSimulator) -> None:
    request = request_for(Scenario.EXIT, payload=bytes(65537))  # one byte more than its place
    with pytest.raises(InputError, match="overlaps"):
        simulator.run(request)


def test_a_damaged_elf_is_bad_input(
    request_for: Run, simulator: QemuSimulator, elf_folder: Path, scenarios: Path
) -> None:
    damaged = elf_folder / "damaged.elf"
    whole = scenarios.read_bytes()
    for content in (b"", b"not an ELF file", whole[:40], whole[:100], bytes(1000)):
        damaged.write_bytes(content)
        with pytest.raises(InputError):
            simulator.run(dataclasses.replace(request_for(Scenario.EXIT), elf=damaged))
    with pytest.raises(InputError, match="cannot read"):
        simulator.run(dataclasses.replace(request_for(Scenario.EXIT), elf=elf_folder / "absent.elf"))


def test_an_elf_with_random_damage_is_read_or_refused(elf_folder: Path, scenarios: Path) -> None:
    source = random.Random(11)
    whole = scenarios.read_bytes()
    sections = int.from_bytes(whole[32:36], "little")  # e_shoff
    damaged = elf_folder / "random.elf"
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


def test_impossible_requests_are_refused(request_for: Run, simulator: QemuSimulator, tmp_path: Path) -> None:
    request = request_for(Scenario.EXIT)
    with pytest.raises(UsageError, match="unknown NPU 'ethos-u56'"):
        simulator.run(dataclasses.replace(request, npu="ethos-u56"))
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="time-out"):
            simulator.run(dataclasses.replace(request, timeout_s=seconds))
    with pytest.raises(InputError, match="cannot write"):
        simulator.run(dataclasses.replace(request, uart_log=tmp_path / "no folder" / "uart.log"))


def test_a_qemu_that_cannot_start_the_board_says_why(
    request_for: Run, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ethosu_sdk.simulators.qemu import machine

    argv = machine.qemu_argv
    monkeypatch.setattr(machine, "qemu_argv", lambda *args: (*argv(*args), "-global", "nonsense"))
    with pytest.raises(ToolError, match=r"could not start the board: .*nonsense"):
        simulator.run(request_for(Scenario.EXIT))


def test_the_version_is_the_installed_ones(simulator: QemuSimulator) -> None:
    output = subprocess.run(
        ["qemu-system-arm", "--version"], check=True, capture_output=True, text=True, timeout=20
    ).stdout
    assert f"version {simulator.version()} " in output
