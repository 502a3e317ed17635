"""The boards that QEMU simulates, with firmware programs for each."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.simulate.qemu.simulator import DeviceFactory, QemuSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest, SimulationResult
from tests.integration.qemu.firmware.build import Scenario, compile_program, parameters
from tests.integration.qemu.firmware.doubles import IncrementDevice

TIMEOUT_S = 60.0
IDLE_S = 20.0

Run = Callable[..., SimulationResult]
RequestFor = Callable[..., SimulationRequest]
Compiled = Callable[[str, str], Path]  # of a program's and a board's name


@dataclass(frozen=True)
class Board:
    """A board that QEMU simulates: its QEMU (None: the installed one), and the NPU that goes with it.

    `code` is how the addresses of its code begin, `reads` how many registers of the NPU are read in about a second.
    """

    name: str
    qemu: Path | None
    target: Target
    code: str
    reads: int

    def simulator(self, open_device: DeviceFactory) -> QemuSimulator:
        """One with the NPU of `open_device`."""
        return QemuSimulator(open_device, self.qemu, self.name)


def board_called(name: str, request: pytest.FixtureRequest) -> Board:
    """The board; skips the test where its QEMU cannot be had."""
    if name == "corstone-300":
        return Board(name, None, parse_target("ethos-u55-128"), "0x1000", reads=3_000)
    return Board(
        name, request.getfixturevalue("own_qemu"), parse_target("ethos-u85-256"), "0x1200", reads=30_000
    )


# For the few tests that stand for all in the smallest set: there, one board is enough.
SMOKE = pytest.mark.parametrize(
    "board", [pytest.param("corstone-300", marks=pytest.mark.core), "corstone-320"], indirect=True
)


@pytest.fixture(scope="session", params=["corstone-300", "corstone-320"])
def board(request: pytest.FixtureRequest) -> Board:
    return board_called(request.param, request)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compiles a test program for a board, once."""

    @functools.cache
    def program(name: str, board: str) -> Path:
        folder = tmp_path_factory.mktemp(f"qemu firmware {board}")  # with spaces, which must not matter
        return compile_program(name, folder, board)

    return program


# Not of the session: a folder may have a `board` of its own, and a fixture that lives longer would keep the first.
@pytest.fixture
def scenarios(board: Board, compiled: Compiled) -> Path:
    return compiled("scenarios", board.name)


@pytest.fixture
def forms(board: Board, compiled: Compiled) -> Path:
    return compiled("forms", board.name)


@pytest.fixture
def request_for(board: Board, scenarios: Path, tmp_path: Path) -> RequestFor:
    def make(scenario: Scenario, first: int = 0, second: int = 0, payload: bytes = b"") -> SimulationRequest:
        return SimulationRequest(
            elf=scenarios,
            images=(parameters(scenario, first, second, payload),),
            target=board.target,
            timeout_s=TIMEOUT_S,
            idle_timeout_s=IDLE_S,
            uart_log=tmp_path / "uart.log",
        )

    return make


@pytest.fixture
def simulator(board: Board) -> QemuSimulator:
    return board.simulator(lambda _target, memory: IncrementDevice(memory))
