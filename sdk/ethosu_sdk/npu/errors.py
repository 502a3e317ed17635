"""What can go wrong in the NPU model, and the time limit for an NPU job."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum

from ethosu_sdk.base.errors import InputError, SimulationError


class UnsupportedCommand(SimulationError):  # noqa: N818 - named for what it is about
    """A command or field value that hardware executes and this model does not (yet).

    `name` is the register or operation, `offset` its byte offset in the command stream, `value` what it held.
    """

    def __init__(self, name: str, offset: int, value: int, reason: str = "") -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(
            f"the NPU model does not support {name} = {value:#x} at byte {offset} of the command stream{detail}",
            "this is a limit of the model, not of the program",
        )
        self.name = name
        self.offset = offset
        self.value = value


class CommandError(InputError):
    """A word of the command stream that no Ethos-U command has (STATUS.cmd_parse_error on hardware)."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset} of the command stream")
        self.offset = offset


class BranchError(CommandError):
    """A branch to an address without a command (STATUS.branch_fault on Ethos-U85)."""


class Channel(IntEnum):
    """What an access to memory is for, as STATUS.faulting_channel numbers it (Arm's ethosu55_interface.h)."""

    COMMANDS = 0
    IFM = 1
    WEIGHTS = 2
    SCALES = 3
    COPY_READ = 4
    OFM = 8
    COPY_WRITE = 9


class BusError(InputError):
    """An access to memory that does not exist or cannot be written (STATUS.bus_status on hardware).

    `region` and `channel` are those of the access, where they are known.
    """

    def __init__(self, message: str, region: int | None = None, channel: Channel = Channel.COMMANDS) -> None:
        super().__init__(message)
        self.region = region
        self.channel = channel


class WeightStreamError(InputError):
    """A weight stream that cannot be decoded (STATUS.wd_fault on hardware)."""


class WeightOrderError(InputError):
    """A weight stream that does not decode to exactly the weights that the operation needs."""


# The time limit for an NPU job. A whole job is one call of the model, and a hostile stream can ask for hours of work:
# loops whose length a stream, weights or registers decide call `check` at least once in some tenths of a second. Runs
# in several threads have each their own deadline.

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
