"""The cells of a plan on Dask, which schedules, transports and tries again; worker_tasks.py has what is done."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethosu_sdk.base import plain_text, tools
from ethosu_sdk.base.errors import SdkError, ToolError
from ethosu_sdk.base.forks import Task
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.compile import check_record
from ethosu_sdk.records import kinds, provenance
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.sweep import cell_rows, steps, worker_tasks
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.steps import Outcome
from ethosu_sdk.sweep.sweep_plan import Plan, Planned, tasks_of_cell

ATTEMPTS = 3
_CONNECT_S = 15.0
_CLOSE_S = 5.0
_ENCRYPTED = ("tls://", "wss://")
_TLS_SETTINGS = "docs/guide/sweep.md names the settings of TLS (DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …)"


def scheduler_warning(scheduler: str | None) -> str:
    """The warning about a scheduler's address; empty for an address with TLS."""
    if scheduler is None or scheduler.startswith(_ENCRYPTED):
        return ""
    return (
        f"{scheduler} is neither encrypted nor authenticated: anyone who can reach the ports of the "
        "scheduler or of a worker, including other users of these machines, can run code as the user of "
        "the workers and of this command; use tls:// (docs/guide/sweep.md)"
    )


@contextlib.contextmanager
def cluster_client(scheduler: str | None, jobs: int, store: Path, token: str) -> Iterator[Any]:
    """A client of the cluster at the address `scheduler`, or of an embedded one with `jobs` workers.

    Scratch space lies in the folder `store`. ToolError when Dask is not there or its scheduler cannot be reached.
    """
    distributed = tools.load_extra("distributed", tools.SWEEP)
    dask = importlib.import_module("dask")
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        "distributed.worker.profile.enabled": False,
        "distributed.comm.timeouts.connect": f"{_CONNECT_S:g}s",
        # Elsewhere it would be in /tmp, under a name that others can take first; Dask imports from there.
        "temporary-directory": str(worker_tasks.scratch_folder(store)),
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if scheduler is not None:
            yield stack.enter_context(_connected(distributed, scheduler))
        else:
            cluster = _embedded(distributed, jobs)
            stack.callback(_end, cluster, token)
            yield stack.enter_context(distributed.Client(cluster))


@contextlib.contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        connected = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        if address.startswith(_ENCRYPTED):
            hint = f"scheduler, workers and this command need certificates: {_TLS_SETTINGS}"
        else:
            hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
        raise ToolError(f"no Dask scheduler answers at {address}: {error}", hint) from error
    with connected:
        try:
            connected.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError as error:
            hint = f"start some: dask worker {address} --nthreads 1"
            raise ToolError(f"the Dask scheduler at {address} has no workers", hint) from error
        yield connected


