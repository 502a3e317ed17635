"""The cells of a plan on a Dask cluster: an embedded one of processes, or one that runs already.

Dask schedules, transports and tries again; what is done is in :mod:`ethosu_sdk.commands.sweep.work`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethosu_sdk.commands.compile import check_record
from ethosu_sdk.commands.shared import extras, results
from ethosu_sdk.commands.sweep import places, work
from ethosu_sdk.commands.sweep.options import SweepOptions
from ethosu_sdk.commands.sweep.plan import Plan, Planned, tasks
from ethosu_sdk.commands.sweep.steps import Outcome
from ethosu_sdk.errors import BuildError, SdkError, ToolError
from ethosu_sdk.proc.forks import Task
from ethosu_sdk.records import Record

_ATTEMPTS = 3
_LOOPBACK = "127.0.0.1"
_CONNECT_S = 15.0
_CLOSE_S = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Watch:
    """Who hears what goes on: `began` a step and its key, `ended` a cell and its row."""

    began: Callable[[str, str], None] = field(default=lambda step, key: None)
    ended: Callable[[Planned, Record], None] = field(default=lambda planned, row: None)


def run(plan: Plan, token: str, options: SweepOptions, watch: Watch) -> None:
    """Do what is left of `plan`. Everything that ends is in the store and told to `watch`, also when this is
    interrupted.

    ToolError when Dask is not there or its scheduler cannot be reached.
    """
    with _client(options) as client:
        client.subscribe_topic(work.TOPIC, lambda event: watch.began(event[1]["step"], event[1]["key"]))
        futures = _submit(client, plan, token, options)
        for future in extras.load("distributed", extras.SWEEP).as_completed(list(futures)):
            planned = futures.pop(future)
            watch.ended(planned, _row(future, tasks(plan, planned, token, options)["finish"]))


def _row(future: Any, task: Task) -> Record:
    """The row of a cell whose future is done. Dask gives up a task that killed its worker too often."""
    error = future.exception()
    if error is None:
        row: Record = future.result()
        return row if "cell" in row else _failed(task, row)
    if isinstance(error, (extras.load("distributed", extras.SWEEP).KilledWorker, work.TaskKilledError)):
        reason = str(error) if isinstance(error, work.TaskKilledError) else "the worker died with it"
        return work.killed(task, reason)
    return _failed(task, {"error": _unexpected(error).to_json(), "seconds": 0.0})


def _unexpected(error: BaseException) -> SdkError:
    return error if isinstance(error, SdkError) else BuildError(f"{type(error).__name__}: {error}")


def _failed(task: Task, outcome: Outcome) -> Record:
    """The row of a cell that no worker could write; it is done again next time."""
    from ethosu_sdk.commands.sweep import rows

    error = outcome["error"]
    row = rows.not_run(task["key"], task["model_sha256"], task["dimensions"])
    named = {"error": error["class"], "exit_code": error["exit_code"], "message": error["message"]}
    return {**row, **named, "hint": error.get("hint"), "status": rows.FAILED}


def _submit(client: Any, plan: Plan, token: str, options: SweepOptions) -> dict[Any, Planned]:
    """The futures of all cells that are left, and their cells. What several share is one future."""
    shared: dict[str, Any] = {}
    futures = {}
    for planned in plan.todo:
        task = tasks(plan, planned, token, options)
        if planned.lowering not in shared:
            shared[planned.lowering] = _lowered(client, plan, planned, task["lower"])
        if planned.compilation not in shared:
            before = shared[planned.lowering]
            shared[planned.compilation] = _compiled(client, plan, planned, task["compile"], before)
        before = shared[planned.compilation]
        futures[_future(client, work.finish, task["finish"], before)] = planned
    return futures


def _future(client: Any, function: Callable[..., Any], task: Task, *before: Any) -> Any:
    name = f"{task['step']}-{task['token'][:8]}-{task['key']}"
    return client.submit(function, task, *before, key=name, retries=_ATTEMPTS - 1, pure=False)


def _lowered(client: Any, plan: Plan, planned: Planned, task: Task) -> Any:
    if planned.lowering not in plan.lowered:
        return _future(client, work.lower, task)
    return {"seconds": 0.0, "reads": plan.lowered[planned.lowering]}


def _compiled(client: Any, plan: Plan, planned: Planned, task: Task, lowered: Any) -> Any:
    is_there = planned.compilation in plan.compiled
    record = _record(places.compiled(plan.store, planned.compilation)) if is_there else None
    if record is None:
        return _future(client, work.compile_lowered, task, lowered)
    outcome: Outcome = {"seconds": record["wall_time_s"], "reads": lowered["reads"]}
    try:
        check_record.raise_if_failed(record, recorded=True)
    except SdkError as error:
        outcome["error"] = error.to_json()
    return outcome


def _record(folder: Path) -> Record | None:
    """The record of the compilation in `folder`; None where there is none that is whole."""
    try:
        return next(map(results.read, folder.glob("*.compile.json")), None)
    except SdkError:
        return None


@contextlib.contextmanager
def _client(options: SweepOptions) -> Iterator[Any]:
    distributed = extras.load("distributed", extras.SWEEP)
    dask = importlib.import_module("dask")
    settings = {
        "distributed.scheduler.allowed-failures": _ATTEMPTS - 1,
        "distributed.worker.profile.enabled": False,
        "distributed.worker.daemon": False,
        "distributed.comm.timeouts.connect": f"{_CONNECT_S:g}s",
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if options.scheduler is not None:
            yield stack.enter_context(_connected(distributed, options.scheduler))
        else:
            cluster = _local(distributed, options.jobs or os.cpu_count() or 1)
            stack.callback(_end, cluster)
            yield stack.enter_context(distributed.Client(cluster))


@contextlib.contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
        raise ToolError(f"no Dask scheduler answers at {address}: {error}", hint) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError as error:
            hint = f"start some: dask worker {address} --nthreads 1"
            raise ToolError(f"the Dask scheduler at {address} has no workers", hint) from error
        yield client


def _local(distributed: Any, jobs: int) -> Any:
    """A cluster of processes on this machine. Signals are for this process alone: it tells the others."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return distributed.LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            protocol="tcp://",
            dashboard_address=None,
            worker_dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _end(cluster: Any) -> None:
    """End the cluster, whatever its workers are at."""
    for nanny in list(cluster.workers.values()):
        process = getattr(nanny.process, "process", None)
        if process is not None and process.pid is not None:
            nanny.auto_restart = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    with contextlib.suppress(Exception):
        cluster.close(timeout=_CLOSE_S)
