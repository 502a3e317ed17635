"""Other versions of Vela: cached, installed from the package index, and TOSA graphs compiled with them."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from ethosu_sdk.base import cache, filesystem, proc, tools
from ethosu_sdk.base.errors import BuildError, SdkError, ToolError, UsageError
from ethosu_sdk.compile import vela_capture
from ethosu_sdk.compile.tool_hooks import patched
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_config import VelaConfig

VELA_PACKAGE = "ethos-u-vela"
_RUN = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
_VERSION = re.compile(r"[1-9]\d?\.\d{1,2}\.\d{1,2}", re.ASCII)
_TIMEOUT_S = 600.0
# Packages that a version needs besides those of the SDK, by its first number.
_NEEDS = {"4": ("lxml<6.0.1",)}
_MARK = "ethosu"  # the package's own folder


def parse_versions(text: str) -> tuple[str, ...]:
    """The versions in a list such as ``4.5.0,5.1.0``. UsageError for what is no version, or for a single one."""
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
    return _VERSION.fullmatch(text) is not None


def own_version() -> str:
    return tools.package_version(VELA_PACKAGE) or ""


def is_cached(version: str) -> bool:
    return version == tools.package_version(VELA_PACKAGE) or (_place(version) / _MARK).is_dir()


def python_path(version: str) -> str:
    """PYTHONPATH for a process that is to find `version`; empty for the SDK's own. ToolError when it is not in the
    cache and cannot be installed."""
    if version == tools.package_version(VELA_PACKAGE):
        return ""
    place = _place(version)
    with filesystem.locked_folder(place.parent):
        if not (place / _MARK).is_dir():
            _install(version, place)
    return str(place)


def _place(version: str) -> Path:
    return cache.directory("vela") / version


def _install(version: str, place: Path) -> None:
    try:
        with filesystem.temporary_directory(".install-", place.parent) as temporary:
            target = temporary / version
            _pip(target, f"{VELA_PACKAGE}=={version}", "--no-deps")
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


def run_vela(path: str, arguments: Sequence[str], folder: Path) -> None:
    """Run the Vela in `path` (:func:`python_path`) with `arguments` in `folder`. ToolError when it fails."""
    command = [sys.executable, "-c", _RUN, *arguments]
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    done = proc.run(command, cwd=folder, env=environment, timeout_s=_TIMEOUT_S, error=ToolError, check=False)
    if done.returncode:
        raise ToolError(f"Vela ended with exit status {done.returncode}: {_last_line(done.output)}")


def compile_by_version(
    tosa: bytes, flags: Sequence[str], path: str, config: VelaConfig | None = None
) -> tuple[bytes, VelaCapture]:
    """The payload of a TOSA graph by the Vela in `path`, a process of its own, and what that reports. `path` is as
    :func:`python_path` gives it, `config` the configuration file that the flags call by its `stored_name`. BuildError
    when that Vela refuses the graph or its results cannot be packed."""
    from executorch.backends.arm import arm_vela

    with tempfile.TemporaryDirectory(prefix="ethosu-vela-", dir=vela_capture.spaceless_directory()) as name:
        folder = Path(name)
        other = SimpleNamespace(main=lambda words: run_vela(path, words, folder))
        try:
            words = [*vela_capture.with_config(flags, config, folder), *vela_capture.REPORT_FLAGS]
            with patched(arm_vela, vela=other):
                payload = bytes(arm_vela.vela_compile(tosa, words, intermediate_path=name).processed_bytes)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise BuildError(f"Vela's results cannot be packed: {error}") from error
        return payload, vela_capture.read_capture(tosa, {}, payload, folder)
