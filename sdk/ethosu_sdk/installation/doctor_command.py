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

from msgspec.structs import replace
from rich.table import Table

from ethosu_sdk.base import proc, resources, tools
from ethosu_sdk.base.errors import SdkError, ToolError
from ethosu_sdk.base.terminal import Reporter, escape, escape_lines
from ethosu_sdk.installation import doctor_exercises
from ethosu_sdk.records import provenance, validation
from ethosu_sdk.records.installation import Check, DoctorReport, Lock
from ethosu_sdk.simulate import arm_runners, fvp_simulator
from ethosu_sdk.simulate.fvp_models import models_by_program

_PYTHON = ((3, 11), (3, 13))
_DPKG_TIMEOUT_S = 10.0
_DEBIAN_FOLDERS = (Path("/usr/bin"), Path("/bin"))
_WORKERS = 3  # a tool that hangs keeps one of them until its time is over
_NO_LOCK = "the lock has no version of it for this machine"
_COLOURS = {"found": "green", "missing": "red", "too old": "red", "broken": "red"}
_LOCK_WORDS = {"agrees": "as locked", "differs": "[yellow]differs[/yellow]", "unknown": "-"}


def doctor(reporter: Reporter) -> None:
    """Report every tool; ToolError when one that is not optional cannot be used."""
    start = time.monotonic()
    with reporter.stage("trying every tool"):
        checks = _checks()
    bad = [row for row in checks if row.required and row.status != "found"]
    record = DoctorReport(
        status="fail" if bad else "pass",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        checks=tuple(checks),
        host=provenance.this_host(),
        wall_time_s=round(time.monotonic() - start, 3),
    ).to_json()
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


def _checks() -> list[Check]:
    """A row for each tool, in the order of tools.toml; Python first, the NPU model last. Failures are rows."""
    names = {name for group in doctor_exercises.GROUPS for name in group}
    others = [name for name in tools.tool_table() if name not in names]
    with (
        tempfile.TemporaryDirectory(prefix="ethosu-sdk-doctor-") as folder,
        ThreadPoolExecutor(_WORKERS) as pool,
    ):
        jobs = [pool.submit(_group, group, Path(folder)) for group in doctor_exercises.GROUPS]
        jobs += [pool.submit(lambda name: [_other(name)], name) for name in others]
        found = {row.name: row for job in jobs for row in job.result()}
    return [_python(), *(found[name] for name in tools.tool_table()), _npu_model()]


def _group(group: dict[str, Callable[[Path], str]], folder: Path) -> list[Check]:
    return [_exercised(name, exercise, folder) for name, exercise in group.items()]


def _exercised(name: str, exercise: Callable[[Path], str], folder: Path) -> Check:
    found = tools.probe(name, anew=True)
    row = _row(found)
    if found.status != "found":
        return row
    try:
        return replace(row, exercised=exercise(folder))
    except doctor_exercises.NotTriedError as error:
        return replace(row, detail=error.message)
    except (SdkError, OSError) as error:
        return _broken(row, error, found.tool.fix)


