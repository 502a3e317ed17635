"""Runs firmware on QEMU, with the SDK's NPU model as the Ethos-U."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from ethosu_sdk import tools
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.device import Device, NpuConfig
from ethosu_sdk.npu.reach import Reach
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.simulators.base import (
    MODEL_FIGURES,
    Figures,
    SimulationRequest,
    SimulationResult,
    cycles_band,
)
from ethosu_sdk.simulators.qemu import firmware_image, loaded, read_back
from ethosu_sdk.simulators.qemu.bank_access import open_bank_access
from ethosu_sdk.simulators.qemu.command_line import MachineOptions, Semihosting
from ethosu_sdk.simulators.qemu.counting import block_counts, plugin
from ethosu_sdk.simulators.qemu.counting.block_counts import CountsFile
from ethosu_sdk.simulators.qemu.loop import Limits, RunLoop
from ethosu_sdk.simulators.qemu.machine import Machine, start
from ethosu_sdk.simulators.qemu.memory import NpuMemory
from ethosu_sdk.simulators.qemu.memory_map import MPS3_AN547, BoardMap, board_map
from ethosu_sdk.simulators.qemu.npu_bridge import NpuBridge, NpuDevice, NpuTransport
from ethosu_sdk.simulators.qemu.npu_socket import NpuSocket
from ethosu_sdk.simulators.qemu.npu_traps import NpuTraps
from ethosu_sdk.simulators.qemu.uart_end import EndedByUart, EndMarks
from ethosu_sdk.simulators.uart_log import open_log
from ethosu_sdk.targets import Target, family

_PROGRAM = "qemu-system-arm"
_OWN_PROGRAM = "qemu-corstone"  # of our own build

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
        system = system_config.known(target.npu, target.system_config, target.memory_mode)
    return Device(NpuConfig.for_target(target.npu, target.macs), memory, system, streams)


class QemuSimulator:
    """QEMU's machine for a board and an NPU; implements :class:`ethosu_sdk.simulators.base.Simulator`.

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
        """Those of the NPU model; instructions of the processor can be counted."""
        # The firmware counts cycles of the board's clock.
        return replace(MODEL_FIGURES, instructions_per_cycle=1 / (self._board.core_hz * _INSTRUCTION_S))

    def no_block_counts(self) -> str:
        """Why this QEMU cannot count executed blocks; empty if it can."""
        return plugin.unavailable(self._program or self._installed().path)

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        """What of a run is exact, what modelled, and where the board is not one that exists."""
        is_hybrid = npu == "ethos-u85" and self._board is MPS3_AN547
        board = _OWN_BOARD if self._board.own_build else _NO_SUCH_BOARD if is_hybrid else ""
        return _FIDELITY + cycles_band(npu, macs) + board

    def version(self) -> str:
        """The version of the QEMU that is installed. ToolError when it is missing or too old."""
        return self._installed().version

    def run(self, request: SimulationRequest) -> SimulationResult:
        """Run the firmware to its own end; see :meth:`ethosu_sdk.simulators.base.Simulator.run`."""
        begun = time.monotonic()
        _check_request(request, self._board)
        program = self._program or self._installed().path
        taken = firmware_image.read_loaded(request.elf, self._board)
        firmware_image.check_images(request.images, taken, self._board)
        with (
            _counts_file(request) as counts,
            open_log(request.uart_log) as log,
            start(
                str(program), request.elf.absolute(), _uart(log, request), self._options(request, counts)
            ) as machine,
            open_bank_access(machine.process.program_pid, machine.gdb) as banks,
        ):
            memory = NpuMemory(machine.memories, banks, self._board)
            npu = self._npu(machine, memory, request.target)
            loop = RunLoop(machine, npu, Limits(request.timeout_s, request.idle_timeout_s), request.elf)
            loop.prepare()
            found = loaded.compare(request.elf, machine) if request.compare_loaded else None
            # Only now: QEMU lays the firmware into its memories before it answers for the first time.
            for address, data in request.images:
                machine.lay(address, data)
            with deadline.until(time.monotonic() + request.timeout_s):
                exit_code = _run(loop, machine)
            return SimulationResult(
                uart=machine.console.output,
                exit_code=exit_code,
                wall_time_s=time.monotonic() - begun,
                npu_accesses=npu[0].accesses if npu is not None else 0,
                npu_jobs=npu[0].jobs if npu is not None else (),
                memory=read_back.read(request.read_back, machine, banks),
                loaded=found,
                block_counts=None if counts is None else counts.read(),
            )

    def _options(self, request: SimulationRequest, counts: CountsFile | None) -> MachineOptions:
        return MachineOptions(
            self._board,
            Semihosting(request.semihosting_cwd, request.semihosting_arguments),
            count_instructions=request.count_instructions,
            npu_window_bytes=0
            if request.target is None
            else family(request.target.npu).register_window_bytes,
            counts=counts,
        )

    def _installed(self) -> tools.ToolStatus:
        return tools.require(_OWN_PROGRAM if self._board.own_build else _PROGRAM)

    def _npu(
        self, machine: Machine, memory: NpuMemory, target: Target | None
    ) -> tuple[NpuBridge, NpuTransport] | None:
        if target is None:
            return None
        bridge = NpuBridge(
            self._open_device(target, memory), memory, family(target.npu).register_window_bytes
        )
        if machine.npu is None:
            return bridge, NpuTraps(machine, bridge)
        return bridge, NpuSocket(machine.npu, machine.console, bridge)


def _counts_file(request: SimulationRequest) -> contextlib.AbstractContextManager[CountsFile | None]:
    if request.marks is None:
        return contextlib.nullcontext()
    return block_counts.open_file(plugin.require(), request.marks)


def _run(loop: RunLoop, machine: Machine) -> int:
    try:
        return loop.run()
    except EndedByUart:
        read_back.stop(machine)
        return 0


def _check_request(request: SimulationRequest, board: BoardMap) -> None:
    read_back.check(request.read_back, board)
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
