"""Trap and emulate: a load or store that the guest was stopped at is carried out on the NPU model instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ethosu_sdk.errors import SdkError, SimulationError
from ethosu_sdk.simulators.qemu import thumb
from ethosu_sdk.simulators.qemu.gdbremote import REGISTER_PC, REGISTER_XPSR, GdbError
from ethosu_sdk.simulators.qemu.machine import Machine
from ethosu_sdk.simulators.qemu.memory import NpuMemory
from ethosu_sdk.simulators.qemu.memory_map import NPU_BASES, npu_offset

_PC, _XPSR = 15, 16  # positions in GdbRemote.registers()
_WORD = 0xFFFF_FFFF


class NpuDevice(Protocol):
    """What the bridge needs of :class:`ethosu_sdk.npu.device.Device`."""

    @property
    def irq(self) -> bool:
        """The level of the interrupt line."""
        ...

    @property
    def jobs(self) -> Sequence[Any]:
        """What the device kept of each job."""
        ...

    def read32(self, offset: int) -> int:
        """The register at `offset` bytes."""
        ...

    def write32(self, offset: int, value: int) -> None:
        """Write the register at `offset` bytes; CMD.run executes the whole job."""
        ...


class NpuBridge:
    """Puts `device` at the NPU's addresses of `machine`.

    Instructions are decoded once per address: code that fetches NPU registers must not be overwritten.
    """

    def __init__(self, machine: Machine, device: NpuDevice, memory: NpuMemory, window_bytes: int) -> None:
        self._machine = machine
        self._device = device
        self._memory = memory
        self._window_bytes = window_bytes
        self._decoded: dict[int, thumb.Access] = {}
        self.accesses = 0

    @property
    def jobs(self) -> tuple[Any, ...]:
        """What the device kept of each job."""
        return tuple(self._device.jobs)

    def attach(self) -> None:
        """Have every access to the NPU's registers stop the guest, at both aliases."""
        for base in NPU_BASES:
            self._machine.gdb.watch(base, self._window_bytes)

    def service(self) -> None:
        """Carry out the access that the guest stands before, step over it and let the guest run.

        Raises SimulationError when the access cannot be emulated or the NPU model fails, GdbError and
        QtestError when QEMU does not play its part.
        """
        gdb = self._machine.gdb
        registers = gdb.registers()
        pc, xpsr = registers[_PC], registers[_XPSR]
        access = self._access_at(pc)
        address, new_base = access.resolve(registers)
        writes = self._emulate(access, address, registers)
        if new_base is not None:
            writes.append((access.base, new_base))
        advanced = thumb.advance_it(xpsr)
        if advanced != xpsr:
            writes.append((REGISTER_XPSR, advanced))
        writes.append((REGISTER_PC, (pc + access.length_bytes) & _WORD))
        self._memory.flush()
        self._machine.irq.set(self._device.irq)
        self.accesses += 1
        gdb.resume(writes)

    def _access_at(self, pc: int) -> thumb.Access:
        access = self._decoded.get(pc)
        if access is None:
            try:
                access = thumb.decode(self._machine.gdb.read_memory(pc, 4), pc)
            except thumb.DecodeError as error:
                raise SimulationError(
                    f"the firmware accesses the NPU in a way that is not emulated: {error}",
                    "access NPU registers by volatile 32-bit loads and stores",
                ) from error
            self._decoded[pc] = access
        return access

    def _emulate(self, access: thumb.Access, address: int, registers: Sequence[int]) -> list[tuple[int, int]]:
        """Do all transfers of one access; the (register, value) pairs that it loads."""
        size = access.size_bytes
        offset = npu_offset(address, size * len(access.targets), self._window_bytes)
        if offset is None or offset % size:
            raise SimulationError(
                f"the firmware accesses {size * len(access.targets)} bytes at {address:#010x},"
                " which is unaligned or partly outside of the NPU's registers"
            )
        loaded = []
        try:
            for index, target in enumerate(access.targets):
                at = offset + index * size
                if access.store:
                    self._store(at, size, registers[target])
                else:
                    loaded.append((target, self._load(at, size, signed=access.signed)))
        except (SdkError, GdbError, MemoryError):
            raise
        except Exception as error:
            raise SimulationError(
                f"the NPU model failed at register {offset:#06x}: {type(error).__name__}: {error}",
                "this is a fault of the SDK; --debug shows where",
            ) from error
        return loaded

    def _load(self, offset: int, size: int, *, signed: bool) -> int:
        """A load narrower than a word takes its lanes of the register."""
        bits = 8 * size
        value = self._device.read32(offset & ~3) >> 8 * (offset & 3) & ((1 << bits) - 1)
        if signed and value >> (bits - 1):
            value |= _WORD << bits
        return value & _WORD

    def _store(self, offset: int, size: int, value: int) -> None:
        """A store narrower than a word leaves the register's other lanes as they read."""
        if size == 4:
            self._device.write32(offset, value)
            return
        shift = 8 * (offset & 3)
        mask = ((1 << 8 * size) - 1) << shift
        word = self._device.read32(offset & ~3)
        self._device.write32(offset & ~3, (word & ~mask) | (value << shift & mask))
