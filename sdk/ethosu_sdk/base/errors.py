"""The error classes of the SDK: one exit code per class.

Only :mod:`ethosu_sdk.cli` prints an error or ends the process. Everything else raises.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any, ClassVar

DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # nothing more can be written, or to this file
_MACHINE = (*DISK_FULL, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE)
_TORCH_HAS_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"


class SdkError(Exception):
    """What failed (`message`) and what the user can do about it (`hint`).

    `recorded` says that a record of the error is already written, so that no `error/1` follows. `remedies`
    are options with their values, each of which makes the same command line work.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        recorded: bool = False,
        remedies: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        super().__init__(message)
        self.remedies = remedies
        self.message = message
        self.hint = hint
        self.recorded = recorded

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of the frames: the functions of the SDK say nothing of what was wrong."""
        return [f"{type(self).__name__}: {self.message}", *([f"hint: {self.hint}"] if self.hint else [])]

    def to_json(self) -> dict[str, Any]:
        """The error's members in records."""
        hint = {"hint": self.hint} if self.hint else {}
        return {"class": type(self).__name__, "exit_code": self.exit_code, "message": self.message, **hint}


class UsageError(SdkError):
    """The command line itself is wrong: an unknown name, an impossible combination."""

    exit_code = 2


class InputError(SdkError):
    """A model, `.pte`, `.npz`, record or configuration that was given is damaged or does not fit."""

    exit_code = 3


class ToolError(SdkError):
    """A tool that the command needs is missing or has the wrong version."""

    exit_code = 4


class BuildError(SdkError):
    """Compilation, CMake or the link failed, or the model does not fit the board."""

    exit_code = 5


class SimulationError(SdkError):
    """The simulated run crashed, hung, timed out or broke the firmware protocol."""

    exit_code = 6


class VerdictError(SdkError):
    """Everything ran, but the result is not what was demanded."""

    exit_code = 7


def out_of_memory(step: str, error: BaseException) -> BuildError:
    """The error for a `step` that ran out of memory, as NumPy, torch or Python report it."""
    reason = str(error).strip().splitlines()
    return BuildError(
        f"there is not enough memory for this step: {step}" + (f" ({reason[0]})" if reason else ""),
        "free some memory, raise the limit (`ulimit -v`, a container's --memory), or use a smaller model or fewer "
        "inputs at once",
    )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether `error`, or what it came from, is a lack of memory; torch reports one as RuntimeError."""
    return any(
        isinstance(row, MemoryError) or (isinstance(row, RuntimeError) and _TORCH_HAS_NO_MEMORY in str(row))
        for row in _origins(error)
    )


def is_of_the_machine(error: BaseException) -> bool:
    """Whether `error`, or what it came from, says nothing about what was done, but that the machine has no disk space
    or files left, also where a program that was started says so."""
    words = [os.strerror(number) for number in DISK_FULL]
    return any(
        (isinstance(row, OSError) and row.errno in _MACHINE) or any(word in str(row) for word in words)
        for row in _origins(error)
    )


def _origins(error: BaseException | None) -> Iterator[BaseException]:
    """`error` and what it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
