"""The cells of a plan on Dask, which schedules, transports and tries again; worker_tasks.py has what is done."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Callable, Iterator
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

            def end() -> None:  # whatever its workers are at
                worker_tasks.end_servers(token)
                with contextlib.suppress(Exception):
                    cluster.close(timeout=_CLOSE_S)

            stack.callback(end)
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
    """A cluster of `jobs` threads in this process, which hand each task to a warm process over a socket pair: nothing
    of it listens anywhere, so that nobody else on the machine can send it work. Dask's own HTTP servers would listen
    on every network, with or without a dashboard; they are not started."""
    provenance.tool()  # what starts a program does so before there are threads: see proc.spawn_own
    common = {"protocol": "inproc://", "dashboard": False}
    worker = {**common, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    without = {"start_http_server": lambda *_, **__: None}
    scheduler = type("Scheduler", (distributed.Scheduler,), without)
    thread = type("Worker", (distributed.Worker,), without)
    return distributed.SpecCluster(
        scheduler={"cls": scheduler, "options": common},
        workers={number: {"cls": thread, "options": worker} for number in range(jobs)},
        silence_logs=logging.CRITICAL,
    )


def run_plan(
    plan: Plan,
    token: str,
    options: SweepOptions,
    began: Callable[[str, str], None],
    ended: Callable[[Planned, Record], None],
) -> None:
    """Do what is left of `plan`. `began` gets a step and its key, `ended` a cell and its row: everything that ends is
    in the store and told, also when this is interrupted.

    ToolError when Dask is not there or its scheduler cannot be reached.
    """
    jobs = options.jobs or os.cpu_count() or 1
    with cluster_client(options.scheduler, jobs, plan.store, token) as client:
        client.subscribe_topic(worker_tasks.TOPIC, lambda event: began(event[1]["step"], event[1]["key"]))
        futures = _submit(client, plan, token, options)
        for future in tools.load_extra("distributed", tools.SWEEP).as_completed(list(futures)):
            planned = futures.pop(future)
            ended(planned, _row(future, tasks_of_cell(plan, planned, token, options)["finish"]))


def _row(future: Any, task: Task) -> Record:
    """The row of a cell whose future is done. Dask gives up a task that killed its worker too often."""
    error = future.exception()
    if isinstance(error, worker_tasks.TaskKilledError):
        return worker_tasks.killed_row(task, str(error))
    if isinstance(error, tools.load_extra("distributed", tools.SWEEP).KilledWorker):
        return worker_tasks.killed_row(task, "the worker died with it")
    if error is None:
        outcome: Outcome = future.result()
        if "cell" in outcome:
            return outcome
        known = outcome["error"]
    elif isinstance(error, SdkError):
        known = error.to_json()
    else:
        known = steps.unexpected(plain_text.error(error))
    # No worker could write the cell; it is done again next time.
    row = cell_rows.row_not_run(task["key"], task["model_sha256"], task["dimensions"])
    named = {"error": known["class"], "exit_code": known["exit_code"], "message": known["message"]}
    return {**row, **named, "hint": known.get("hint"), "status": cell_rows.FAILED}


def _submit(client: Any, plan: Plan, token: str, options: SweepOptions) -> dict[Any, Planned]:
    """The futures of all cells that are left, and their cells. What several share is one future."""
    shared: dict[str, Any] = {}
    futures = {}
    for planned in plan.todo:
        task = tasks_of_cell(plan, planned, token, options)
        if planned.lowering not in shared:
            shared[planned.lowering] = (
                {"seconds": 0.0, "reads": plan.lowered[planned.lowering]}
                if planned.lowering in plan.lowered
                else _future(client, worker_tasks.lower, task["lower"])
            )
        lowered = shared[planned.lowering]
        if planned.compilation not in shared:
            found = _compiled(plan, planned, lowered)
            if found is None:
                found = _future(client, worker_tasks.compile_lowered, task["compile"], lowered)
            shared[planned.compilation] = found
        futures[_future(client, worker_tasks.finish, task["finish"], shared[planned.compilation])] = planned
    return futures


def _future(client: Any, function: Callable[..., Any], task: Task, *before: Any) -> Any:
    name = f"{task['step']}-{task['token'][:8]}-{task['key']}"
    return client.submit(function, task, *before, key=name, retries=ATTEMPTS - 1, pure=False)


def _compiled(plan: Plan, planned: Planned, lowered: Any) -> Outcome | None:
    """The outcome of a compilation that is there; None where there is none that is whole."""
    if planned.compilation not in plan.compiled:
        return None
    folder = cell_rows.task_folder(plan.store, cell_rows.COMPILED, planned.compilation)
    with contextlib.suppress(SdkError):
        for record in map(read_raw_record, folder.glob(kinds.COMPILE.file)):
            return _outcome_of(record, lowered["reads"])
    return None


def _outcome_of(record: Record, reads: Record) -> Outcome:
    outcome: Outcome = {"seconds": record["wall_time_s"], "reads": reads}
    try:
        check_record.raise_if_failed(record, recorded=True)
    except SdkError as error:
        outcome["error"] = error.to_json()
    return outcome
