"""The end of a run that the firmware asks for by what it prints: Arm's FVPs end at a character or a text on UART0."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any


class EndedByUart(Exception):  # noqa: N818 - an event, no error
    """The firmware asked for the end of the simulation by what it printed."""


class EndMarks(io.RawIOBase):
    """A stream that takes what the firmware prints. Raises EndedByUart, once, behind the first of `marks`."""

    def __init__(self, marks: Sequence[bytes]) -> None:
        super().__init__()
        self._marks = tuple(mark for mark in marks if mark)
        self._recent = b""
        self._ended = False

    def write(self, data: Any) -> int:
        """Take `data`, all of it."""
        if not self._marks or self._ended:
            return len(data)
        self._recent += bytes(data)
        if any(mark in self._recent for mark in self._marks):
            self._ended = True
            raise EndedByUart
        self._recent = self._recent[-max(map(len, self._marks)) :]
        return len(data)