def _broken(row: Check, error: Exception, fix: str) -> Check:
    message = error.message if isinstance(error, SdkError) else str(error)
    hint = error.hint if isinstance(error, ToolError) and not error.hint.startswith("command:") else ""
    # The first line of a failure, and the first of the tool's own lines that speaks of an error, else the last.
    detail, lines = message.strip(), [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 1:
        told = next((line for line in lines[1:] if "error" in line.lower() or ": " in line), lines[-1])
        detail = f"{lines[0]}: {told}"[:400]
    return replace(row, status="broken", detail=detail or type(error).__name__, fix=hint or fix)


def _other(name: str) -> Check:
    if name in models_by_program():
        return _fvp(name)
    found = tools.probe(name, anew=True)
    row = _row(found)
    if name != arm_runners.runners_package() or found.status != "found":
        return row
    try:
        for runner in arm_runners.all_runners():
            arm_runners.runner_executable(runner)
    except SdkError as error:
        return _broken(row, error, found.tool.fix)
    tried = f"{len(arm_runners.all_runners())} runners with the SHA-256 of those published"
    return replace(row, exercised=tried, detail=f"the runners' licence: {arm_runners.runners_licence()}")


def _fvp(name: str) -> Check:
    """An FVP: found where `run` looks for it, and asked for its version."""
    tool = tools.tool_table()[name]
    try:
        path = fvp_simulator.find_fvp(models_by_program()[name])
    except SdkError:
        return _row(tools.ToolStatus(tool, "missing"))
    try:
        fvp = fvp_simulator.installed_fvp(models_by_program()[name])
    except SdkError as error:
        return _broken(_row(tools.ToolStatus(tool, "broken", path=path)), error, tool.fix)
    return replace(_row(tools.ToolStatus(tool, "found", fvp.version, path)), exercised="asked its version")


def _python() -> Check:
    low, high = _PYTHON
    good = low <= sys.version_info[:2] < high
    return Check(
        name="python",
        status="found" if good else "too old" if sys.version_info[:2] < low else "broken",
        needed_for="everything",
        required=True,
        version=platform.python_version(),
        wanted=f"{low[0]}.{low[1]}",
        fix=None if good else "use Python 3.11 or 3.12: the pinned packages have wheels for these",
        lock=Lock(status="unknown", reason="any Python 3.11 or 3.12 will do"),
    )


def _npu_model() -> Check:
    row = Check(
        name="npu-model",
        status="found",
        needed_for="run",
        required=True,
        lock=Lock(status="unknown", reason="it is part of the SDK"),
    )
    try:
        with warnings.catch_warnings():
            # A pool of ours has ended before; that others may run threads is their program's affair.
            warnings.simplefilter("ignore", DeprecationWarning)
            return replace(row, exercised=doctor_exercises.run_command_stream())
    except (SdkError, OSError, ImportError) as error:
        return _broken(row, error, "install ethosu-sdk again")


def _row(found: tools.ToolStatus) -> Check:
    tool = found.tool
    return Check(
        name=tool.name,
        status=found.status,
        needed_for=tool.needed_for,
        required=not tool.optional,
        version=found.version or None,
        wanted=tool.wanted or None,
        file=str(found.path) if found.path else None,
        fix=None if found.status == "found" else tool.fix or None,
        detail=found.detail or None,
        lock=_lock(found),
    )


def _lock(found: tools.ToolStatus) -> Lock:
    """Whether what is installed is what the SDK was built and tested with."""
    tool = found.tool
    if found.status == "missing":
        return Lock(status="unknown", reason="it is not installed")
    if tool.is_package:
        return _compared(tool.wanted, found.version, found.version.split("+")[0] == tool.wanted)
    if tool.name in models_by_program() and not tool.debian:
        return _fvp_lock(found)
    locked = resources.debian_versions().get(tool.debian)
    if locked is None:
        is_own = not tool.debian and tool.variable
        reason = "the SDK builds it itself, from sources that are locked" if is_own else _NO_LOCK
        return Lock(status="unknown", reason=reason)
    installed = _debian_version(tool.debian, found.path)
    if installed is None:
        reason = f"it is not that of Debian's {tool.debian}"
        return Lock(status="unknown", locked=locked, reason=reason)
    return _compared(locked, installed, installed == locked)


def _compared(locked: str, installed: str, same: bool) -> Lock:
    return Lock(status="agrees" if same else "differs", locked=locked, installed=installed)


def _fvp_lock(found: tools.ToolStatus) -> Lock:
    """An FVP prints 11.27.42 where its archive is called 11.27_42."""
    board = models_by_program()[found.tool.name].board
    archives = (row for row in resources.fvp_archives() if row.machine == platform.machine())
    locked = [row.version for row in archives if row.name == board]
    if not locked or not found.version:
        return Lock(status="unknown", reason=_NO_LOCK if not locked else "its version is unknown")
    same = found.version.replace(".", "_") in {version.replace(".", "_") for version in locked}
    return _compared(locked[0], found.version, same)


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
