"""The rows of doctor's report: what is there, whether it works, whether the lock agrees."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ethosu_sdk import proc, runtimes, toolchain_lock, tools
from ethosu_sdk.errors import SdkError, ToolError
from ethosu_sdk.installation.doctor import exercises
from ethosu_sdk.records import Record
from ethosu_sdk.simulators.fvp import discovery
from ethosu_sdk.simulators.fvp.models import models

_PYTHON = ((3, 11), (3, 13))
_DPKG_TIMEOUT_S = 10.0
_DEBIAN_FOLDERS = (Path("/usr/bin"), Path("/bin"))
_WORKERS = 3  # a tool that hangs keeps one of them until its time is over
_OWN_BUILD = "the SDK builds it itself, from sources that are locked"
_NO_LOCK = "the lock has no version of it for this machine"


def rows() -> list[Record]:
    """A row for each tool, in the order of tools.toml; Python first, the NPU model last. Failures are rows."""
    names = [name for group in exercises.GROUPS for name in group]
    others = [name for name in tools.table() if name not in names]
    with (
        tempfile.TemporaryDirectory(prefix="ethosu-sdk-doctor-") as folder,
        ThreadPoolExecutor(_WORKERS) as pool,
    ):
        groups = [pool.submit(_group, group, Path(folder)) for group in exercises.GROUPS]
        single = [pool.submit(_other, name) for name in others]
        found = {row["name"]: row for job in groups for row in job.result()}
        found |= {row["name"]: row for row in (job.result() for job in single)}
    return [_python(), *(found[name] for name in tools.table()), _npu_model()]


def _group(group: dict[str, Callable[[Path], str]], folder: Path) -> list[Record]:
    return [_exercised(name, exercise, folder) for name, exercise in group.items()]


def _exercised(name: str, exercise: Callable[[Path], str], folder: Path) -> Record:
    found = tools.probe(name)
    row = _row(found)
    if found.status != "found":
        return row
    try:
        return row | {"exercised": exercise(folder)}
    except exercises.NotTriedError as error:
        return row | {"detail": error.message}
    except (SdkError, OSError) as error:
        return row | _failure(error, found.tool.fix)


def _failure(error: Exception, fix: str) -> Record:
    message = error.message if isinstance(error, SdkError) else str(error)
    hint = error.hint if isinstance(error, ToolError) and not error.hint.startswith("command:") else ""
    return {"status": "broken", "detail": _first_cause(message) or type(error).__name__, "fix": hint or fix}


def _first_cause(message: str) -> str:
    """The first line of a failure, and the first of the tool's own lines that speaks of an error, else the last."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) < 2:
        return message.strip()
    told = next((line for line in lines[1:] if "error" in line.lower() or ": " in line), lines[-1])
    return f"{lines[0]}: {told}"[:400]


def _other(name: str) -> Record:
    if name == runtimes.package_name():
        return _runners(tools.probe(name))
    return _fvp(name) if name in models() else _row(tools.probe(name))


def _runners(found: tools.ToolStatus) -> Record:
    """Arm's prebuilt runners: each with the digest of the published one, and whose licence they have."""
    row = _row(found)
    if found.status != "found":
        return row
    try:
        for runner in runtimes.runners():
            runtimes.executable(runner)
    except SdkError as error:
        return row | _failure(error, found.tool.fix)
    count = len(runtimes.runners())
    return row | {
        "exercised": f"{count} runners with the SHA-256 of those published",
        "detail": f"the runners' licence: {runtimes.licence()}",
    }


def _fvp(name: str) -> Record:
    """An FVP: found where `run` looks for it, and asked for its version."""
    tool = tools.table()[name]
    try:
        path = discovery.find(models()[name])
    except SdkError:
        return _row(tools.ToolStatus(tool, "missing"))
    try:
        fvp = discovery.installed(models()[name])
    except SdkError as error:
        return _row(tools.ToolStatus(tool, "broken", path=path)) | _failure(error, tool.fix)
    return _row(tools.ToolStatus(tool, "found", fvp.version, path)) | {"exercised": "asked its version"}


