"""One figure by each of its sources: Vela's estimate, the SDK's model, what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.profile import Profile

SOURCES = ("estimated", "modelled", "measured")


def of(profile: Profile | None) -> list[dict[str, Any]]:
    """Rows with a cell for each source; empty where nothing is known."""
    known = [(name, cells) for name, cells in _figures(profile) if cells]
    if not known or profile is None:
        return []
    if profile.vela_version:
        made_by = {"estimated": f"Vela {profile.vela_version}", "modelled": "the SDK's NPU model"}
        known.insert(0, ("made by", made_by))
    return [{"name": name, "cells": [cells.get(source, "") for source in SOURCES]} for name, cells in known]


def _figures(profile: Profile | None) -> Iterator[tuple[str, dict[str, str]]]:
    if profile is None:
        return
    totals = profile.totals
    yield "NPU cycles of an inference", _cycles(totals.npu.cycles)
    if len(profile.delegates) > 1:
        for row in profile.delegates:
            yield f"delegate {row.index}, cycles of a call", _cycles(row.cycles)
    yield "MACs per cycle", {key: f"{value:,.1f}" for key, value in totals.npu.macs_per_cycle.known()}
    speed = profile.headline
    yield "time of the NPU alone", {row.source: f"{row.inference_s * 1e3:,.3f} ms" for row in speed}
    if not totals.cpu.operators:
        yield "inferences per second", {row.source: f"{row.inferences_per_s:,.1f}" for row in speed}
    yield (
        "tera-operations per second of the NPU",
        {row.source: f"{row.tera_operations_per_s:,.4f}" for row in speed},
    )


def _cycles(rows: Sequence[Metric]) -> dict[str, str]:
    return {row.source: f"{row.value:,}" for row in rows}


def vela(profile: Profile | None) -> list[dict[str, Any]]:
    """Everything that Vela estimated of each delegate."""
    return [
        {
            "delegate": row.delegate,
            "estimates": [
                {"name": part.name, "text": f"{part.value:,}", "unit": part.unit} for part in row.estimates
            ],
        }
        for row in (profile.vela or () if profile is not None else ())
    ]
