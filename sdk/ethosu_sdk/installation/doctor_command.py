"""`ethosu-sdk doctor`: every tool that the SDK uses made to work, and what to do about those that do not."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import convert
from rich.table import Table

from ethosu_sdk.base import proc, resources, tools
from ethosu_sdk.base.errors import SdkError, ToolError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape, escape_lines
from ethosu_sdk.installation import doctor_exercises
from ethosu_sdk.records import kinds, provenance, validation
from ethosu_sdk.records.installation import Check
from ethosu_sdk.simulate import arm_runners, fvp_simulator
from ethosu_sdk.simulate.fvp_models import models_by_program

# ---- installation.doctor.rows
# The rows of doctor's report: what is there, whether it works, whether the lock agrees.

_PYTHON = ((3, 11), (3, 13))
_DPKG_TIMEOUT_S = 10.0
_DEBIAN_FOLDERS = (Path("/usr/bin"), Path("/bin"))
_WORKERS = 3  # a tool that hangs keeps one of them until its time is over
_OWN_BUILD = "the SDK builds it itself, from sources that are locked"
_NO_LOCK = "the lock has no version of it for this machine"


def doctor_rows() -> list[Record]:
    """A row for each tool, in the order of tools.toml; Python first, the NPU model last. Failures are rows."""
    names = [name for group in doctor_exercises.GROUPS for name in group]
    others = [name for name in tools.tool_table() if name not in names]
    with (
        tempfile.TemporaryDirectory(prefix="ethosu-sdk-doctor-") as folder,
        ThreadPoolExecutor(_WORKERS) as pool,
    ):
        groups = [pool.submit(_group, group, Path(folder)) for group in doctor_exercises.GROUPS]
        single = [pool.submit(_other, name) for name in others]
        found = {row["name"]: row for job in groups for row in job.result()}
        found |= {row["name"]: row for row in (job.result() for job in single)}
    return [_python(), *(found[name] for name in tools.tool_table()), _npu_model()]


def _group(group: dict[str, Callable[[Path], str]], folder: Path) -> list[Record]:
    return [_exercised(name, exercise, folder) for name, exercise in group.items()]


def _exercised(name: str, exercise: Callable[[Path], str], folder: Path) -> Record:
    found = tools.probe(name)
    row = _row(found)
    if found.status != "found":
        return row
    try:
        return row | {"exercised": exercise(folder)}
    except doctor_exercises.NotTriedError as error:
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
    if name == arm_runners.runners_package():
        return _runners(tools.probe(name))
    return _fvp(name) if name in models_by_program() else _row(tools.probe(name))


def _runners(found: tools.ToolStatus) -> Record:
    """Arm's prebuilt runners: each with the digest of the published one, and whose licence they have."""
    row = _row(found)
    if found.status != "found":
        return row
    try:
        for runner in arm_runners.all_runners():
            arm_runners.runner_executable(runner)
    except SdkError as error:
        return row | _failure(error, found.tool.fix)
    count = len(arm_runners.all_runners())
    return row | {
        "exercised": f"{count} runners with the SHA-256 of those published",
        "detail": f"the runners' licence: {arm_runners.runners_licence()}",
    }


def _fvp(name: str) -> Record:
    """An FVP: found where `run` looks for it, and asked for its version."""
    tool = tools.tool_table()[name]
    try:
        path = fvp_simulator.find_fvp(models_by_program()[name])
    except SdkError:
        return _row(tools.ToolStatus(tool, "missing"))
    try:
        fvp = fvp_simulator.installed_fvp(models_by_program()[name])
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
            return row | {"exercised": doctor_exercises.run_command_stream()}
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
        "lock": _lock_state(found),
    }


def _lock_state(found: tools.ToolStatus) -> Record:
    """Whether what is installed is what the SDK was built and tested with."""
    tool = found.tool
    if found.status == "missing":
        return {"status": "unknown", "reason": "it is not installed"}
    if tool.is_package:
        same = found.version.split("+")[0] == tool.wanted
        return {"status": "agrees" if same else "differs", "locked": tool.wanted, "installed": found.version}
    if not tool.debian:
        reason = _OWN_BUILD if tool.variable else _NO_LOCK
        return (
            _fvp_lock(found) if tool.name in models_by_program() else {"status": "unknown", "reason": reason}
        )
    locked = resources.debian_versions().get(tool.debian)
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
    board = models_by_program()[found.tool.name].board
    locked = [
        row.version
        for row in resources.fvp_archives()
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


# ---- installation.doctor.doctor_command
# `ethosu-sdk doctor`: every tool that the SDK uses made to work, and what to do about those that do not.

_COLOURS = {"found": "green", "missing": "red", "too old": "red", "broken": "red"}
_LOCK_WORDS = {"agrees": "as locked", "differs": "[yellow]differs[/yellow]", "unknown": "-"}


def doctor(reporter: Reporter) -> None:
    """Report every tool; ToolError when one that is not optional cannot be used."""
    start = time.monotonic()
    with reporter.stage("trying every tool"):
        rows = doctor_rows()
    checks = convert(rows, tuple[Check, ...])
    bad = [row for row in checks if row.required and row.status != "found"]
    record: Record = {
        **provenance.opening(kinds.DOCTOR.schema, "fail" if bad else "pass"),
        "checks": rows,
        "wall_time_s": round(time.monotonic() - start, 3),
        "host": provenance.host_part(),
    }
    validation.check_record(record, "the doctor's report")
    reporter.show(_table(checks))
    _problems(checks, reporter)
    reporter.emit(record)
    if bad:
        names = ", ".join(row.name for row in bad)
        raise ToolError(f"not ready: {names}", bad[0].fix or "", recorded=True)
    lacking = [row.name for row in checks if row.needed_for == "compile" and row.status != "found"]
    reporter.show(
        f"Ready: what build and run need works; compile needs {', '.join(lacking)} as well."
        if lacking
        else "Ready: everything that compile, build and run need is here and works."
    )


def _table(checks: Sequence[Check]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("tool", "state", "version", "lock"):
        table.add_column(heading, no_wrap=True)
    table.add_column("needed for")
    for row in checks:
        colour = _COLOURS[row.status] if row.required or row.status == "found" else "yellow"
        optional = "" if row.required else " (optional)"
        told = f"; {row.detail}" if row.status == "found" and row.detail is not None else ""
        table.add_row(
            escape(row.name),
            f"[{colour}]{row.status}[/{colour}]",
            escape(row.version or ""),
            _LOCK_WORDS[row.lock.status],
            escape(f"{row.needed_for}{optional}{told}"),
        )
    return table


def _problems(checks: Sequence[Check], reporter: Reporter) -> None:
    """What is wrong with each tool, what differs from the lock, and the fix."""
    for row in checks:
        lock = row.lock
        if row.status == "missing" and not row.required:
            continue  # nothing is wrong; --json has how to get it
        if row.status != "found":
            reason = f": {row.detail}" if row.detail is not None else ""
            need = f", {row.wanted} is needed" if row.wanted is not None and row.status == "too old" else ""
            reporter.show(f"{escape(row.name)}: {row.status}{need}{escape_lines(reason)}")
            reporter.show(f"  fix: {escape(row.fix or '')}")
        elif lock.status == "differs":
            reporter.show(
                f"{escape(row.name)}: version {escape(lock.installed or '')}, tested with "
                f"{escape(lock.locked or '')}: results may differ from the image's"
            )
