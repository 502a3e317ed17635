"""Packages of an extra of the SDK, imported where they are used."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from typing import Any

from ethosu_sdk.errors import ToolError

FORMATS, SWEEP = "formats", "sweep"
_WHAT = {FORMATS: "this format needs", SWEEP: "sweeps need"}
_OWN = "ethosu-sdk"


def load(module: str, extra: str) -> Any:
    """The module `module`. ToolError, with what to install, when its package is not there or does not load."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ToolError(
            f"{_WHAT[extra]} the Python package {package}, which cannot be loaded: {error}",
            f"pip install '{_OWN}[{extra}]', or pip install {_requirement(package, extra)}",
        ) from error


def _requirement(package: str, extra: str) -> str:
    """The package as the SDK asks for it, with its version; the name alone where the SDK is not installed."""
    condition = re.compile(rf"({re.escape(package)}\b[^;]*?) *; *extra == ['\"]{extra}['\"]")
    try:
        rows = importlib.metadata.requires(_OWN) or ()
    except importlib.metadata.PackageNotFoundError:
        rows = ()
    return next((found[1] for row in rows if (found := condition.fullmatch(row))), package)
