"""toolchain.lock.json: which Debian packages and FVP archives the SDK is built and tested with."""

from __future__ import annotations

import functools
import json
import platform
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import resources

_NAME = "toolchain.lock.json"
_DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


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


def _document() -> dict[str, Any]:
    path = resources.file(_NAME)
    if path is None:
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@functools.cache
def fvp_archives() -> tuple[FvpArchive, ...]:
    """The archives of FVPs, the newest of each name and machine first; none where the lock is missing."""
    rows = _document().get("fvp", ())
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
    architecture = _DEBIAN_ARCHITECTURES.get(platform.machine(), "")
    rows: list[dict[str, str]] = _document().get("apt", {}).get(architecture, [])
    return rows
