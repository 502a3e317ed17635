"""Standard output and error that never break a command: what cannot be written is noted, and the command goes on.

Its exit code belongs to its work: a reader that has gone (`… | head`) or a closed stream must not turn a failed
verdict into success, nor success into a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

_STANDARD = (0, 1, 2)
_NOBODY_READS = (errno.EPIPE, errno.EBADF)


class _Sink(io.RawIOBase):
    """Writes to a file descriptor. After a failure it takes everything and writes nothing."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        view = memoryview(data)
        while self.failure is None:
            try:
                return os.write(self._descriptor, view)
            except BlockingIOError:  # whoever shares the descriptor made it non-blocking
                select.select((), (self._descriptor,), ())
            except OSError as error:
                self.failure = error
        return view.nbytes


def guard() -> None:
    """Put such streams in the place of ``sys.stdout`` and ``sys.stderr``.

    A standard stream that is closed becomes /dev/null: else the next file to be opened would take its number, and
    get what is printed.
    """
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = _stream(sys.stdout, 1, by_line=os.isatty(1))
    sys.stderr = _stream(sys.stderr, 2, by_line=True)


def failure(stream: TextIO) -> OSError | None:
    """Why what was printed on `stream` has not arrived; None when it has, or when nobody wanted it."""
    stream.flush()
    sink = getattr(getattr(stream, "buffer", None), "raw", None)
    error = sink.failure if isinstance(sink, _Sink) else None
    return None if error is None or error.errno in _NOBODY_READS else error


def _stream(present: TextIO | None, descriptor: int, *, by_line: bool) -> TextIO:
    encoding = getattr(present, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Sink(descriptor))
    # A terminal without UTF-8 shows escapes.
    return io.TextIOWrapper(buffer, encoding, errors="backslashreplace", newline="\n", line_buffering=by_line)
