"""run.json: from an execution to its record, and the record's summary for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import numpy.typing as npt
from msgspec import Struct, convert, structs
from rich.console import Group
from rich.table import Table

from ethosu_sdk.base import boards, filesystem
from ethosu_sdk.base.terminal import escape
from ethosu_sdk.firmware_build import build_command, program_checks, program_firmware
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import provenance, result_files, wording
from ethosu_sdk.records.common import Dtype, Model, Priced, Verdict, VerdictCheck
from ethosu_sdk.records.run import Input, Memory, Npu, Output, Run, RunState, Sequence as SequencePart
from ethosu_sdk.run import kept_state, repeats, sequences, time_line
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.job import RunJob, memory_timing_part
from ethosu_sdk.run.options import FVP
from ethosu_sdk.run.reference import Reference
from ethosu_sdk.run.sequences import StepsVerdict
from ethosu_sdk.simulate.simulation import MEASURED

Status = Literal["pass", "fail"]


class RunVerdict(Struct, frozen=True):
    """What was checked of an execution; `hazards` says where hardware may compute something else than the model."""

    checks: Sequence[Check]
    reference: Reference
    hazards: tuple[str, ...]
    steps: StepsVerdict | None = None

    @property
    def status(self) -> Status:
        return _status(all(check.passed for check in self.checks))


def _status(passed: bool) -> Status:
    return "pass" if passed else "fail"


def make_run_record(
    job: RunJob, execution: Execution, verdict: RunVerdict, outputs_file: str, wall_time_s: float
) -> Run:
    options, samples = job.options, job.samples
    inputs = [*result_files.program_entries(job.path, job.program), *execution.provenance_inputs]
    if options.script is not None:
        inputs.append(provenance.file_entry("script", options.script))
    npu = execution.npu
    is_modelled = job.choice.simulator != FVP and not _is_measured(npu)  # which have a timing of their own
    notes = (*execution.notes, *verdict.hazards)
    if npu is not None:
        npu = structs.replace(npu, memory_timing=memory_timing_part(job.memories, options.memory_timing))
    checks = (
        VerdictCheck(name=row.name, status=_status(row.passed), detail=row.detail) for row in verdict.checks
    )
    run = Run(
        status=verdict.status,
        **provenance.origin(inputs, execution.tools),
        model=Model(
            file=job.path.name, sha256=job.program.sha256, bytes=job.program.size, entry=job.plan.name
        ),
        target=provenance.recorded_target(job.target),
        priced=convert(job.priced.part(), Priced) if job.priced is not None and is_modelled else None,
        board=cast(Any, job.choice.board),
        board_reason=job.choice.reason,
        data_memory=cast(Any, options.data_memory),
        runtime=execution.runtime,
        simulator=execution.simulator,
        device=execution.device,
        inferences=len(execution.steps) or samples.count,
        repeats=repeats.repeats_part(execution.repeated),
        state=_state(job, execution),
        inputs=tuple(
            Input(index=index, source=samples.source, **_described(array))
            for index, array in enumerate(samples.given())
        ),
        outputs=tuple(
            Output(index=index, name=f"output{index}", file=outputs_file, **_described(array))
            for index, array in enumerate(execution.outputs)
        ),
        verdict=Verdict(status=verdict.status, checks=tuple(checks)),
        reference=verdict.reference.part,
        second_opinion=execution.second_opinion,
        sequence=_sequence(job, execution, verdict, npu),
        npu=npu,
        cpu=execution.cpu,
        memory=_memory(job, execution),
        operators=execution.operators,
        pieces=execution.pieces or None,
        notes=notes or None,
        unavailable=(
            *execution.unavailable,
            *verdict.reference.unavailable,
            *([] if job.target is not None else [provenance.lacking_npu("/target")]),
        ),
        wall_time_s=round(wall_time_s, 3),
        host=provenance.this_host(),
    )
    time, missing = time_line.time_of_run(time_line.TimeFacts(run, job.priced, job.cpu_clock))
    return structs.replace(run, time=time, unavailable=(*run.unavailable, *missing))


def _is_measured(npu: Npu | None) -> bool:
    return npu is not None and npu.cycles is not None and npu.cycles.source == MEASURED


def _memory(job: RunJob, execution: Execution) -> Memory:
    """The record's `memory`; of a program that another firmware or none held, what it takes of the named board."""
    memory, named = execution.memory, job.named
    if named is None:
        return memory
    memory = structs.replace(memory, hardware=named.profile.untested)
    if memory.uses is not None:
        return memory
    options = BuildOptions(
        methods=(job.plan.name,),
        fast_scratch_bytes=program_checks.fast_scratch_bytes([job.plan]),
        data_memory=job.options.data_memory,
    )
    uses = named.uses(program_firmware.needs_of(job.program, options))
    return structs.replace(memory, board=named.profile.name, uses=uses)


class _Described(TypedDict):
    shape: tuple[int, ...]
    dtype: Dtype
    sha256: str


def _described(array: npt.NDArray[Any]) -> _Described:
    dtype = cast(Dtype, array.dtype.name)
    return {"shape": array.shape, "dtype": dtype, "sha256": filesystem.sha256_bytes(array.tobytes())}


def _state(job: RunJob, execution: Execution) -> RunState | None:
    name = job.choice.board
    memory = boards.board_named(name).bulk.name if name in boards.BOARD_NAMES else name
    crcs = execution.steps[-1].state_crcs if execution.steps else ()
    return kept_state.state_part(job.kept, execution.repeated.plan.state, memory, crcs)


def _sequence(job: RunJob, execution: Execution, verdict: RunVerdict, npu: Npu | None) -> SequencePart | None:
    samples = job.samples
    if not execution.steps or not (samples.is_sequence or samples.count > 1):
        return None
    events = {} if npu is None else {row.id: row.event for row in npu.counters}
    source = npu.cycles.source if npu is not None and npu.cycles is not None else ""
    asked = samples.count if samples.is_sequence else None
    return sequences.sequence_part(execution.steps, samples.steps.feeds, asked, verdict.steps, events, source)


def run_summary(run: Run, folder: Path, data: Sequence[str] = ()) -> Group:
    """The run for people: verdict, outputs, NPU, memory, where the files lie; `data` are lines about data files."""
    head = Table(box=None, show_header=False, pad_edge=False)
    colour = "green" if run.status == "pass" else "red"
    limits = wording.unjudged_steps(run)
    status = f"[bold {colour}]{run.status}[/bold {colour}]"
    head.add_row("verdict", f"{status}, {escape(limits)}" if limits else status)
    for check in run.verdict.checks:
        head.add_row("", escape(f"{check.status}: {check.name} ({check.detail})"))
    for name, words in (*wording.run_rows(run, data), ("files", str(folder))):
        head.add_row(name, escape(words))
    regions = [row.to_json() for row in run.memory.regions]
    return Group(head, build_command.memory_table(regions, "memory")) if regions else Group(head)
