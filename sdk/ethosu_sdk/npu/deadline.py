"""The time limit for an NPU job.

A whole job is one call of the model, and a hostile stream can ask for hours of work. Loops whose length a stream,
weights or registers decide call :func:`check` at least once in some tenths of a second. The deadline belongs to the
context (:mod:`contextvars`): runs in several threads each have their own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ethosu_sdk.errors import SimulationError

_AT: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def until(at: float) -> Iterator[None]:
    """In the block, :func:`check` fails once :func:`time.monotonic` has passed `at`."""
    token = _AT.set(at)
    try:
        yield
    finally:
        _AT.reset(token)


def left_s() -> float:
    """The seconds that are left, infinite without a deadline and negative after it."""
    return _AT.get() - time.monotonic()


def check() -> None:
    """Raise SimulationError when the deadline has passed."""
    if time.monotonic() > _AT.get():
        raise over()


def over() -> SimulationError:
    """The error for a job that exceeds the time limit."""
    return SimulationError("the time limit was reached during an NPU job", "--timeout gives it more time")
