"""Where the files that are not Python live: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import os
from pathlib import Path

from ethosu_sdk.errors import ToolError

PACKAGE_ROOT = Path(__file__).resolve().parent
_REPLACEABLE = ("firmware",)


def directory(name: str) -> Path:
    """The folder `name` (``firmware`` or ``schemas``). ToolError when the installation lacks it.

    ``ETHOSU_SDK_FIRMWARE`` names another firmware tree, for those who change the firmware of an installed SDK.
    """
    override = os.environ.get(f"ETHOSU_SDK_{name.upper()}") if name in _REPLACEABLE else None
    if override:
        if not Path(override).is_dir():
            raise ToolError(f"ETHOSU_SDK_{name.upper()} names no folder: {override}", "correct or unset it")
        return Path(override).resolve()
    for candidate in (PACKAGE_ROOT.parents[1] / name, PACKAGE_ROOT / "_data" / name):
        if candidate.is_dir():
            return candidate
    raise ToolError(f"this installation of ethosu-sdk lacks its '{name}' folder", "install it again")


def file(name: str) -> Path | None:
    """The file `name` of the repository's root that an installation carries too, or None."""
    candidates = (PACKAGE_ROOT.parents[1] / name, PACKAGE_ROOT / "_data" / name)
    return next((path for path in candidates if path.is_file()), None)


def repository() -> Path | None:
    """The checkout that this package runs from, or None for an installed wheel."""
    root = PACKAGE_ROOT.parents[1]
    return root if (root / ".git").exists() else None
