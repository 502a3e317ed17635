"""The parts of the page, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.page import document
from ethosu_sdk.records import Record
from ethosu_sdk.sweep.page import cells, overview, plot, settings
from ethosu_sdk.sweep.page.settings import Row


def render(folder: Path, record: Record, rows: Sequence[Row]) -> str:
    """The page as HTML."""
    found = settings.of(rows)
    drawn = plot.of(record["verdict"], rows, found)
    data = {
        "plots": {drawn.id: drawn.spec} if drawn.spec else {},
        "cells": cells.of(folder, record["verdict"], rows, found),
    }
    title = settings.short(record.get("name")) or "sweep"
    return document.render(
        __package__,
        title,
        data,
        overview=overview.of(record, rows, found),
        plot=drawn,
        plot_models=_models(drawn.spec),
        origins=_origins(record),
    )


def _models(spec: Mapping[str, Any]) -> list[str]:
    """Models that have a point in the plot, by source where they have several."""
    return list(dict.fromkeys(row["group"] for row in spec.get("datasets", {}).get("points", ())))


def _origins(record: Record) -> dict[str, Any]:
    found = record.get("provenance", {})
    tool = record.get("tool", {})
    version = " ".join(str(tool[name]) for name in ("name", "version", "git") if name in tool)
    return {
        "made": [("record", record.get("schema")), ("created", record.get("created")), ("by", version)],
        "files": [
            (row["role"], row["file"], row.get("bytes"), row["sha256"]) for row in found.get("inputs", ())
        ],
        "tools": [(row["name"], row["version"]) for row in found.get("tools", ())],
    }
