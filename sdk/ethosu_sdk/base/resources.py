"""Files that are not Python, beside the package in a checkout, inside it in a wheel; and toolchain.lock.json."""

from __future__ import annotations

import functools
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base.errors import ToolError

PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def directory(name: str) -> Path:
    """The folder `name` (``firmware`` or ``schemas``). ToolError when the installation lacks it.

    ``ETHOSU_SDK_FIRMWARE`` names another firmware tree, for those who change the firmware of an installed SDK.
    """
    override = os.environ.get("ETHOSU_SDK_FIRMWARE") if name == "firmware" else None
    if override:
        if not Path(override).is_dir():
            raise ToolError(f"ETHOSU_SDK_FIRMWARE names no folder: {override}", "correct or unset it")
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


# The Debian packages and FVP archives that the SDK is built and tested with.


@dataclass(frozen=True)
class FvpArchive:
    """One archive that Arm publishes. `md5` and `sha256` are Arm's own; one of them is empty where it gives none."""

    name: str
    version: str
    machine: str  # as platform.machine() says it
    file: str
    url: str
    md5: str = ""
    sha256: str = ""


def _lock_document() -> dict[str, Any]:
    path = file("toolchain.lock.json")
    if path is None:
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@functools.cache
def fvp_archives() -> tuple[FvpArchive, ...]:
    """The archives of FVPs, the newest of each name and machine first; none where the lock is missing."""
    rows = _lock_document().get("fvp", ())
    names = FvpArchive.__dataclass_fields__
    return tuple(FvpArchive(**{key: value for key, value in row.items() if key in names}) for row in rows)


@functools.cache
def debian_versions() -> dict[str, str]:
    """Debian package → its locked version, for this machine; empty where the lock has none for it."""
    return {row["name"]: row["version"] for row in _debian_rows()}


@functools.cache
def debian_licences() -> dict[str, str]:
    """Debian package → its licence as an SPDX expression, where the lock says it."""
    return {row["name"]: row["licence"] for row in _debian_rows() if row.get("licence")}


def _debian_rows() -> list[dict[str, str]]:
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
    rows: list[dict[str, str]] = _lock_document().get("apt", {}).get(architecture, [])
    return rows
