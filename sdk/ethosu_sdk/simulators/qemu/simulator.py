"""Firmware for Corstone-300 on QEMU, with the SDK's NPU model at the place of the Ethos-U."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from ethosu_sdk import tools
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.device import Device, NpuConfig
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.simulators.base import (
    MODEL_FIGURES,
    Figures,
    SimulationRequest,
    SimulationResult,
    cycles_band,
)
from ethosu_sdk.simulators.qemu import firmware_image
from ethosu_sdk.simulators.qemu.bank_access import open_bank_access
from ethosu_sdk.simulators.qemu.loop import Limits, RunLoop
from ethosu_sdk.simulators.qemu.machine import Machine, Semihosting, start
from ethosu_sdk.simulators.qemu.memory import NpuMemory
from ethosu_sdk.simulators.qemu.memory_map import DDR_BASE, NPU_WINDOW_BYTES
from ethosu_sdk.simulators.qemu.npu_bridge import NpuBridge, NpuDevice
from ethosu_sdk.targets import Target

_PROGRAM = "qemu-system-arm"

# The firmware counts cycles of the board's 32 MHz; with `-icount shift=5` every instruction takes 32 ns of QEMU's
# time.
_CORE_CLOCK_HZ, _INSTRUCTION_S = 32e6, 32e-9
_FIGURES = replace(MODEL_FIGURES, instructions_per_cycle=1 / (_CORE_CLOCK_HZ * _INSTRUCTION_S))

_FIDELITY = "functional: instructions and NPU arithmetic are exact, NPU cycles modelled, CPU time is not"
# QEMU has neither Corstone-320 nor a Cortex-M85.
_NO_SUCH_BOARD = "; Corstone-300 with an Ethos-U85 in it, which exists in this simulator alone"

DeviceFactory = Callable[[Target, NpuMemory], NpuDevice]


def open_npu_model(target: Target, memory: NpuMemory) -> NpuDevice:
    """The SDK's NPU model as a device that sees `memory`."""
    system = system_config.known(target.npu, target.system_config, target.memory_mode)
    return Device(NpuConfig.for_target(target.npu, target.macs), memory, system)


class QemuSimulator:
    """QEMU's ``mps3-an547`` and an NPU; implements :class:`ethosu_sdk.simulators.base.Simulator`.

    Several may run at once, in threads or processes: a run shares nothing with another but its `uart_log`, if
    the requests name the same. `open_device` makes the NPU of each run, in place of the SDK's model. `program` is a
    QEMU whose version the caller vouches for: asking it takes a fifth of a short run.
    """

    name = "qemu"

    def __init__(self, open_device: DeviceFactory = open_npu_model, program: Path | None = None) -> None:
        self._open_device = open_device
        self._program = program

    @property
    def figures(self) -> Figures:
        """Those of the NPU model; instructions of the processor can be counted."""
        return _FIGURES

    def fidelity(self, npu: str | None) -> str:
        """What of a run is exact, what modelled, and where the board is not one that exists."""
        return _FIDELITY + cycles_band(npu) + (_NO_SUCH_BOARD if npu == "ethos-u85" else "")

    def version(self) -> str:
        """The version of the QEMU that is installed. ToolError when it is missing or too old."""
        return tools.require(_PROGRAM).version

    def run(self, request: SimulationRequest) -> SimulationResult:
        """Run the firmware to its own end; see :meth:`ethosu_sdk.simulators.base.Simulator.run`."""
        begun = time.monotonic()
        _check_request(request)
        program = self._program or tools.require(_PROGRAM).path
        firmware_image.check_images(request.images, firmware_image.read_loaded(request.elf))
        with (
            _open_log(request.uart_log) as log,
            start(
                str(program),
                request.elf.absolute(),
                _uart(log, request),
                _semihosting(request),
                count_instructions=request.count_instructions,
            ) as machine,
            open_bank_access(machine.process.program_pid, machine.gdb) as banks,
        ):
            memory = NpuMemory(machine.ddr, banks)
            bridge = self._bridge(machine, memory, request.target)
            limits = Limits(request.timeout_s, request.idle_timeout_s)
            loop = RunLoop(machine, bridge, limits, request.elf)
            loop.prepare()
            # Only now: QEMU lays the firmware into its memories before it answers for the first time.
            for address, data in request.images:
                machine.ddr.data[address - DDR_BASE : address - DDR_BASE + len(data)] = data
            with deadline.until(time.monotonic() + request.timeout_s):
                exit_code = loop.run()
            return SimulationResult(
                uart=machine.console.output,
                exit_code=exit_code,
                wall_time_s=time.monotonic() - begun,
                npu_accesses=bridge.accesses if bridge is not None else 0,
                npu_jobs=bridge.jobs if bridge is not None else (),
            )

    def _bridge(self, machine: Machine, memory: NpuMemory, target: Target | None) -> NpuBridge | None:
        if target is None:
            return None
        return NpuBridge(machine, self._open_device(target, memory), memory, NPU_WINDOW_BYTES[target.npu])


def _check_request(request: SimulationRequest) -> None:
    if request.target is not None and request.target.npu not in NPU_WINDOW_BYTES:
        raise UsageError(f"unknown NPU '{request.target.npu}'", f"one of: {', '.join(NPU_WINDOW_BYTES)}")
    folder = request.semihosting_cwd
    if folder is not None and not folder.is_dir():
        raise InputError(f"there is no folder {folder} for the firmware's files")
    for limit in (request.timeout_s, request.idle_timeout_s):
        if not (math.isfinite(limit) and limit > 0):
            raise UsageError(f"a time-out of {limit} s is not possible", "give a positive number of seconds")


def _uart(log: IO[bytes], request: SimulationRequest) -> tuple[IO[bytes], ...]:
    return (log,) if request.uart_tee is None else (log, request.uart_tee)


def _semihosting(request: SimulationRequest) -> Semihosting:
    return Semihosting(request.semihosting_cwd, request.semihosting_arguments)


@contextlib.contextmanager
def _open_log(path: Path) -> Iterator[IO[bytes]]:
    try:
        log = path.open("wb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    with log:
        yield log
