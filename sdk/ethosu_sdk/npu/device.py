"""The NPU as software sees it: its register window, interrupt line and PMU in front of the machine.

A job is carried out in full by the write that starts it: software never sees STATUS.state running.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, CommandError
from ethosu_sdk.npu.execute import WeightCache
from ethosu_sdk.npu.machine import Counters, Machine, OperationTrace
from ethosu_sdk.npu.memory import Bytes
from ethosu_sdk.npu.pmu import Pmu

__all__ = ["BusError", "Device", "GuestMemory", "Job", "NpuConfig"]

# Register offsets: Arm Ethos-U55 technical reference manual; register headers of ethos-u-vela 5.1.0.
_ID, _STATUS, _CMD, _RESET = 0x00, 0x04, 0x08, 0x0C
_QBASE, _QBASE_HI, _QREAD, _QCONFIG, _QSIZE = 0x10, 0x14, 0x18, 0x1C, 0x20
_PROT, _CONFIG, _REGIONCFG, _BASEP = 0x24, 0x28, 0x3C, 0x80
_REGIONS = 8
_READ_ONLY = frozenset({_ID, _STATUS, _QREAD, _PROT, _CONFIG})
# Peripheral and component identification, 0xFD0 to 0xFFC.
_IDENTIFICATION = {
    0xFD0: 0x04,
    0xFE0: 0x81,
    0xFE4: 0xB5,
    0xFE8: 0x0B,
    0xFF0: 0x0D,
    0xFF4: 0xF0,
    0xFF8: 0x05,
    0xFFC: 0xB1,
}

# STATUS bits
_IRQ_RAISED, _BUS_STATUS, _PARSE_ERROR, _END_REACHED = 1 << 1, 1 << 2, 1 << 4, 1 << 5
# CMD bits
_CMD_RUN, _CMD_CLEAR_IRQ, _CMD_Q_ENABLES = 1 << 0, 1 << 1, 0xC
_ALIGNMENT = 16


class GuestMemory(Protocol):
    """The memory of the system that the NPU sits in."""

    def window(self, address: int) -> npt.NDArray[np.uint8]:
        """The bytes from `address` to the end of its memory, writable in place. BusError when there is none."""
        ...


@dataclass(frozen=True)
class Job:
    """One command stream that was run: STATUS at its end, and what the machine did."""

    status: int
    error: str
    counters: Counters
    operations: tuple[OperationTrace, ...]


@dataclass
class _GuestRegions:
    """Regions as BASEP and the guest's memory define them."""

    memory: GuestMemory
    bases: list[int]
    windows: dict[int, Bytes] = field(default_factory=dict)

    def __getitem__(self, region: int) -> Bytes:
        if region not in self.windows:
            base = self.bases[region]
            if base % _ALIGNMENT:
                raise BusError(f"BASEP{region} = {base:#x} is not a multiple of {_ALIGNMENT}")
            self.windows[region] = self.memory.window(base)
        return self.windows[region]


class Device:
    """One Ethos-U55: :meth:`read32`, :meth:`write32`, and the level of its interrupt line in `irq`."""

    def __init__(self, config: NpuConfig, memory: GuestMemory) -> None:
        self._config = config
        self._memory = memory
        self._cache = WeightCache()
        self._registers: dict[int, int] = {}
        self._status = 0
        self._protection = 0
        self.pmu = Pmu()
        self.jobs: list[Job] = []

    @property
    def irq(self) -> bool:
        """Level of the interrupt line."""
        return bool(self._status & _IRQ_RAISED)

    def read32(self, offset: int) -> int:
        """The register at byte `offset`. Registers that the model does not have read as 0."""
        if self.pmu.has(offset):
            return self.pmu.read(offset)
        fixed = {
            _ID: self._config.id_word,
            _STATUS: self._status,
            _PROT: self._protection,
            _CONFIG: self._config.config_word,
        }
        return fixed.get(offset, _IDENTIFICATION.get(offset, self._registers.get(offset, 0)))

    def write32(self, offset: int, value: int) -> None:
        """Write the register at byte `offset`. Starting a job runs it to its end.

        Raises UnsupportedCommand for what only this model cannot do, WeightStreamError for weights that do not
        decode. What hardware would report sets STATUS and raises nothing.
        """
        if self.pmu.has(offset):
            self.pmu.write(offset, value)
        elif offset == _RESET:
            self._reset(value)
        elif offset == _CMD:
            self._command(value)
        elif offset not in _READ_ONLY and offset not in _IDENTIFICATION:
            self._registers[offset] = value & 0xFFFF_FFFF

    def _reset(self, value: int) -> None:
        """Soft reset: instant, and the pending protection becomes the active one."""
        self._registers.clear()
        self._status = 0
        self._protection = value & 3
        self._registers[_CMD] = _CMD_Q_ENABLES
        self.pmu = Pmu()

    def _command(self, value: int) -> None:
        self._registers[_CMD] = value & _CMD_Q_ENABLES
        if value & _CMD_CLEAR_IRQ:
            self._status &= ~_IRQ_RAISED
        if value & _CMD_RUN:
            self._run()

    def _run(self) -> None:
        regions = _GuestRegions(self._memory, [self._address(_BASEP + 8 * n) for n in range(_REGIONS)])
        machine = Machine(self._config, regions, self._cache, self._port)
        status, error, position = _END_REACHED, "", 0
        try:
            stream = self._stream()
            position = machine.run(stream)
        except CommandError as problem:
            status, error, position = _PARSE_ERROR, problem.message, problem.offset
        except BusError as problem:
            status, error, position = _BUS_STATUS, problem.message, machine.position
        self._registers[_QREAD] = position
        self._status = status | _IRQ_RAISED
        self.pmu.count(machine.counters)
        self.jobs.append(Job(self._status, error, machine.counters, tuple(machine.trace)))

    def _stream(self) -> bytes:
        base, size = self._address(_QBASE), self._registers.get(_QSIZE, 0)
        if base % _ALIGNMENT:
            raise BusError(f"QBASE = {base:#x} is not a multiple of {_ALIGNMENT}")
        window = self._memory.window(base)
        if size > window.size:
            raise BusError(f"QSIZE = {size:#x} reaches past the end of the memory at {base:#x}")
        return window[:size].tobytes()

    def _address(self, offset: int) -> int:
        """A 32-bit address: the Ethos-U55 has no upper words."""
        return self._registers.get(offset, 0)

    def _port(self, region: int) -> int:
        """The AXI port that a region's traffic takes: REGIONCFG 0 and 1 are port 0, 2 and 3 port 1."""
        return self._registers.get(_REGIONCFG, 0) >> (2 * region) >> 1 & 1
