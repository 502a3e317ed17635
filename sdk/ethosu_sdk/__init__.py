"""ethosu-sdk: compile, build, run and verify ExecuTorch models for Arm Ethos-U and Cortex-M. The functions of
:mod:`ethosu_sdk.api` are here too: they are imported when they are asked for, so that a command that does not need
them starts as fast as it can."""
# ruff: noqa: F403, F405 - type checkers find in the star import what __all__ lists

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ethosu_sdk.api import *

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Comparison",
    "Compiled",
    "Debugged",
    "Firmware",
    "Generated",
    "Inspection",
    "Page",
    "Profile",
    "Run",
    "Swept",
    "advise",
    "build",
    "compare",
    "compile",
    "debug",
    "generate",
    "inspect",
    "profile",
    "report",
    "run",
    "sweep",
]


class _Package(types.ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        """Python's import binds folders as `compile` and `run`, too, which are functions here: they are not bound."""
        if name not in __all__ or not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ethosu_sdk' has no attribute {name!r}")
    from ethosu_sdk import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
