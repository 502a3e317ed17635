"""Turns exceptions of the tools into errors of the SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ethosu_sdk import plain_text
from ethosu_sdk.errors import DISK_FULL, BuildError, SdkError

LOG_HINT = "compile.log holds what the tools printed"
_PASS_MANAGER = "An error occurred when running the"
_Result = TypeVar("_Result")


def guarded(what: str, action: Callable[[], _Result], hint: str = LOG_HINT) -> _Result:
    """The result of `action`; anything it raises becomes a BuildError with `hint`. Vela ends with SystemExit."""
    try:
        return action()
    except SdkError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"{what}: {plain_text.error(error)}", hint) from error
    except (Exception, SystemExit) as error:
        raise BuildError(f"{what}: {plain_text.error(_cause(error))}", hint) from error


def _cause(error: BaseException) -> BaseException:
    """What failed inside of one of ExecuTorch's passes: their manager's own error lists the names of all passes."""
    while str(error).startswith(_PASS_MANAGER) and error.__cause__ is not None:
        error = error.__cause__
    return error
