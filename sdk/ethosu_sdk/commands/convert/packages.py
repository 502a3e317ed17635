"""Packages of the extra `formats`, imported where a format is written."""

from __future__ import annotations

import importlib
from typing import Any

from ethosu_sdk.errors import ToolError


def load(module: str, package: str, version: str) -> Any:
    """The module `module` of `package`. ToolError, with what to install, when it is not there or does not load."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ToolError(
            f"the Python package {package}, which writes this format, cannot be loaded: {error}",
            f"install it: pip install 'ethosu-sdk[formats]', or pip install {package}=={version}",
        ) from error