def _embedded(distributed: Any, jobs: int) -> Any:
    """A cluster of `jobs` threads in this process."""
    provenance.tool()  # what starts a program does so before there are threads: see proc.spawn_own
    common = {"protocol": "inproc://", "dashboard": False}
    worker = {**common, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    return distributed.SpecCluster(
        scheduler={"cls": _without_http(distributed.Scheduler), "options": common},
        workers={
            number: {"cls": _without_http(distributed.Worker), "options": worker} for number in range(jobs)
        },
        silence_logs=logging.CRITICAL,
    )


def _without_http(server: Any) -> Any:
    """The class `server` of Dask without its HTTP server."""
    return type(server.__name__, (server,), {"start_http_server": lambda *_, **__: None})


def _end(cluster: Any, token: str) -> None:
    """End the cluster, whatever its workers are at."""
    worker_tasks.end_servers(token)
    with contextlib.suppress(Exception):
        cluster.close(timeout=_CLOSE_S)


@dataclass
class Watch:
    """Listeners: `began` gets a step and its key, `ended` a cell and its row."""

    began: Callable[[str, str], None] = field(default=lambda step, key: None)
    ended: Callable[[Planned, Record], None] = field(default=lambda planned, row: None)


def run_plan(plan: Plan, token: str, options: SweepOptions, watch: Watch) -> None:
    """Do what is left of `plan`. Everything that ends is in the store and told to `watch`, also when this is
    interrupted.

    ToolError when Dask is not there or its scheduler cannot be reached.
    """
    jobs = options.jobs or os.cpu_count() or 1
    with cluster_client(options.scheduler, jobs, plan.store, token) as client:
        client.subscribe_topic(
            worker_tasks.TOPIC, lambda event: watch.began(event[1]["step"], event[1]["key"])
        )
        futures = _submit(client, plan, token, options)
        for future in tools.load_extra("distributed", tools.SWEEP).as_completed(list(futures)):
            planned = futures.pop(future)
            watch.ended(planned, _row(future, tasks_of_cell(plan, planned, token, options)["finish"]))


def _row(future: Any, task: Task) -> Record:
    """The row of a cell whose future is done. Dask gives up a task that killed its worker too often."""
    error = future.exception()
    if error is None:
        row: Record = future.result()
        return row if "cell" in row else _failed(task, row)
    if isinstance(
        error, (tools.load_extra("distributed", tools.SWEEP).KilledWorker, worker_tasks.TaskKilledError)
    ):
        reason = str(error) if isinstance(error, worker_tasks.TaskKilledError) else "the worker died with it"
        return worker_tasks.killed_row(task, reason)
    known = error.to_json() if isinstance(error, SdkError) else steps.unexpected(plain_text.error(error))
    return _failed(task, {"error": known})


def _failed(task: Task, outcome: Outcome) -> Record:
    """The row of a cell that no worker could write; it is done again next time."""
    from ethosu_sdk.sweep import cell_rows

    error = outcome["error"]
    row = cell_rows.row_not_run(task["key"], task["model_sha256"], task["dimensions"])
    named = {"error": error["class"], "exit_code": error["exit_code"], "message": error["message"]}
    return {**row, **named, "hint": error.get("hint"), "status": cell_rows.FAILED}


def _submit(client: Any, plan: Plan, token: str, options: SweepOptions) -> dict[Any, Planned]:
    """The futures of all cells that are left, and their cells. What several share is one future."""
    shared: dict[str, Any] = {}
    futures = {}
    for planned in plan.todo:
        task = tasks_of_cell(plan, planned, token, options)
        if planned.lowering not in shared:
            shared[planned.lowering] = _lowered(client, plan, planned, task["lower"])
        if planned.compilation not in shared:
            before = shared[planned.lowering]
            shared[planned.compilation] = _compiled(client, plan, planned, task["compile"], before)
        before = shared[planned.compilation]
        futures[_future(client, worker_tasks.finish, task["finish"], before)] = planned
    return futures


def _future(client: Any, function: Callable[..., Any], task: Task, *before: Any) -> Any:
    name = f"{task['step']}-{task['token'][:8]}-{task['key']}"
    return client.submit(function, task, *before, key=name, retries=ATTEMPTS - 1, pure=False)


def _lowered(client: Any, plan: Plan, planned: Planned, task: Task) -> Any:
    if planned.lowering not in plan.lowered:
        return _future(client, worker_tasks.lower, task)
    return {"seconds": 0.0, "reads": plan.lowered[planned.lowering]}


def _compiled(client: Any, plan: Plan, planned: Planned, task: Task, lowered: Any) -> Any:
    is_there = planned.compilation in plan.compiled
    record = _record(cell_rows.compiled_folder(plan.store, planned.compilation)) if is_there else None
    if record is None:
        return _future(client, worker_tasks.compile_lowered, task, lowered)
    outcome: Outcome = {"seconds": record["wall_time_s"], "reads": lowered["reads"]}
    try:
        check_record.raise_if_failed(record, recorded=True)
    except SdkError as error:
        outcome["error"] = error.to_json()
    return outcome


def _record(folder: Path) -> Record | None:
    """The record of the compilation in `folder`; None where there is none that is whole."""
    try:
        return next(map(read_raw_record, folder.glob(kinds.COMPILE.file)), None)
    except SdkError:
        return None
