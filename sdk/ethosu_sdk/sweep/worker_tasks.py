"""What a worker does for each task: it publishes folders of the store, whole or not at all, and hands steps to its
warm process.

These functions are what Dask calls. A task that ends without a result is an outcome with an error, so that those
which need it become rows too; only one whose process was killed raises, so that Dask tries it again.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem, forks, json_text
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, SimulationError, ToolError
from ethosu_sdk.base.forks import Answer, Server, Task
from ethosu_sdk.compile import child_process
from ethosu_sdk.records import kinds
from ethosu_sdk.sweep import cell_rows, steps
from ethosu_sdk.sweep.steps import Outcome
from ethosu_sdk.sweep.sweep_configuration import NONE

TOPIC = "ethosu-sdk-sweep"
_LOG_NAME = "compile.log"
_LOG_BYTES = 64 << 10
# What Dask gives the workers that it starts itself: a core each.
_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_LOCAL = threading.local()
_LOCK = threading.Lock()
_SERVERS: dict[str, dict[int, Server]] = {}  # by token and thread
_ENDED: set[str] = set()


class TaskKilledError(Exception):
    """The process of a task was killed: by the system, by the model itself, or by somebody."""


def lower(task: Task) -> Outcome:
    """Lower a model; `task` says what, and where the store is."""
    refused = _begin(task)
    folder = cell_rows.task_folder(_store(task), cell_rows.LOWERED, task["key"])
    if refused is not None:
        return refused
    with _filled(folder) as out:
        outcome = _step(task, out)
        if "error" not in outcome:
            cell_rows.complete_manifest(out)
            _publish(out, folder)
    return outcome


def compile_lowered(task: Task, lowered: Outcome) -> Outcome:
    """Compile what was lowered for a target."""
    if "error" in lowered:
        return lowered
    refused = _begin(task)
    if refused is not None:
        return refused
    folder = cell_rows.task_folder(_store(task), cell_rows.COMPILED, task["key"])
    task = {**task, "lowered": str(cell_rows.task_folder(_store(task), cell_rows.LOWERED, task["lowering"]))}
    with _filled(folder) as out:
        outcome = _step(task, out)
        if any(out.glob(kinds.COMPILE.file)) and not outcome.get("again"):
            json_text.write_json(out / cell_rows.READS_NAME, lowered.get("reads", {}))
            _publish(out, folder)
    return {**outcome, "reads": lowered.get("reads", {})}


def finish(task: Task, compiled: Outcome) -> Outcome:
    """Run what was compiled, if the cell says so, and write the cell down, unless the machine is to blame alone."""
    refused = _begin(task)
    if refused is not None:
        return refused
    folder = cell_rows.task_folder(_store(task), cell_rows.CELLS, task["key"])
    made = cell_rows.task_folder(_store(task), cell_rows.COMPILED, task["compilation"])
    outcome = compiled
    with _filled(folder) as out:
        if made.is_dir():
            steps.link_files(made, out)
        if "error" not in compiled and task["simulator"] != NONE:
            ran = _step(task, out)
            seconds = compiled.get("seconds", 0.0) + ran.get("seconds", 0.0)
            outcome = {**compiled, **ran, "seconds": round(seconds, 3)}
        if outcome.get("again"):
            return outcome  # it says nothing about the cell
        if "log" in outcome and not (out / _LOG_NAME).exists():
            filesystem.write_bytes(out / _LOG_NAME, outcome["log"].encode())
        row = cell_rows.write_cell(out, task, outcome)
        _publish(out, folder)
    return row


def killed_row(task: Task, reason: str) -> Outcome:
    """The row of a cell whose task killed its worker, each time it was tried; written by whoever asks."""
    message = f"the process of the task was killed at every attempt: {reason}"
    cause = "it may need more memory than there is, or end its own process"
    killed = SimulationError(message, f"{cause}: run the model alone with `ethosu-sdk compile`")
    error = {**killed.to_json(), "class": "Killed", "status": cell_rows.KILLED}
    folder = cell_rows.task_folder(_store(task), cell_rows.CELLS, task["key"])
    with _filled(folder) as out:
        row = cell_rows.write_cell(out, task, {"error": error, "seconds": 0.0})
        _publish(out, folder)
    return row


def _store(task: Task) -> Path:
    return Path(task["store"])


def _begin(task: Task) -> Outcome | None:
    """Report that `task` begins; an outcome if this worker cannot do it."""
    with contextlib.suppress(ImportError, ValueError):
        worker = importlib.import_module("distributed").get_worker()
        worker.log_event(TOPIC, {"step": task["step"], "key": task["key"]})
    token = _store(task) / ".token"
    try:
        if json_text.read_json(token)["token"] != task["token"]:
            raise InputError("it is another sweep's")
    except SdkError as error:
        message = f"this worker cannot read the sweep's folder {_store(task)}: {error.message}"
        hint = "workers on other machines need the same folders, under the same paths"
        return {"error": ToolError(message, hint).to_json(), "seconds": 0.0}
    if child_process.compiler_identity() != task["tools"]:
        message = "the versions of the SDK or its packages differ between this worker and the command"
        other = ToolError(message, "install the same versions on all machines")
        return {"error": other.to_json(), "seconds": 0.0}
    return None


@contextlib.contextmanager
def _filled(final: Path) -> Iterator[Path]:
    filesystem.make_directory(final.parent)
    with filesystem.temporary_directory(f".{final.name}-", final.parent) as temporary:
        out = temporary / "out"
        out.mkdir()
        yield out


def _publish(out: Path, final: Path) -> None:
    """Give the folder its name, in place of one that was there."""
    if final.exists():
        old = out.with_name("old")
        with contextlib.suppress(FileNotFoundError):
            final.rename(old)
    try:
        out.rename(final)
    except OSError:
        if not final.is_dir():  # else another worker was quicker, with the same
            raise


def _step(task: Task, out: Path) -> Outcome:
    log = out / (_LOG_NAME if task["step"] != "finish" else ".run.log")
    step = "run" if task["step"] == "finish" else task["step"]
    request = {**task, "step": step, "out": str(out), "log": str(log)}
    start = time.monotonic()
    answer = _warm(task).call(request, task["time_s"], task["memory_bytes"])
    if answer.end == forks.DONE:
        outcome: Outcome = answer.result
        if "error" in outcome:
            outcome["log"] = _tail(log)
        return outcome
    if answer.end == forks.GONE:
        _LOCAL.stack.close()  # the next task gets another
        del _LOCAL.stack, _LOCAL.server
    if answer.end in (forks.KILLED, forks.GONE):
        raise TaskKilledError(answer.detail)
    error = steps.unexpected(answer.detail) if answer.end == forks.RAISED else _limit(request, answer)
    return {"error": error, "log": _tail(log), "seconds": round(time.monotonic() - start, 3)}


def _tail(log: Path) -> str:
    if not log.is_file():
        return ""
    with filesystem.open_regular(log) as stream:
        stream.seek(max(0, log.stat().st_size - _LOG_BYTES))
        return stream.read().decode("utf-8", "replace")


def _limit(task: Task, answer: Answer) -> dict[str, Any]:
    if answer.end == forks.TIMEOUT:
        text = f"the step '{task['step']}' did not end within {task['time_s']:g} s"
        late = SimulationError(text, "raise `time` in [limits]")
        return {**late.to_json(), "class": "Timeout", "status": cell_rows.TIMEOUT}
    text = f"the step '{task['step']}' took more than {task['memory_bytes'] / (1 << 20):,.0f} MiB of memory"
    large = BuildError(text, "raise `memory` in [limits], or leave it out")
    return {**large.to_json(), "class": "OutOfMemory", "status": cell_rows.OUT_OF_MEMORY}


def scratch_folder(store: Path) -> Path:
    """The folder of workers' logs and scratch space, for this user alone."""
    folder = filesystem.make_directory(store) / ".workers"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return folder


