"""Runs firmware on QEMU, with the SDK's NPU model as the Ethos-U."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target, family, parse_target
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.device import Device, NpuConfig
from ethosu_sdk.npu.program import Reach
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.simulate import block_counts
from ethosu_sdk.simulate.block_counts import CountsFile
from ethosu_sdk.simulate.qemu import firmware_image
from ethosu_sdk.simulate.qemu.machine import Machine, MachineOptions, start_machine
from ethosu_sdk.simulate.qemu.memories import MPS3_AN547, BoardMap, NpuMemory, board_map, open_bank_access
from ethosu_sdk.simulate.qemu.npu_bridge import NpuBridge, NpuDevice, NpuSocket, NpuTransport, NpuTraps
from ethosu_sdk.simulate.qemu.run_loop import RunLoop
from ethosu_sdk.simulate.simulation import (
    MODEL_FIGURES,
    Figures,
    SimulationRequest,
    SimulationResult,
    cycles_band,
    open_log,
)

_INSTRUCTION_S = 32e-9  # of QEMU's time, with `-icount shift=5`
_FIDELITY = "functional: instructions and NPU arithmetic are exact, cycles of NPU and CPU are modelled"

# QEMU itself has neither Corstone-320 nor a Cortex-M85.
_OWN_BOARD = "; the board is the SDK's own, in a QEMU of its own build"
_NO_SUCH_BOARD = "; Corstone-300 with an Ethos-U85 in it, which exists in this simulator alone"

DeviceFactory = Callable[[Target, NpuMemory], NpuDevice]


def open_npu_model(
    target: Target,
    memory: NpuMemory,
    system: SystemConfig | None = None,
    streams: Mapping[bytes, Reach] | None = None,
) -> NpuDevice:
    """The SDK's NPU model as a device that sees `memory`; its cycles are for `system`, by default the target's if
    vela.ini has that. Jobs of `streams` reach what these may."""
    if system is None and not target.vela_config:
        system = systems.known_system(target.npu, target.system_config, target.memory_mode)
    return Device(NpuConfig.for_target(target.npu, target.macs), memory, system, streams)


class QemuSimulator:
    """QEMU's machine for a board and an NPU; implements :class:`ethosu_sdk.simulate.simulation.Simulator`.

    `board` is ``corstone-300``, which every QEMU has, or ``corstone-310`` or ``corstone-320``, which the QEMU of our
    own build has (qemu/). Any firmware for the board will do, also one that is not the SDK's.

    Several may run at once, in threads or processes: a run shares nothing with another but its `uart_log`, if
    the requests name the same. `open_device` makes the NPU of each run, in place of the SDK's model. `program` is a
    QEMU whose version the caller vouches for: asking it takes a fifth of a short run.
    """

    name = "qemu"

    def __init__(
        self,
        open_device: DeviceFactory = open_npu_model,
        program: Path | None = None,
        board: str = MPS3_AN547.name,
    ) -> None:
        self._open_device = open_device
        self._program = program
        self._board = board_map(board)

    @property
    def figures(self) -> Figures:
        # The firmware counts cycles of the board's clock.
        return replace(MODEL_FIGURES, instructions_per_cycle=1 / (self._board.core_hz * _INSTRUCTION_S))

    def no_block_counts(self) -> str:
        return block_counts.why_uncountable(self._program or self._installed().path)

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        """What of a run is exact, what modelled, and where the board is not one that exists."""
        is_hybrid = npu == "ethos-u85" and self._board is MPS3_AN547
        board = _OWN_BOARD if self._board.own_build else _NO_SUCH_BOARD if is_hybrid else ""
        return _FIDELITY + cycles_band(npu, macs) + board

    def version(self) -> str:
        """The version of the QEMU that is installed. ToolError when it is missing or too old."""
        return self._installed().version

    def run(self, request: SimulationRequest) -> SimulationResult:
        _check_request(request, self._board)
        program = self._program or self._installed().path
        taken = firmware_image.read_loaded(request.elf, self._board)
        firmware_image.check_images(request.images, taken, self._board)
        with (
            _counts_file(request) as counts,
            open_log(request.uart_log) as log,
            start_machine(
                str(program), request.elf.absolute(), _uart(log, request), self._options(request, counts)
            ) as machine,
            open_bank_access(machine.process.program_pid, machine.gdb) as banks,
        ):
            bridge, transport = None, None
            if request.target is not None:
                bridge, transport = self._npu(
                    machine, NpuMemory(machine.memories, banks, self._board), request.target
                )
            loop = RunLoop(machine, bridge, transport, request)
            loop.prepare()
            found = firmware_image.compare_loaded(request.elf, machine) if request.compare_loaded else None
            # Only now: QEMU lays the firmware into its memories before it answers for the first time.
            for address, data in request.images:
                place = machine.shared_bytes(address, len(data))
                assert place is not None  # check_images has seen to it
                place.data[:] = data
            with errors.until(time.monotonic() + request.timeout_s):
                try:
                    exit_code = loop.run()
                except EndedByUart:
                    firmware_image.stop_guest(machine)
                    exit_code = 0
            return SimulationResult(
                uart=machine.console.output,
                exit_code=exit_code,
                npu_accesses=0 if bridge is None else bridge.accesses,
                npu_jobs=() if bridge is None else bridge.jobs,
                memory=firmware_image.read_ranges(request.read_back, machine, banks),
                loaded=found,
                block_counts=None if counts is None else counts.read(),
            )

    def _options(self, request: SimulationRequest, counts: CountsFile | None) -> MachineOptions:
        target = request.target
        return MachineOptions(
            board=self._board,
            semihosting_folder=request.semihosting_cwd,
            semihosting_arguments=request.semihosting_arguments,
            count_instructions=request.count_instructions,
            uart_input=subprocess.DEVNULL if request.uart_input is None else request.uart_input,
            npu_window_bytes=0 if target is None else family(target.npu).register_window_bytes,
            counts=counts,
        )

    def _installed(self) -> tools.ToolStatus:
        return tools.require("qemu-corstone" if self._board.own_build else "qemu-system-arm")

    def _npu(self, machine: Machine, memory: NpuMemory, target: Target) -> tuple[NpuBridge, NpuTransport]:
        device = self._open_device(target, memory)
        bridge = NpuBridge(device, memory, family(target.npu).register_window_bytes)
        if machine.npu is None:
            return bridge, NpuTraps(machine, bridge)
        return bridge, NpuSocket(machine.npu, machine.console, bridge)


def _counts_file(request: SimulationRequest) -> contextlib.AbstractContextManager[CountsFile | None]:
    if request.marks is None:
        return contextlib.nullcontext()
    return block_counts.open_counts_file(block_counts.require_plugin(), request.marks)


def _check_request(request: SimulationRequest, board: BoardMap) -> None:
    firmware_image.check_ranges(request.read_back, board)
    if request.target is not None:
        family(request.target.npu)
    folder = request.semihosting_cwd
    if folder is not None and not folder.is_dir():
        raise InputError(f"there is no folder {folder} for the firmware's files")
    for limit in (request.timeout_s, request.idle_timeout_s):
        if not (math.isfinite(limit) and limit > 0):
            raise UsageError(f"the time limit of {limit} s is not valid", "give a positive number of seconds")


def _uart(log: IO[bytes], request: SimulationRequest) -> tuple[IO[bytes], ...]:
    """Where the output goes; what looks for its end comes last, so that the others have it all."""
    tee = () if request.uart_tee is None else (request.uart_tee,)
    return (log, *tee, cast(IO[bytes], EndMarks(request.end_marks)))


class EndedByUart(Exception):  # noqa: N818 - an event, no error
    """The firmware asked for the end of the simulation by what it printed."""


class EndMarks(io.RawIOBase):
    """A stream that takes what the firmware prints. Raises EndedByUart, once, behind the first of `marks`: Arm's FVPs
    end at a character or a text on UART0."""

    def __init__(self, marks: Sequence[bytes]) -> None:
        super().__init__()
        self._marks = tuple(mark for mark in marks if mark)
        self._recent = b""
        self._ended = False

    def write(self, data: Any) -> int:
        if not self._marks or self._ended:
            return len(data)
        self._recent += bytes(data)
        if any(mark in self._recent for mark in self._marks):
            self._ended = True
            raise EndedByUart
        self._recent = self._recent[-max(map(len, self._marks)) :]
        return len(data)


def named_system(
    npu: str, vela_config: Path | None, system: str | None, memory_mode: str | None
) -> SystemConfig | None:
    """The system of an NPU such as ``ethos-u55`` with the names of the Vela configuration file `vela_config`, by
    default Vela's own; None where nothing is given.

    What is not given is the family's default if the file has that, or the file's only one. InputError for a damaged
    file, UsageError for a name that does not exist.
    """
    row = family(npu)
    if vela_config is not None:
        text, source = filesystem.file_text(vela_config, systems.LARGEST_BYTES), vela_config.name
        ini = systems.parse(text, source)
        return systems.system_from_ini(
            text,
            source,
            npu,
            ini.chosen(systems.SYSTEM, system, row.default_system_config),
            ini.chosen(systems.MODE, memory_mode, row.default_memory_mode),
        )
    if system is None and memory_mode is None:
        return None
    target = parse_target(f"{npu}-{row.macs[0]}", system, memory_mode)
    return systems.memory_map(npu, target.system_config, target.memory_mode)
