"""Tells a caller of every step of a sequence as soon as the firmware reports it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, cast

from ethosu_sdk.evidence import uart

_LONGEST_LINE = 1 << 16
Tell = Callable[[int, dict[int, tuple[int, ...]]], None]


class _Listener(io.RawIOBase):
    """Takes what the UART says, and calls `tell`, with its number and choices, after each inference.

    What it tells is not proven: the evidence of the whole run is checked at its end.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._rest = b""
        self._done = -1
        self._choices: dict[int, tuple[int, ...]] = {}

    def write(self, data: object) -> int:
        content = bytes(cast(bytes, data))
        *lines, self._rest = (self._rest + content).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        for line in lines:
            self._take(line.decode("ascii", errors="replace").rstrip("\r"))
        return len(content)

    def _take(self, line: str) -> None:
        try:
            record = uart.parse_record(line)
        except ValueError:
            return  # a line for people, or one that the evidence will refuse
        if record.type == "inference":
            self._done = record.payload["inference"]
            self._choices = {}
        elif record.type == "choice":
            self._choices[record.payload["input"]] = tuple(record.payload["values"])
        elif self._done >= 0 and record.type in ("state", "output", "end"):
            # The choices of an inference stand between its own record and those of its state and outputs.
            self._tell(self._done, self._choices)
            self._done = -1


def stream(tell: Tell | None) -> IO[bytes] | None:
    """What a simulator copies the UART's output to, for a caller that wants to be told."""
    return None if tell is None else cast(IO[bytes], _Listener(tell))
