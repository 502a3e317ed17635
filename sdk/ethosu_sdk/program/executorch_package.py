"""Finds the installed executorch package without importing it, and names events as its Inspector expects."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ethosu_sdk.base.errors import ToolError

INSTALL = "pip install 'ethosu-sdk[compile]'"


def executorch_root() -> Path:
    """The folder of the installed package. ToolError when it is absent or lacks the C++ runtime."""
    spec = importlib.util.find_spec("executorch")
    locations = [] if spec is None else list(spec.submodule_search_locations or [])
    if not locations:
        raise ToolError("the Python package executorch is not installed", INSTALL)
    for folder in map(Path, locations):
        if (folder / "lib" / "libexecutorch.so").is_file():
            return folder
    raise ToolError("the installed executorch package has no C++ runtime", INSTALL)


def event_place(tensor: str) -> str:
    """What stands in an event's identifier for the TOSA operator that makes `tensor`, in an ETDump and its ETRecord.
    The Inspector takes an identifier for any of which it contains the name: one name must not be in another."""
    return f"[{tensor}]"
