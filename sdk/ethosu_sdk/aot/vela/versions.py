"""Other versions of Vela: each is kept in a folder of the cache and runs as a process.

What is not in the cache is installed from the package index: this is the one place where a command uses the network.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk import cache, proc, provenance
from ethosu_sdk.errors import SdkError, ToolError, UsageError
from ethosu_sdk.files import locks

PACKAGE = "ethos-u-vela"
_RUN = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
_VERSION = re.compile(r"[1-9]\d?\.\d{1,2}\.\d{1,2}", re.ASCII)
_TIMEOUT_S = 600.0
# Packages that a version needs besides those of the SDK, by its first number.
_NEEDS = {"4": ("lxml<6.0.1",)}
_MARK = "ethosu"  # the package's own folder


def parse(text: str) -> tuple[str, ...]:
    """The versions of a list such as ``4.5.0,5.1.0``. UsageError for a text that is not a version, or for a single
    version."""
    versions = tuple(part.strip() for part in text.split(","))
    for version in versions:
        if _VERSION.fullmatch(version) is None:
            raise UsageError(
                f"--vela: '{version[:40]}' is not a version of Vela", "such as --vela 5.0.0,5.1.0"
            )
    if len(set(versions)) != len(versions) or len(versions) < 2:
        raise UsageError("--vela takes two or more versions, each once", "such as --vela 5.0.0,5.1.0")
    return versions


def is_version(text: str) -> bool:
    """Whether `text` is a version of Vela, such as ``5.1.0``."""
    return _VERSION.fullmatch(text) is not None


def own() -> str:
    """The SDK's own version; empty when it is not installed."""
    return provenance.package_version(PACKAGE) or ""


def is_cached(version: str) -> bool:
    """Whether `version` can be used without the network."""
    return version == provenance.package_version(PACKAGE) or (_place(version) / _MARK).is_dir()


def python_path(version: str) -> str:
    """PYTHONPATH for a process that is to find `version`; empty for the SDK's own. ToolError when it is not in the
    cache and cannot be installed."""
    if version == provenance.package_version(PACKAGE):
        return ""
    place = _place(version)
    with locks.locked(place.parent):
        if not (place / _MARK).is_dir():
            _install(version, place)
    return str(place)


def _place(version: str) -> Path:
    return cache.directory("vela") / version


def _install(version: str, place: Path) -> None:
    try:
        with locks.temporary_directory(".install-", place.parent) as temporary:
            target = temporary / version
            _pip(target, f"{PACKAGE}=={version}", "--no-deps")
            if extra := _NEEDS.get(version.partition(".")[0]):
                _pip(target, *extra)
            target.replace(place)
    except OSError as error:
        raise ToolError(f"cannot keep Vela {version} in {place.parent}: {error.strerror}") from error
    except SdkError as error:
        raise ToolError(
            f"Vela {version} is not in the cache and could not be installed: {_last_line(error.message)}",
            f"pip installs other versions of Vela from the package index, once, into {place.parent}: give pip "
            "access to the index",
        ) from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def _pip(target: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1"]
    proc.run([*command, "--target", str(target), *words], timeout_s=_TIMEOUT_S, error=ToolError)


def _environment(path: str) -> dict[str, str]:
    return {**os.environ, **({"PYTHONPATH": path} if path else {})}


def run(path: str, arguments: Sequence[str], folder: Path) -> None:
    """Run the Vela in `path` (:func:`python_path`) with `arguments` in `folder`. ToolError when it fails."""
    command = [sys.executable, "-c", _RUN, *arguments]
    done = proc.run(
        command, cwd=folder, env=_environment(path), timeout_s=_TIMEOUT_S, error=ToolError, check=False
    )
    if done.returncode:
        raise ToolError(f"Vela ended with exit status {done.returncode}: {_last_line(done.output)}")
