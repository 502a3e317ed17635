"""ethosu-sdk: compile, build, run and verify ExecuTorch models for Arm Ethos-U and Cortex-M.

The functions of :mod:`ethosu_sdk.api` are here too: they are imported when they are asked for, so that a command that
does not need them starts as fast as it can.
"""
# ruff: noqa: F403, F405 - type checkers find in the star import what __all__ lists

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ethosu_sdk.api import *

__version__ = "0.1.0"

__all__ = [
    "CompareOptions",
    "Comparison",
    "CompileOptions",
    "Compiled",
    "DebugOptions",
    "Debugged",
    "Firmware",
    "Inspection",
    "Profile",
    "ProfileOptions",
    "Run",
    "RunOptions",
    "build",
    "compare",
    "compile",
    "debug",
    "inspect",
    "profile",
    "run",
]


class _Package(types.ModuleType):
    """`compile` and `run` are functions here, although folders of this package have the same names."""

    @property
    def compile(self) -> Any:
        """As :func:`ethosu_sdk.api.compile`."""
        return __getattr__("compile")

    @compile.setter
    def compile(self, folder: types.ModuleType) -> None:
        """Python's import binds the folder; it stays in `sys.modules`."""

    @property
    def run(self) -> Any:
        """As :func:`ethosu_sdk.api.run`."""
        return __getattr__("run")

    @run.setter
    def run(self, folder: types.ModuleType) -> None:
        """As that of `compile`."""


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ethosu_sdk' has no attribute {name!r}")
    from ethosu_sdk import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
