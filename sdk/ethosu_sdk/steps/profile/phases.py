"""The phases of a sequence: its first step and the steady state, or prefill and decode."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ethosu_sdk.errors import UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences.sequence import Step


def member(run: Run, prefill: int | None) -> Record:
    """The member `phases`; empty for a run of one inference, or one without cycles. The first `prefill` steps are a
    phase, by default the first alone. UsageError where there are not so many."""
    steps = () if run.sequence is None else run.sequence.steps
    if prefill is not None and prefill >= len(steps):
        raise UsageError(
            f"--prefill {prefill} leaves no step to decode: the run has {len(steps) or 1}",
            "give a run more steps with --steps",
        )
    if len(steps) < 2 or any(row.npu_cycles is None for row in steps):
        return {}
    names = ("first step", "steady state") if prefill is None else ("prefill", "decode")
    cut = 1 if prefill is None else prefill
    return {"phases": [_phase(names[0], steps[:cut]), _phase(names[1], steps[cut:])]}


def _phase(name: str, steps: Sequence[Step]) -> Record:
    cycles = [row.npu_cycles or 0 for row in steps]
    return {
        "name": name,
        "first_step": steps[0].step,
        "steps": len(steps),
        "npu_cycles": {
            "total": sum(cycles),
            "min": min(cycles),
            "median": statistics.median_low(cycles),
            "max": max(cycles),
        },
    }
