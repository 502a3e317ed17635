"""What a page shows of a run, as texts and numbers: each view takes records and knows nothing of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.readers.report.subject import COMPILE, PROFILE, Subject
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


def of(subject: Subject) -> dict[str, Any]:
    """All views of one run."""
    profile = subject.record(PROFILE)
    return {
        "label": subject.label,
        "status": subject.run["verdict"]["status"],
        "cards": summary.cards(subject),
        "summary": summary.rows(subject),
        "advice": advice.of(subject),
        "checks": subject.run["verdict"]["checks"],
        "memory": memory.of(subject.run),
        "traffic": memory.traffic(profile),
        "sources": sources.of(profile),
        "vela": sources.vela(profile),
        "operations": operations.of(profile),
        "delegation": profile.get("delegation", subject.record(COMPILE).get("delegation", [])),
        "not_delegated": operations.not_delegated(subject.record(COMPILE)),
        "planned": arena.planned(subject.program),
        "accuracy": accuracy.of(subject),
        "origins": origins.of(subject),
        "unavailable": origins.unavailable(subject),
        "counters": subject.run.get("npu", {}).get("counters", []),
        "missing": subject.missing,
    }


def side_by_side(subjects: Sequence[Subject]) -> dict[str, Any]:
    """The figures of several runs, a column each."""
    columns = [dict(summary.rows(subject)) for subject in subjects]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return {
        "labels": [subject.label for subject in subjects],
        "rows": [{"name": name, "cells": [column.get(name, "") for column in columns]} for name in names],
    }
