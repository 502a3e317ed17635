"""The NPU's interrupt line, driven through QEMU's qtest object: a true level, independent of the processor.

Source: QEMU, docs/devel/testing/qtest, command ``set_irq_in QOM-PATH NAME NUM LEVEL``. The SSE-300 is the
object ``/machine/iotkit``; its expansion interrupts are the inputs ``EXP_IRQ``.
"""

from __future__ import annotations

import socket

from ethosu_sdk.boards import board

_EXPANSION_INPUT = board("corstone-300").npu_irq - 32  # the expansion interrupts begin at the NVIC's IRQ 32
_ANSWER_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 4096


class QtestError(Exception):
    """QEMU refused a command, gave no answer or is gone."""


class IrqLine:
    """The level of the NPU's interrupt input; QEMU is told of changes only."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        self._level = False

    def set(self, level: bool) -> None:
        """Drive the line. Raises QtestError."""
        if level == self._level:
            return
        self._command(b"set_irq_in /machine/iotkit EXP_IRQ %d %d\n" % (_EXPANSION_INPUT, level))
        self._level = level

    def _command(self, line: bytes) -> None:
        answer = bytearray()
        try:
            self._socket.sendall(line)
            while not answer.endswith(b"\n"):
                data = self._socket.recv(256)
                if not data:
                    raise QtestError("QEMU closed the qtest connection")
                answer += data
                if len(answer) > _MAX_ANSWER_BYTES:
                    raise QtestError(
                        f"QEMU's answer on its qtest connection is too long: {bytes(answer[:20])!r}"
                    )
        except OSError as error:
            raise QtestError(f"QEMU does not answer on its qtest connection: {error}") from error
        if not answer.startswith(b"OK"):
            raise QtestError(
                f"QEMU refused {line.decode().strip()!r}: {answer.decode(errors='replace').strip()}"
            )
