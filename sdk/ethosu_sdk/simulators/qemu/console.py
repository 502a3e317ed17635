"""Reads what the guest prints and what QEMU reports, without ever blocking the guest."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from typing import IO

MAX_UART_BYTES = 256 << 20
_MAX_MESSAGE_BYTES = 64 << 10
_TAIL_LINES = 10
_CHUNK_BYTES = 1 << 16


class Console:
    """The guest's UART and QEMU's own messages, read from two pipes.

    :meth:`wait` is what the gdb client waits with: while the guest runs, its output is taken away as it
    arrives and goes to every stream of `logs`, unbuffered ones, so that a full pipe holds nobody up.
    """

    def __init__(self, uart: int, messages: int, logs: Sequence[IO[bytes]]) -> None:
        self._uart = uart
        self._messages = messages
        self._logs = logs
        self._poll = select.poll()
        self._open = {uart, messages}
        for descriptor in self._open:
            self._poll.register(descriptor, select.POLLIN)
        self._output = bytearray()
        self._said = bytearray()
        self._watched: int | None = None
        self._attended: dict[int, Callable[[], bool]] = {}
        self.last_byte_at = time.monotonic()
        self.trouble = ""  # why the run cannot go on: the log cannot be written, or there is too much output

    def attend(self, descriptor: int, service: Callable[[], bool]) -> None:
        """While waiting, call `service` whenever `descriptor` is readable, until it returns False."""
        self._poll.register(descriptor, select.POLLIN)
        self._attended[descriptor] = service

    @property
    def output(self) -> bytes:
        """Every byte that the guest printed."""
        return bytes(self._output)

    @property
    def messages(self) -> str:
        """What QEMU wrote to its standard error, cut after 64 KiB."""
        return self._said.decode(errors="replace").strip()

    def last_lines(self) -> list[str]:
        """The guest's last lines, with everything unprintable replaced: fit for a terminal."""
        text = bytes(self._output[-_CHUNK_BYTES:]).decode("ascii", errors="replace")
        lines = ["".join(c if c.isprintable() else "·" for c in line) for line in text.splitlines()]
        return lines[-_TAIL_LINES:]

    def wait(self, descriptor: int, timeout_s: float) -> bool:
        """Take output until `descriptor` is readable (True) or the time is over (False).

        False as well, at once, when `trouble` arises.
        """
        if self._watched != descriptor:
            self._poll.register(descriptor, select.POLLIN)
            self._watched = descriptor
        deadline = time.monotonic() + timeout_s
        trouble = self.trouble
        while True:
            # Rounded up: a wait that ends before its deadline would be repeated without a pause.
            remaining_ms = int(max(0.0, deadline - time.monotonic()) * 1000 + 0.999)
            ready = [number for number, _ in self._poll.poll(remaining_ms)]
            for number in ready:
                if number in self._attended:
                    self._serve(number)
                elif number != descriptor:
                    self._take(number)
            if descriptor in ready:
                return True
            if time.monotonic() >= deadline or self.trouble != trouble:
                return False

    def drain(self, timeout_s: float) -> None:
        """Take what is left, to the end of both pipes; QEMU must have ended or be about to."""
        for number in [*self._attended, *([] if self._watched is None else [self._watched])]:
            self._poll.unregister(number)
        self._attended.clear()
        self._watched = None
        deadline = time.monotonic() + timeout_s
        while self._open and (remaining := deadline - time.monotonic()) > 0:
            for number, _ in self._poll.poll(int(remaining * 1000) + 1):
                self._take(number)

    def _serve(self, descriptor: int) -> None:
        if not self._attended[descriptor]():
            del self._attended[descriptor]
            self._poll.unregister(descriptor)

    def _take(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK_BYTES)
        if not data:
            self._poll.unregister(descriptor)
            self._open.discard(descriptor)
            return
        if descriptor == self._messages:
            self._said += data[: _MAX_MESSAGE_BYTES - len(self._said)]
            return
        self.last_byte_at = time.monotonic()
        if self.trouble:
            return
        self._output += data
        try:
            if any(log.write(data) != len(data) for log in self._logs):
                self.trouble = "the UART log cannot be written: it accepts no more bytes"
        except OSError as error:
            self.trouble = f"the UART log cannot be written: {error.strerror}"
        if len(self._output) > MAX_UART_BYTES:
            self.trouble = f"the firmware printed more than {MAX_UART_BYTES:,} bytes"
