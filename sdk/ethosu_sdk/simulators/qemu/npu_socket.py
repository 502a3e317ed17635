"""Accesses to the NPU that a device in QEMU (qemu/hw/misc/ethos-u.c) sends over a socket: its frames, both ways.

All are little endian and of fixed size. The guest waits for the answer; the level of the interrupt line is in each.
"""

from __future__ import annotations

import socket
import struct

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.simulators.qemu.console import Console
from ethosu_sdk.simulators.qemu.npu_bridge import NpuBridge

_REQUEST = struct.Struct("<BBHII")  # operation, size, zero, offset, value
_ANSWER = struct.Struct("<BBHI")  # status, interrupt line, zero, value
_READ, _WRITE = 1, 2
_DONE, _STOP = 0, 1
_ANSWER_TIMEOUT_S = 30.0


class NpuSocket:
    """Serves the accesses that come over `connection`, while `console` waits for whatever else happens."""

    announces_stops = True

    def __init__(self, connection: socket.socket, console: Console, bridge: NpuBridge) -> None:
        self._socket = connection
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        self._console = console
        self._bridge = bridge
        self._received = bytearray()

    def attach(self) -> None:
        """Have every access served from now on."""
        self._console.attend(self._socket.fileno(), self.service)

    def serve_stop(self, packet: bytes) -> bool:
        """No access stops the guest."""
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
        if (
            operation not in (_READ, _WRITE)
            or zero
            or not inside
            or not whole
            or (operation == _READ and value)
        ):
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
