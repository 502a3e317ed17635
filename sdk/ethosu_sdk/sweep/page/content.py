"""The parts of the page, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.page import document
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records import kinds
from ethosu_sdk.records.sweep import Sweep
from ethosu_sdk.sweep.page import cells, overview, plot, settings
from ethosu_sdk.sweep.page.settings import Row


def render(folder: Path, record: Sweep, rows: Sequence[Row]) -> str:
    """The page as HTML."""
    found = settings.of(rows)
    drawn = plot.of(record.verdict, rows, found)
    data = {
        "plots": {drawn.id: drawn.spec} if drawn.spec else {},
        "cells": cells.of(folder, record.verdict, rows, found),
    }
    models, targets = len(record.verdict.models), len(record.verdict.targets)
    title = f"{settings.short(record.name) or 'sweep'}: {counted(models, 'model')} on {counted(targets, 'target')}"
    return document.render(
        __package__,
        title,
        data,
        overview=overview.of(record.verdict, rows, found),
        plot=drawn,
        plot_models=_models(drawn.spec),
        origins=_origins(record),
    )


def _models(spec: Mapping[str, Any]) -> list[str]:
    """Models that have a point in the plot, by source where they have several."""
    return list(dict.fromkeys(row["group"] for row in spec.get("datasets", {}).get("points", ())))


def _origins(record: Sweep) -> dict[str, Any]:
    tool, found = record.tool, record.provenance
    version = " ".join(filter(None, (tool.name, tool.version, tool.git)))
    return {
        "made": [("record", kinds.SWEEP.schema), ("created", record.created), ("by", version)],
        "files": [(row.role, row.file, row.bytes, row.sha256) for row in found.inputs],
        "tools": [(row.name, row.version) for row in found.tools],
    }
