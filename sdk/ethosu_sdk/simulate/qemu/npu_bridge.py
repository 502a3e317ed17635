"""The NPU model behind its register window, and the two ways in which the guest's loads and stores come to it."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ethosu_sdk.base.errors import SdkError, SimulationError
from ethosu_sdk.simulate.qemu import thumb
from ethosu_sdk.simulate.qemu.gdb_remote import REGISTER_PC, REGISTER_XPSR, GdbError
from ethosu_sdk.simulate.qemu.machine import Console, Machine
from ethosu_sdk.simulate.qemu.memories import NpuMemory


class NpuDevice(Protocol):
    """What the bridge needs of :class:`ethosu_sdk.npu.device.Device`."""

    @property
    def irq(self) -> bool: ...

    @property
    def jobs(self) -> Sequence[Any]: ...

    def read32(self, offset: int) -> int: ...

    def write32(self, offset: int, value: int) -> None:
        """Write the register at `offset` bytes; CMD.run executes the whole job."""
        ...


class NpuBridge:
    """`device` behind a window of `window_bytes`; `accesses` counts the instructions that reached it."""

    def __init__(self, device: NpuDevice, memory: NpuMemory, window_bytes: int) -> None:
        self._device = device
        self._memory = memory
        self.window_bytes = window_bytes
        self.accesses = 0
        self.last_access_at = 0.0

    @property
    def jobs(self) -> tuple[Any, ...]:
        return tuple(self._device.jobs)

    @property
    def irq(self) -> bool:
        return self._device.irq

    def load(self, offset: int, size: int) -> int:
        """The `size` bytes at `offset`, a multiple of it: a load narrower than a word takes its lanes."""
        with self._faults_of_the_model(offset):
            return self._device.read32(offset & ~3) >> 8 * (offset & 3) & ((1 << 8 * size) - 1)

    def store(self, offset: int, size: int, value: int) -> None:
        """Store `size` bytes: a store narrower than a word leaves the register's other lanes as they read."""
        with self._faults_of_the_model(offset):
            if size == 4:
                self._device.write32(offset, value)
                return
            shift = 8 * (offset & 3)
            mask = ((1 << 8 * size) - 1) << shift
            word = self._device.read32(offset & ~3)
            self._device.write32(offset & ~3, (word & ~mask) | (value << shift & mask))

    def settle(self) -> None:
        """The access is over: what the NPU wrote is where the guest sees it. Raises GdbError."""
        self._memory.flush()
        self.accesses += 1
        self.last_access_at = time.monotonic()

    @contextlib.contextmanager
    def _faults_of_the_model(self, offset: int) -> Iterator[None]:
        try:
            yield
        except (SdkError, GdbError, MemoryError):
            raise
        except Exception as error:
            raise SimulationError(
                f"the NPU model failed at register {offset:#06x}: {type(error).__name__}: {error}",
                "this is a bug in the SDK; --debug shows where",
            ) from error


# The frames of the NPU device in QEMU (qemu/hw/misc/ethos-u.c), both ways: little endian and of fixed size. The guest
# waits for the answer; the level of the interrupt line is in each.
_REQUEST = struct.Struct("<BBHII")  # operation, size, zero, offset, value
_ANSWER = struct.Struct("<BBHI")  # status, interrupt line, zero, value
_READ, _WRITE = 1, 2
_DONE, _STOP = 0, 1
_ANSWER_TIMEOUT_S = 30.0


class NpuSocket:
    """Serves the accesses that a device in QEMU sends over `connection`, while `console` waits for whatever else
    happens."""

    announces_stops = True  # after an error, a packet will say that the guest has stopped at the access

    def __init__(self, connection: socket.socket, console: Console, bridge: NpuBridge) -> None:
        self._socket = connection
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        self._console = console
        self._bridge = bridge
        self._received = bytearray()

    def attach(self) -> None:
        """Have every access to the NPU's registers served from now on."""
        self._console.attend(self._socket.fileno(), self.service)

    def serve_stop(self, packet: bytes) -> bool:
        """False: no stop of the guest is for an access."""
        return False

    def service(self) -> bool:
        """Take what has come and answer the request, if it is all there; False at the end of the connection.

        Raises SimulationError when the access cannot be carried out or the NPU model fails: the guest then stops at
        the instruction.
        """
        try:
            data = self._socket.recv(_REQUEST.size - len(self._received))
        except OSError:
            return False  # QEMU has ended: its other connections show why
        self._received += data
        if len(self._received) < _REQUEST.size:
            return bool(data)
        request = bytes(self._received)
        self._received.clear()
        try:
            value = self._carry_out(*_REQUEST.unpack(request))
            self._bridge.settle()
        except BaseException:
            self._send(_ANSWER.pack(_STOP, 0, 0, 0))
            raise
        return self._send(_ANSWER.pack(_DONE, self._bridge.irq, 0, value))

    def _carry_out(self, operation: int, size: int, zero: int, offset: int, value: int) -> int:
        inside = offset + size <= self._bridge.window_bytes
        whole = size in (1, 2, 4) and offset % size == 0 and value >> 8 * size == 0
        possible = operation == _WRITE or (operation == _READ and not value)
        if zero or not (possible and inside and whole):
            raise SimulationError(
                f"QEMU's NPU device sent an invalid access: operation {operation}, {size} bytes at offset "
                f"{offset:#x}, value {value:#x}"
            )
        if operation == _READ:
            return self._bridge.load(offset, size)
        self._bridge.store(offset, size, value)
        return 0

    def _send(self, answer: bytes) -> bool:
        try:
            self._socket.sendall(answer)
        except OSError:
            return False
        return True


_PC, _XPSR = 15, 16  # positions in GdbRemote.registers()
_WORD = 0xFFFF_FFFF


class NpuTraps:
    """Puts the NPU behind `bridge` at its addresses of `machine`, a board without a device for it: when the guest
    stops at a load or store to the NPU, it is carried out on the NPU model.

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
        """Have every access to the NPU's registers stop the guest, at both aliases. Raises GdbError."""
        for base in self._machine.board.npu_bases:
            self._machine.gdb.watch(base, self._bridge.window_bytes)

    def serve_stop(self, packet: bytes) -> bool:
        """Serve the access at which a watchpoint stopped the guest; False for a `packet` of another stop."""
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


# How accesses of the guest come to a bridge, and its answers back.
NpuTransport = NpuSocket | NpuTraps


def _sign_extended(value: int, size: int) -> int:
    negative = value >> (8 * size - 1)
    return (value | _WORD << 8 * size) & _WORD if negative else value
