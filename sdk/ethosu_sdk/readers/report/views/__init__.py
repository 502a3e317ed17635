"""What a page shows of a run, as texts and numbers: each view takes records and knows nothing of HTML."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.views import (
    accuracy,
    advice,
    arena,
    memory,
    operations,
    origins,
    run_rows,
    sources,
    summary,
)


def of(inputs: Inputs) -> dict[str, Any]:
    """All views of one run."""
    run, profile, compiled = inputs.run, inputs.profile, inputs.compiled
    return {
        "label": inputs.label,
        "title": summary.title(inputs),
        "limits": summary.limits(inputs),
        "stale": summary.stale(inputs),
        "board": run.board.capitalize(),
        "cards": summary.cards(inputs),
        "ran": [*run_rows.settings(inputs), *run_rows.counts(inputs)],
        "advice": advice.of(inputs),
        "checks": run.verdict.checks,
        "memory": memory.of(run.memory, inputs.built),
        "state": memory.state(run.state),
        "source_of_cycles": run.npu.cycles.source if run.npu is not None and run.npu.cycles else "",
        "phases": operations.phases(profile),
        "traffic": memory.traffic(profile.memories) if profile is not None else [],
        "sources": sources.of(profile),
        "vela": sources.vela(profile),
        "operations": operations.of(profile),
        "delegation": next(
            (row.delegation for row in (profile, compiled) if row and row.delegation is not None), ()
        ),
        "not_delegated": operations.not_delegated(compiled) if compiled is not None else [],
        "planned": arena.planned(inputs.program),
        "accuracy": accuracy.of(inputs),
        "origins": origins.of(inputs),
        "unavailable": origins.unavailable(inputs),
        "counters": run.npu.counters if run.npu is not None else (),
        "missing": inputs.missing,
    }
