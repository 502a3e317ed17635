"""The NPU's register window, on a bank of memory: its offsets and bits, and jobs to start.

Offsets and bits are literals, from the register headers of ethos-u-vela 5.1.0.
"""

from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.device import Device, NpuConfig
from tests.unit.npu.streams import DMA_START, ELEMENTWISE, Ram, Setting, operands, stream, transfer

ID, STATUS, CMD, RESET, QBASE, QBASE_HI, QREAD, QCONFIG, QSIZE, PROT, CONFIG = range(0x00, 0x2C, 4)
COND_STATUS, POWER_CTRL, REGIONCFG, MEM_ATTR, AXI_SRAM, AXI_EXT, BASEP = (
    0x30, 0x38, 0x3C, 0x40, 0x50, 0x54, 0x80,
)  # fmt: skip
RUN, CLEAR_IRQ, Q_ENABLES, STOP_REQUEST = 1, 2, 0xC, 16
STATE, IRQ_RAISED, BUS_STATUS, RESET_STATUS, PARSE_ERROR, END_REACHED, PMU_IRQ, WD_FAULT, _, BRANCH_FAULT = (
    1 << bit for bit in range(10)
)
RAM_BASE, QUEUE, ARENA, FAST = 0x6000_0000, 0x6000_0000, 0x6000_4000, 0x6000_8000
A, B, OUT = 0x100, 0x200, 0x300
SHAPE = (1, 1, 16)
SOURCE, TARGET, LENGTH = 0x100, 0x200, 64
IDENTITY = (0xFE0, 0xFE4, 0xFE8, 0xFD0, 0xFF0, 0xFF4, 0xFF8, 0xFFC)


def add(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    """An int32 addition of 16 elements in region 1."""
    return {**operands((A, B, OUT), SHAPE, 32), "ACTIVATION": 0, **(changes or {})}


def copy(changes: dict[str, Setting] | None = None) -> bytes:
    """A copy of 64 bytes from region 1 to region 2."""
    registers = {**transfer((1, SOURCE), (2, TARGET), LENGTH), **(changes or {})}
    return stream((registers, DMA_START, 0))


ADDITION = stream((add(), ELEMENTWISE, 1))


@dataclass
class Bench:
    """A device on a bank of memory: region 1 is the arena, region 2 another part."""

    device: Device
    ram: Ram

    def prepare(self, data: bytes, base: int = QUEUE) -> None:
        """Lay a command stream into memory and point the NPU at it and at its regions."""
        if base == QUEUE:
            self.ram.put(base, data)
        for offset, value in ((QBASE, base), (QSIZE, len(data)), (BASEP + 8, ARENA), (BASEP + 16, FAST)):
            self.device.write32(offset, value)
            if offset != QSIZE:
                self.device.write32(offset + 4, 0)

    def run(self, data: bytes = ADDITION) -> int:
        """STATUS after a job."""
        self.prepare(data)
        self.device.write32(CMD, RUN | Q_ENABLES)
        return self.device.read32(STATUS)

    def copied(self) -> bytes:
        """What lies where :func:`copy` writes to."""
        start = FAST - self.ram.base + TARGET
        return self.ram.data[start : start + LENGTH].tobytes()


def adding() -> Bench:
    """An Ethos-U55 with the operands of :data:`ADDITION`."""
    ram = Ram()
    ram.put(ARENA + A, np.arange(16, dtype="<i4").tobytes())
    ram.put(ARENA + B, np.full(16, 1000, "<i4").tobytes())
    return Bench(Device(NpuConfig.for_target("ethos-u55", 128), ram), ram)


def copying(npu: str, macs: int) -> Bench:
    """An NPU with what :func:`copy` reads."""
    ram = Ram()
    ram.put(ARENA + SOURCE, bytes(range(1, LENGTH + 1)))
    return Bench(Device(NpuConfig.for_target(npu, macs), ram), ram)
