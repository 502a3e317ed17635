"""Tasks that behave as badly as models can."""

import os
import time
from typing import Any

MANY_BYTES = 256 << 20


def prepare() -> None:
    """Nothing is to be imported."""


def perform(task: dict[str, Any]) -> Any:
    """Do what `task` says."""
    how = task["how"]
    if how == "leave a child":
        _forked(lambda: time.sleep(600))
    elif how == "exit":
        os._exit(0)
    elif how == "hide memory":
        _forked(lambda: _forked(_hold))
        time.sleep(600)
    elif how == "raise":
        raise LookupError("x" * 100_000)
    elif how == "leave":
        raise SystemExit("no model today")
    return how


def _hold() -> None:
    held = bytearray(os.urandom(1 << 20) * (MANY_BYTES >> 20))
    time.sleep(600)
    del held


def _forked(function: Any) -> None:
    if os.fork() == 0:
        function()
        os._exit(0)
