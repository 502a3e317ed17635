"""What a page shows of a run, as texts and numbers: each view takes records and knows nothing of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.readers.report.inputs import COMPILE, PROFILE, Inputs
from ethosu_sdk.readers.report.views import (
    accuracy,
    advice,
    arena,
    memory,
    operations,
    origins,
    sources,
    summary,
)


def of(inputs: Inputs) -> dict[str, Any]:
    """All views of one run."""
    profile = inputs.record(PROFILE)
    return {
        "label": inputs.label,
        "status": inputs.run["verdict"]["status"],
        "cards": summary.cards(inputs),
        "summary": summary.rows(inputs),
        "advice": advice.of(inputs),
        "checks": inputs.run["verdict"]["checks"],
        "memory": memory.of(inputs.run),
        "traffic": memory.traffic(profile),
        "sources": sources.of(profile),
        "vela": sources.vela(profile),
        "operations": operations.of(profile),
        "delegation": profile.get("delegation", inputs.record(COMPILE).get("delegation", [])),
        "not_delegated": operations.not_delegated(inputs.record(COMPILE)),
        "planned": arena.planned(inputs.program),
        "accuracy": accuracy.of(inputs),
        "origins": origins.of(inputs),
        "unavailable": origins.unavailable(inputs),
        "counters": inputs.run.get("npu", {}).get("counters", []),
        "missing": inputs.missing,
    }


def side_by_side(all_inputs: Sequence[Inputs]) -> dict[str, Any]:
    """The figures of several runs, a column each."""
    columns = [dict(summary.rows(inputs)) for inputs in all_inputs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return {
        "labels": [inputs.label for inputs in all_inputs],
        "rows": [{"name": name, "cells": [column.get(name, "") for column in columns]} for name in names],
    }
