"""Trap and emulate: when the guest stops at a load or store to the NPU, it is carried out on the NPU model."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu import thumb
from ethosu_sdk.simulators.qemu.gdbremote import REGISTER_PC, REGISTER_XPSR
from ethosu_sdk.simulators.qemu.machine import Machine
from ethosu_sdk.simulators.qemu.npu_bridge import NpuBridge

_PC, _XPSR = 15, 16  # positions in GdbRemote.registers()
_WORD = 0xFFFF_FFFF


class NpuTraps:
    """Puts the NPU behind `bridge` at its addresses of `machine`, a board without a device for it.

    Instructions are decoded once per address: code that fetches NPU registers must not be overwritten.
    """

    announces_stops = False  # the guest stands at every access anyway

    def __init__(self, machine: Machine, bridge: NpuBridge) -> None:
        assert machine.irq is not None
        self._machine = machine
        self._irq = machine.irq
        self._bridge = bridge
        self._decoded: dict[int, thumb.Access] = {}

    def attach(self) -> None:
        """Have every access to the NPU's registers stop the guest, at both aliases."""
        for base in self._machine.board.npu_bases:
            self._machine.gdb.watch(base, self._bridge.window_bytes)

    def serve_stop(self, packet: bytes) -> bool:
        """Serve the access at which a watchpoint stopped the guest."""
        if b"watch:" not in packet:
            return False
        self.service()
        return True

    def service(self) -> None:
        """Carry out the access that the guest stands before, step over it and let the guest run.

        Raises SimulationError when the access cannot be emulated or the NPU model fails, GdbError and QtestError
        when QEMU does not respond as expected.
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
        self._bridge.settle()
        self._irq.set(self._bridge.irq)
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
        whole = size * len(access.targets)
        offset = self._machine.board.npu_offset(address, whole, self._bridge.window_bytes)
        if offset is None or offset % size:
            raise SimulationError(
                f"the firmware accesses {whole} bytes at {address:#010x},"
                " which is unaligned or partly outside of the NPU's registers"
            )
        loaded = []
        for index, target in enumerate(access.targets):
            at = offset + index * size
            if access.store:
                self._bridge.store(at, size, registers[target])
            else:
                value = self._bridge.load(at, size)
                loaded.append((target, _sign_extended(value, size) if access.signed else value))
        return loaded


def _sign_extended(value: int, size: int) -> int:
    negative = value >> (8 * size - 1)
    return (value | _WORD << 8 * size) & _WORD if negative else value
