"""Firmware programs for the simulator, and the check that no test leaves anything behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ethosu_sdk.simulators.base import SimulationRequest, SimulationResult
from ethosu_sdk.simulators.qemu.simulator import QemuSimulator
from ethosu_sdk.targets import parse_target
from tests.integration.qemu.firmware import traces
from tests.integration.qemu.firmware.build import Scenario, compile_program, parameters
from tests.integration.qemu.firmware.doubles import IncrementDevice

U55_128 = parse_target("ethos-u55-128")

TIMEOUT_S = 60.0
IDLE_S = 20.0

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
            target=U55_128,
            timeout_s=TIMEOUT_S,
            idle_timeout_s=IDLE_S,
            uart_log=tmp_path / "uart.log",
        )

    return make


@pytest.fixture
def simulator() -> QemuSimulator:
    return QemuSimulator(lambda _target, memory: IncrementDevice(memory))


@pytest.fixture(autouse=True)
def nothing_is_left(scenarios: Path, tmp_path: Path) -> Iterator[None]:
    before = traces.open_resources()
    yield
    assert traces.qemu_processes(scenarios) == []
    gc.collect()  # an exception that a test looked at is in a cycle with its frame, and that holds the board
    assert traces.open_resources() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"uart.log", "other.log"}


# --- what the firmware sees