def _python() -> Record:
    low, high = _PYTHON
    good = low <= sys.version_info[:2] < high
    return {
        "name": "python",
        "status": "found" if good else "too old" if sys.version_info[:2] < low else "broken",
        "needed_for": "everything",
        "required": True,
        "version": platform.python_version(),
        "wanted": f"{low[0]}.{low[1]}",
        "lock": {"status": "unknown", "reason": "any Python 3.11 or 3.12 will do"},
        **({} if good else {"fix": "use Python 3.11 or 3.12: the pinned packages have wheels for these"}),
    }


def _npu_model() -> Record:
    row = {
        "name": "npu-model",
        "status": "found",
        "needed_for": "run",
        "required": True,
        "lock": {"status": "unknown", "reason": "it is part of the SDK"},
    }
    try:
        with warnings.catch_warnings():
            # A pool of ours has ended before; that others may run threads is their program's affair.
            warnings.simplefilter("ignore", DeprecationWarning)
            return row | {"exercised": exercises.run_command_stream()}
    except (SdkError, OSError, ImportError) as error:
        return row | _failure(error, "install ethosu-sdk again")


def _row(found: tools.ToolStatus) -> Record:
    tool = found.tool
    details = {
        "version": found.version,
        "wanted": tool.wanted,
        "file": str(found.path) if found.path else "",
        "fix": "" if found.status == "found" else tool.fix,
        "detail": found.detail,
    }
    return {
        "name": tool.name,
        "status": found.status,
        "needed_for": tool.needed_for,
        "required": not tool.optional,
        **{key: value for key, value in details.items() if value},
        "lock": _lock(found),
    }


def _lock(found: tools.ToolStatus) -> Record:
    """Whether what is installed is what the SDK was built and tested with."""
    tool = found.tool
    if found.status == "missing":
        return {"status": "unknown", "reason": "it is not installed"}
    if tool.is_package:
        same = found.version.split("+")[0] == tool.wanted
        return {"status": "agrees" if same else "differs", "locked": tool.wanted, "installed": found.version}
    if not tool.debian:
        reason = _OWN_BUILD if tool.variable else _NO_LOCK
        return _fvp_lock(found) if tool.name in models() else {"status": "unknown", "reason": reason}
    locked = toolchain_lock.debian_versions().get(tool.debian)
    if locked is None:
        return {"status": "unknown", "reason": _NO_LOCK}
    installed = _debian_version(tool.debian, found.path)
    if installed is None:
        return {"status": "unknown", "locked": locked, "reason": f"it is not that of Debian's {tool.debian}"}
    return {
        "status": "agrees" if installed == locked else "differs",
        "locked": locked,
        "installed": installed,
    }


def _fvp_lock(found: tools.ToolStatus) -> Record:
    """An FVP prints 11.27.42 where its archive is called 11.27_42."""
    board = models()[found.tool.name].board
    locked = [
        row.version
        for row in toolchain_lock.fvp_archives()
        if row.name == board and row.machine == platform.machine()
    ]
    if not locked or not found.version:
        return {"status": "unknown", "reason": _NO_LOCK if not locked else "its version is unknown"}
    same = found.version.replace(".", "_") in {version.replace(".", "_") for version in locked}
    return {"status": "agrees" if same else "differs", "locked": locked[0], "installed": found.version}


def _debian_version(package: str, program: Path | None) -> str | None:
    """The installed version of the Debian package, or None when `program` is none of its files."""
    query = shutil.which("dpkg-query")
    if query is None or program is None or program.parent not in _DEBIAN_FOLDERS:
        return None
    try:
        argv = [query, "-W", "-f", "${Version}", package]
        return proc.run(argv, timeout_s=_DPKG_TIMEOUT_S, error=ToolError).output.strip() or None
    except SdkError:
        return None
