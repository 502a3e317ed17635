"""The cells of a plan as futures of Dask, and what becomes of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ethosu_sdk import extras, plain_text
from ethosu_sdk.errors import SdkError
from ethosu_sdk.proc.forks import Task
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results.reading import read
from ethosu_sdk.steps.compile import check_record
from ethosu_sdk.sweep import places, steps, work
from ethosu_sdk.sweep.engine import cluster
from ethosu_sdk.sweep.options import SweepOptions
from ethosu_sdk.sweep.plan import Plan, Planned, tasks
from ethosu_sdk.sweep.steps import Outcome


@dataclass
class Watch:
    """Listeners: `began` gets a step and its key, `ended` a cell and its row."""

    began: Callable[[str, str], None] = field(default=lambda step, key: None)
    ended: Callable[[Planned, Record], None] = field(default=lambda planned, row: None)


def run(plan: Plan, token: str, options: SweepOptions, watch: Watch) -> None:
    """Do what is left of `plan`. Everything that ends is in the store and told to `watch`, also when this is
    interrupted.

    ToolError when Dask is not there or its scheduler cannot be reached.
    """
    jobs = options.jobs or os.cpu_count() or 1
    with cluster.client(options.scheduler, jobs, plan.store, token) as client:
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
    known = error.to_json() if isinstance(error, SdkError) else steps.unexpected(plain_text.error(error))
    return _failed(task, {"error": known})


def _failed(task: Task, outcome: Outcome) -> Record:
    """The row of a cell that no worker could write; it is done again next time."""
    from ethosu_sdk.sweep import rows

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
    return client.submit(function, task, *before, key=name, retries=cluster.ATTEMPTS - 1, pure=False)


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
        return next(map(read, folder.glob(kinds.COMPILE.file)), None)
    except SdkError:
        return None
