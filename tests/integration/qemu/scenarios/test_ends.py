"""How a run ends, and how its ends are told apart."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.simulate.qemu import machine, run_loop
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from tests.integration.qemu.conftest import SMOKE, Board, RequestFor
from tests.integration.qemu.firmware import traces
from tests.integration.qemu.firmware.build import Scenario, parameters
from tests.integration.qemu.firmware.doubles import IncrementDevice
from tests.integration.qemu.firmware.traces import meanwhile

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


@SMOKE
def test_a_silent_firmware_is_stopped_and_located(request_for: RequestFor, simulator: QemuSimulator) -> None:
    for scenario, function, said in (
        (Scenario.SPIN, "spin_forever", "going round"),
        (Scenario.SLEEP, "main", "nothing was printed"),
        (Scenario.HALF_LINE, "spin_forever", "second li"),
    ):
        with pytest.raises(SimulationError, match=r"hangs: for 1\.5 s") as caught:
            simulator.run(dataclasses.replace(request_for(scenario), idle_timeout_s=1.5))
        assert f"({function}+0x" in caught.value.message
        assert said in caught.value.message


@pytest.mark.parametrize(
    ("scenario", "first", "mark"), [(Scenario.CHATTER, 0, b"here"), (Scenario.PRINT_MANY, 3, b"c")]
)
def test_a_firmware_ends_the_run_by_what_it_prints(
    request_for: RequestFor, simulator: QemuSimulator, scenario: Scenario, first: int, mark: bytes
) -> None:
    """Whether it goes on afterwards, or ends the simulation itself at once."""
    for _ in range(3):  # who is first is a race
        result = simulator.run(
            dataclasses.replace(request_for(scenario, first), end_marks=(b"no such", mark))
        )
        assert (result.exit_code, mark in result.uart) == (0, True)


def test_a_talking_firmware_is_stopped_at_the_time_out(
    request_for: RequestFor, simulator: QemuSimulator
) -> None:
    with pytest.raises(SimulationError, match=r"did not end within 2\.5 s") as caught:
        simulator.run(dataclasses.replace(request_for(Scenario.CHATTER), timeout_s=2.5, idle_timeout_s=2.0))
    assert caught.value.message.count("still here") >= 9  # of the last ten lines, one may be unfinished


def test_a_firmware_that_uses_the_npu_is_not_idle(request_for: RequestFor, simulator: QemuSimulator) -> None:
    request = request_for(Scenario.MANY_READS, 0xFFFF_FFFF)
    with pytest.raises(SimulationError, match=r"did not end within 2\.5 s"):
        simulator.run(dataclasses.replace(request, timeout_s=2.5, idle_timeout_s=2.0))


def test_endless_output_ends_the_run(
    request_for: RequestFor, simulator: QemuSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "MAX_UART_BYTES", 10_000)
    with pytest.raises(SimulationError, match="printed more than 10,000 bytes") as caught:
        simulator.run(request_for(Scenario.CHATTER))
    assert "(main+0x" in caught.value.message


@pytest.mark.parametrize("scenario", [Scenario.CHATTER, Scenario.PRINT_MANY])
def test_a_log_that_cannot_be_written_ends_the_run(
    request_for: RequestFor, simulator: QemuSimulator, scenario: Scenario
) -> None:
    request = dataclasses.replace(request_for(scenario, 10), uart_log=Path("/dev/full"), idle_timeout_s=1.5)
    with pytest.raises(SimulationError, match="UART log cannot be written: No space left"):
        simulator.run(request)


@SMOKE
def test_a_lockup_is_located(request_for: RequestFor, simulator: QemuSimulator) -> None:
    with pytest.raises(SimulationError, match="locked up") as caught:
        simulator.run(request_for(Scenario.LOCKUP))
    assert "(fault+0x0)" in caught.value.message
    assert "about to fault" in caught.value.message


def test_a_board_reset_is_no_clean_end(request_for: RequestFor, simulator: QemuSimulator) -> None:
    with pytest.raises(SimulationError, match="reset or powered off"):
        simulator.run(request_for(Scenario.RESET_BOARD))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("scenario", [Scenario.SPIN, Scenario.MANY_READS])
def test_a_simulator_killed_from_outside_is_named(
    request_for: RequestFor,
    simulator: QemuSimulator,
    scenarios: Path,
    number: signal.Signals,
    scenario: Scenario,
) -> None:
    def kill() -> None:
        pid = traces.wait_for_qemu(scenarios)
        time.sleep(0.3)
        os.kill(pid, number)

    with meanwhile(kill), pytest.raises(SimulationError, match=f"killed from outside by {number.name}"):
        simulator.run(request_for(scenario, 0xFFFF_FFFF))


def test_a_signal_that_asks_qemu_to_end_does_not_end_a_run_early(
    request_for: RequestFor, simulator: QemuSimulator, scenarios: Path, board: Board
) -> None:
    # QEMU would report the same as for a firmware that exits with code 0.
    def ask() -> None:
        pid = traces.wait_for_qemu(scenarios)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            time.sleep(0.1)
            os.kill(pid, number)

    with meanwhile(ask):
        result = simulator.run(request_for(Scenario.MANY_READS, board.reads))
    assert result.exit_code == 0
    assert result.npu_accesses == board.reads + 1


def test_a_frozen_simulator_does_not_freeze_the_run(
    request_for: RequestFor, simulator: QemuSimulator, scenarios: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_loop, "_DIAGNOSIS_S", 0.5)
    request = dataclasses.replace(request_for(Scenario.SPIN), idle_timeout_s=1.5)

    def freeze() -> None:
        pid = traces.wait_for_qemu(scenarios)
        traces.wait_for_text(request.uart_log, b"going round")
        os.kill(pid, signal.SIGSTOP)

    with meanwhile(freeze), pytest.raises(SimulationError, match="hangs"):
        simulator.run(request)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_qemu_does_not_outlive_the_sdk(
    board: Board, scenarios: Path, tmp_path: Path, number: signal.Signals
) -> None:
    address, data = parameters(Scenario.SPIN)
    log = tmp_path / "uart.log"
    code = (
        "from pathlib import Path\n"
        "from ethosu_sdk.simulate.simulation import SimulationRequest\n"
        "from ethosu_sdk.simulate.qemu.simulator import QemuSimulator\n"
        f"images = (({address}, bytes.fromhex('{data.hex()}')),)\n"
        f"program = {str(board.qemu or '')!r}\n"
        f"simulator = QemuSimulator(program=Path(program) if program else None, board={board.name!r})\n"
        f"simulator.run(SimulationRequest(Path({str(scenarios)!r}), images, None, 60, 60,"
        f" Path({str(log)!r})))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as child:
        traces.wait_for_text(log, b"going round")
        child.send_signal(number)
        child.wait(10)
    assert traces.wait_until_gone(scenarios)


# --- what the NPU model does


@pytest.mark.parametrize("board", ["corstone-300"], indirect=True)  # the other has the processor do them
@pytest.mark.parametrize(
    ("scenario", "first", "reason"),
    [
        (Scenario.EXCLUSIVE, 0, r"not emulated: cannot emulate the instruction 5[0-9a-f] e8"),
        (Scenario.UNALIGNED, 0, r"4 bytes at 0x58102002, which is unaligned"),
        (Scenario.STRADDLE, 0xFFC, r"8 bytes at 0x58102ffc, which is unaligned or partly outside"),
    ],
)
def test_an_access_that_cannot_be_emulated_is_an_error(
    request_for: RequestFor,
    simulator: QemuSimulator,
    board: Board,
    scenario: Scenario,
    first: int,
    reason: str,
) -> None:
    with pytest.raises(SimulationError, match=reason) as caught:
        simulator.run(request_for(scenario, first))
    assert f"at pc {board.code}" in caught.value.message


def test_the_models_own_errors_keep_their_type_and_gain_the_place(
    request_for: RequestFor, board: Board
) -> None:
    class NotModelledError(SimulationError):
        pass

    raised = NotModelledError("NPU_OP_X is not modelled", "a hint")
    simulator = board.simulator(lambda _target, memory: IncrementDevice(memory, {0x20: raised}))
    with pytest.raises(NotModelledError, match="NPU_OP_X is not modelled") as caught:
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x20, 5))
    assert caught.value is raised
    assert caught.value.hint == "a hint"
    assert f"at pc {board.code}" in str(caught.value)
    assert "(main+0x" in caught.value.message


def test_a_fault_in_the_model_is_a_failed_simulation(request_for: RequestFor, board: Board) -> None:
    fault = IndexError("out of range")
    simulator = board.simulator(lambda _target, memory: IncrementDevice(memory, {0x24: fault}))
    with pytest.raises(SimulationError, match="NPU model failed at register 0x0024: IndexError") as caught:
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x24, 5))
    assert caught.value.__cause__ is fault


def test_an_interrupt_by_the_user_passes_through(request_for: RequestFor, board: Board) -> None:
    interrupt = KeyboardInterrupt()
    simulator = board.simulator(
        lambda _target, memory: IncrementDevice(memory, {0x24: interrupt})  # type: ignore[dict-item]
    )
    with pytest.raises(KeyboardInterrupt):
        simulator.run(request_for(Scenario.WRITE_REGISTER, 0x24, 5))
