"""Text made fit for a terminal, and standard output and error that never break a command.

A name may hold the codes that move a cursor, set a window's title or turn the direction of writing, and so forge what
the SDK says: what is not printable is shown as an escape. What cannot be written is noted, and the command goes on:
its exit code belongs to its work, and a reader that has gone (`… | head`) must not change it.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import textwrap
from typing import Any, TextIO

_LONGEST_ERROR = 500
_MOST_READ = 10_000  # of an exception's text, which may be of any length


def line(value: object) -> str:
    """`value` as a text on one line: every character that is not printable becomes an escape."""
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def cut(value: object, most: int) -> str:
    """`value` on one line of at most `most` characters; an ellipsis is the last of what is longer."""
    text = line(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def error(value: BaseException) -> str:
    """An exception that others raised, on one line: its type and the first line of its text, cut."""
    name = type(value).__name__
    try:
        found = str(value)[:_MOST_READ].strip().splitlines()
    except Exception:  # what makes the text is code of others too
        found = []
    return cut(f"{name}: {found[0]}" if found else name, _LONGEST_ERROR)


def lines(value: object) -> str:
    """The same for text of several lines: line ends and tabulators stay."""
    text = str(value).replace("\r\n", "\n")
    return "".join(c if c in "\n\t" else _shown(c) for c in text)


def message(word: str, text: str, width: int | None = None) -> str:
    """A message such as ``error: …``. Its further lines are indented: none of them can pass for another message. With
    a `width`, longer lines are broken at words."""
    first, *rest = lines(text).split("\n")
    rest = [more if not more or more[0].isspace() else f"  {more}" for more in rest]
    found = [f"{word}: {first}", *rest]
    if width is not None:
        keep: dict[str, Any] = {
            "break_long_words": False,
            "break_on_hyphens": False,
            "replace_whitespace": False,
        }
        found = [textwrap.fill(row, width, subsequent_indent="  ", **keep) for row in found]
    return "\n".join(found) + "\n"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(count: int, noun: str) -> str:
    """A number of things, such as ``1 sample`` or ``2,000 samples``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


# Standard output and error.

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


def guard_streams() -> None:
    """Put such streams in the place of ``sys.stdout`` and ``sys.stderr``.

    A standard stream that is closed becomes /dev/null: else the next file to be opened would take its number, and
    get what is printed.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = _stream(sys.stdout, 1, by_line=os.isatty(1))
    sys.stderr = _stream(sys.stderr, 2, by_line=True)


def stream_failure(stream: TextIO) -> OSError | None:
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