def _warm(task: Task) -> Server:
    """This thread's warm process, which takes its tasks."""
    if not hasattr(_LOCAL, "server"):
        name = f"{os.uname().nodename}-{os.getpid()}-{threading.get_native_id()}.log"
        log = scratch_folder(_store(task)) / name
        env = {name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()}
        stack = contextlib.ExitStack()
        _LOCAL.server = stack.enter_context(forks.server(steps.__name__, log, env))
        _LOCAL.stack = stack
    server: Server = _LOCAL.server
    with _LOCK:
        if task["token"] in _ENDED:
            raise TaskKilledError("the sweep is over")
        _SERVERS.setdefault(task["token"], {})[threading.get_ident()] = server
    return server


def end_servers(token: str) -> None:
    """End the work of this process for the sweep with this `token`, and start no more of it."""
    with _LOCK:
        _ENDED.add(token)
        servers = _SERVERS.pop(token, {})
    for server in servers.values():
        server.end()


def remove_leftovers(store: Path) -> None:
    """Remove what workers that were killed left half-done."""
    for part in (cell_rows.LOWERED, cell_rows.COMPILED, cell_rows.CELLS):
        if (store / part).is_dir():
            with filesystem.temporary_directory(".", store / part):
                pass  # which removes all that nobody holds
    shutil.rmtree(store / ".workers", ignore_errors=True)
