"""run.json: from an execution to its record, and the record's summary for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.console import Group
from rich.table import Table

from ethosu_sdk.base import boards, filesystem
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import escape
from ethosu_sdk.firmware_build import build_command
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import kinds, provenance, result_files, wording
from ethosu_sdk.run import kept_state, repeats, sequences, time_line
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.job import RunJob, memory_timing_part
from ethosu_sdk.run.options import FVP
from ethosu_sdk.run.reference import Reference
from ethosu_sdk.run.sequences import StepsVerdict


@dataclass(frozen=True)
class RunVerdict:
    """What was checked of an execution; `hazards` says where hardware may compute something else than the model."""

    checks: Sequence[Check]
    reference: Reference
    hazards: tuple[str, ...]
    steps: StepsVerdict | None = None


def make_run_record(
    job: RunJob, execution: Execution, verdict: RunVerdict, outputs_file: str, wall_time_s: float
) -> Record:
    """The record of a run."""
    status = "pass" if all(check.passed for check in verdict.checks) else "fail"
    unavailable = [*execution.unavailable, *verdict.reference.unavailable]
    if job.target is None:
        unavailable.append(provenance.without_npu("/target"))
    inputs = [*result_files.program_entries(job.path, job.program), *execution.provenance_inputs]
    if job.options.script is not None:
        inputs.append(provenance.file_entry("script", job.options.script))
    npu, notes, opinion = execution.npu, [*execution.notes, *verdict.hazards], execution.second_opinion
    if npu is not None:
        npu = {**npu, **memory_timing_part(job.memories, job.options.memory_timing)}
    record = {
        **provenance.header(kinds.RUN.schema, status, inputs, execution.tools),
        "model": build_command.model_part(job.path, job.program, job.plan.name),
        **provenance.target_members(job.target),
        **_priced(job),
        "board": job.choice.board,
        "board_reason": job.choice.reason,
        **({"data_memory": job.options.data_memory} if job.options.data_memory else {}),
        "runtime": execution.runtime,
        "simulator": execution.simulator,
        "inferences": len(execution.steps) or job.samples.count,
        **repeats.repeats_part(execution.repeated),
        **_state(job, execution),
        "inputs": [
            {**_tensor(index, array), "source": job.samples.source}
            for index, array in enumerate(job.samples.given())
        ],
        "outputs": [
            {**_tensor(index, array), "name": f"output{index}", "file": outputs_file}
            for index, array in enumerate(execution.outputs)
        ],
        "verdict": {
            "status": status,
            "checks": [
                {"name": check.name, "status": "pass" if check.passed else "fail", "detail": check.detail}
                for check in verdict.checks
            ],
        },
        **({"reference": verdict.reference.part} if verdict.reference.part else {}),
        **({"second_opinion": opinion.part} if opinion is not None else {}),
        **_sequence(job, execution, verdict, npu),
        **({"npu": npu} if npu is not None else {}),
        "cpu": execution.cpu,
        "memory": execution.memory,
        "operators": list(execution.operators),
        **({"pieces": list(execution.pieces)} if execution.pieces else {}),
        **({"notes": notes} if notes else {}),
        "unavailable": unavailable,
        "wall_time_s": round(wall_time_s, 3),
        "host": provenance.host_part(),
    }
    return _with_time(record, job)


def _state(job: RunJob, execution: Execution) -> Record:
    name = job.choice.board
    memory = boards.board_named(name).bulk.name if name in boards.BOARD_NAMES else name
    crcs = execution.steps[-1].state_crcs if execution.steps else ()
    return kept_state.state_part(job.kept, execution.repeated.plan.state, memory, crcs)


def _sequence(job: RunJob, execution: Execution, verdict: RunVerdict, npu: Record | None) -> Record:
    if not execution.steps or not (job.samples.is_sequence or job.samples.count > 1):
        return {}
    counters = [] if npu is None else npu["counters"]
    events = {row["id"]: row["event"] for row in counters}
    source = npu["cycles"]["source"] if npu is not None and "cycles" in npu else ""
    asked = job.samples.count if job.samples.is_sequence else None
    return sequences.sequence_part(
        execution.steps, job.samples.steps.feeds, asked, verdict.steps, events, source
    )


def _with_time(record: Record, job: RunJob) -> Record:
    """The record with the time line of its inference, or why there is none."""
    facts = time_line.TimeFacts(kinds.RUN.convert(record), job.priced, job.cpu_clock)
    found, unavailable = time_line.time_member(facts)
    return {**record, **found, "unavailable": [*record["unavailable"], *unavailable]}


def _priced(job: RunJob) -> Record:
    """The member `priced`. An FVP has a timing of its own."""
    is_modelled = job.priced is not None and job.choice.simulator != FVP
    return {"priced": job.priced.part()} if is_modelled and job.priced is not None else {}


def _tensor(index: int, array: npt.NDArray[Any]) -> Record:
    return {
        "index": index,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "sha256": filesystem.sha256_bytes(array.tobytes()),
    }


def run_summary(record: Record, folder: Path, data: Sequence[str] = ()) -> Group:
    """The run for people: verdict, outputs, NPU, memory, where the files lie; `data` are lines about data files."""
    run = kinds.RUN.convert(record)
    head = Table(box=None, show_header=False, pad_edge=False)
    colour = "green" if run.status == "pass" else "red"
    limits = wording.unjudged_steps(run)
    status = f"[bold {colour}]{run.status}[/bold {colour}]"
    head.add_row("verdict", f"{status}, {escape(limits)}" if limits else status)
    for check in run.verdict.checks:
        head.add_row("", escape(f"{check.status}: {check.name} ({check.detail})"))
    for name, words in (*wording.run_rows(run, data), ("files", str(folder))):
        head.add_row(name, escape(words))
    regions = record["memory"]["regions"]
    return Group(head, build_command.memory_table(regions, "memory")) if regions else Group(head)
