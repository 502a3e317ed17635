"""What one execution of a program gave, whatever executed it: the parts of run.json that depend on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ethosu_sdk import simulators
from ethosu_sdk.records import Record
from ethosu_sdk.report.verdict import Check

MODELLED = "modelled"


@dataclass(frozen=True)
class Execution:
    """A complete execution. Records are those of run.json; `done` is the check that nothing is missing.

    `outputs` have logical shapes, with a leading axis when there were several inferences in the user's arrays.
    """

    outputs: Sequence[npt.NDArray[Any]]
    done: Check
    board: str
    simulator: Record
    provenance_inputs: Sequence[Record]
    tools: Sequence[Record]
    npu: Record | None
    memory: Record
    operators: Sequence[Record]
    unavailable: Sequence[Record]


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


def metric(value: int, unit: str) -> Record:
    """A figure of the NPU model."""
    return {"value": value, "unit": unit, "source": MODELLED}


def npu_part(facts: NpuFacts, events: Sequence[int]) -> tuple[Record, list[Record]]:
    """The record's `npu` object, and what of it is unavailable."""
    npu: Record = {**facts.identity, "delegate_calls": facts.delegate_calls, "counters": []}
    if facts.cycles is not None:
        npu["cycles"] = metric(facts.cycles, "cycles")
    unavailable: list[Record] = []
    table = simulators.events(facts.npu)
    for event in events:
        row = table[event]
        value, overflowed = facts.totals.get(event, (None, False))
        if not row.modelled:
            reason = "the NPU model cannot know it"
        elif value is None:
            reason = "the counter was not reported"
        elif overflowed:
            reason = "the counter overflowed"
        else:
            entry = {"event": row.name, "id": event, "value": value, "unit": row.unit, "source": MODELLED}
            npu["counters"].append(entry | ({"bytes": value * row.beat_bytes} if row.beat_bytes else {}))
            continue
        unavailable.append({"path": f"/npu/counters/{row.name}", "reason": reason})
    return npu, unavailable
