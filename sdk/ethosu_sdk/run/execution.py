"""What one execution of a program gave, whatever executed it: the parts of run.json that depend on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.program.protocol import INSTRUCTION_KINDS
from ethosu_sdk.run.repeats import Repeated
from ethosu_sdk.run.sequences import StepResult
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.simulation import MODEL_FIGURES, MODELLED, Figures, LoadedElf

_KINDS = {call: kind for kind, call in INSTRUCTION_KINDS.items()}


@dataclass(frozen=True)
class SecondOpinion:
    """The record's `second_opinion`, and the checks of the verdict that come of it."""

    part: Record
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Execution:
    """A complete execution. Records are those of run.json; `done` is the check that nothing is missing.

    `outputs` have logical shapes, with a leading axis when there were several inferences in the user's arrays.
    """

    outputs: Sequence[npt.NDArray[Any]]
    done: Check
    runtime: Record
    simulator: Record
    provenance_inputs: Sequence[Record]
    tools: Sequence[Record]
    npu: Record | None
    memory: Record
    operators: Sequence[Record]
    unavailable: Sequence[Record]
    repeated: Repeated
    steps: Sequence[StepResult] = ()
    state: Sequence[bytes] = ()  # what is in each of its tensors at the end, where that was asked for
    cpu: Record = field(default_factory=dict)
    checks: Sequence[Check] = ()  # beside those of the repeats
    pieces: Sequence[Record] = ()  # counters of each piece of the command streams, where they were cut
    notes: Sequence[str] = ()  # where the firmware does not do what the memory mode says, and the like
    built: Sequence[str] = ()  # what the firmware's build wrote into the folder of results
    second_opinion: SecondOpinion | None = None


@dataclass(frozen=True)
class NpuFacts:
    """What the NPU's counters gave in the first inference, summed over its delegate calls.

    `totals` is event number → (value, whether a counter overflowed). `identity` are ID and CONFIG.
    """

    npu: str
    identity: Mapping[str, int]
    delegate_calls: int  # of all inferences
    cycles: int | None
    totals: Mapping[int, tuple[int, bool]]


def metric(value: int, unit: str, source: str = MODELLED) -> Record:
    """A figure of the NPU model, or of another `source`."""
    return {"value": value, "unit": unit, "source": source}


def npu_part(
    facts: NpuFacts, events: Sequence[int], figures: Figures = MODEL_FIGURES
) -> tuple[Record, list[Record]]:
    """The record's `npu` object, and what of it is unavailable."""
    npu: Record = {**facts.identity, "delegate_calls": facts.delegate_calls, "counters": []}
    unavailable: list[Record] = []
    if facts.cycles is not None and not figures.absent:
        npu["cycles"] = metric(facts.cycles, "cycles", figures.source)
    elif facts.cycles is not None:
        unavailable.append({"path": "/npu/cycles", "reason": figures.absent})
    table = simulators.pmu_events(facts.npu)
    for event in events:
        row = table[event]
        value, overflowed = facts.totals.get(event, (None, False))
        if figures.absent:
            reason = figures.absent
        elif not row.modelled and not figures.every_event:
            reason = row.reason
        elif value is None:
            reason = "the counter was not reported"
        elif overflowed:
            reason = "the counter overflowed"
        else:
            entry = {
                "event": row.name,
                "id": event,
                "value": value,
                "unit": row.unit,
                "source": figures.source,
            }
            npu["counters"].append(entry | ({"bytes": value * row.beat_bytes} if row.beat_bytes else {}))
            continue
        unavailable.append({"path": f"/npu/counters/{row.name}", "reason": reason})
    return npu, unavailable


def instructions(plan: ExecutionPlan, npu: Record | None) -> list[Record]:
    """The instructions of a method, in the order of the file; which of them a jump leaves out is not recorded."""
    rows: list[Record] = []
    for number, instruction in enumerate(plan.instructions):
        name = instruction.kind
        if isinstance(instruction, KernelCall):
            name = plan.operators[instruction.op_index].full_name
        elif isinstance(instruction, DelegateCall):
            name = plan.delegates[instruction.delegate_index].id
        rows.append({"instruction": number, "kind": _KINDS[instruction.kind], "name": name})
    delegates = [row for row in rows if row["kind"] == "delegate"]
    if npu is not None and len(delegates) == 1:
        delegates[0]["npu_cycles"] = metric(npu["cycles"]["value"], "cycles")
    return rows


def loaded_part(sha256: str, loaded: LoadedElf | None) -> Record:
    """The members of `runtime` for the ELF that was built with the digest `sha256`, and what was read back of it.

    SimulationError when another one was loaded.
    """
    if loaded is None:
        return {"elf_sha256": sha256}
    if loaded.sha256 != sha256:
        raise SimulationError(
            f"the ELF file changed between its build and its run: its SHA-256 is {loaded.sha256}, not {sha256}",
            "run it again; another command may be writing to the same folder",
        )
    rows = [
        {"address": row.address, "bytes": row.size_bytes, "sha256": row.sha256} for row in loaded.segments
    ]
    return {"elf_sha256": sha256, "loaded": {"status": "compared", "segments": rows}}


def loaded_unavailable(runtime: Record) -> list[Record]:
    """Why nothing of the ELF was read back, where nothing was."""
    if "loaded" in runtime:
        return []
    return [{"path": "/runtime/loaded", "reason": "the simulator does not show its memory before the run"}]
