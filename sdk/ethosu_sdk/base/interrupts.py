"""Ctrl-C, SIGTERM and SIGHUP: one way out, with exit code 130 and without a traceback, from the first import on.

An entry point calls :func:`end_at_once` before its own imports. So this imports nothing that takes time itself:
`signal` would load `enum` first.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn


EXIT_CODE = 130
_WORD = "interrupted\n"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Who is impatient sends two: meanwhile what is half-done is being removed. After that time the next one is obeyed.
_CLEAN_UP_S = 5.0


def end_at_once() -> None:
    """From here on a signal ends the process: there is nothing to clean up."""
    _handle(_leave)


def run(command: "Callable[[], int]") -> int:
    """The exit code of `command`, in which a signal raises KeyboardInterrupt: `finally` blocks run, children die.

    It is :data:`EXIT_CODE` whenever a signal came, whoever caught the exception.
    """
    handler = _Raise()
    code = EXIT_CODE
    try:
        _handle(handler)
        code = command()
    except KeyboardInterrupt:
        handler.seen = True
    finally:
        _handle(_leave)
    if not handler.seen:
        return code
    sys.stderr.write(_WORD)
    return EXIT_CODE


def leave(code: int) -> "NoReturn":
    """End the process. Python's own way out would take the handlers away first, and then be busy for a while."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _handle(handler: "Callable[[int, FrameType | None], None]") -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and shells for jobs in the background
            signal.signal(number, handler)


def _leave(_number: int, _frame: "FrameType | None") -> None:
    try:
        os.write(2, _WORD.encode())
    finally:
        os._exit(EXIT_CODE)


class _Raise:
    """The signal handler while a command runs."""

    def __init__(self) -> None:
        self.seen = False
        self._at = 0.0

    def __call__(self, number: int, frame: "FrameType | None") -> None:
        if not self.seen:
            self.seen, self._at = True, time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self._at > _CLEAN_UP_S:
            _leave(number, frame)
