"""The arena: what lies where and for how long, and how much of it is needed when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results.run_facts import Lifetime, Lifetimes
from ethosu_sdk.vela_blocks import REGION_FAST_SCRATCH, REGION_SCRATCH

_TITLE = "What lies where in the arena"
_USE_TITLE = "Use of the arena"
_REGIONS = {REGION_SCRATCH: "arena", REGION_FAST_SCRATCH: "fast scratch"}
_HEIGHT = 320
_MOST = 2000  # tenants that are drawn, the largest ones
_NOT_KNOWN = (
    "Rows of a feature map that lie apart are drawn as one extent. How long inputs are kept before the "
    "delegate, and outputs after it, is ExecuTorch's plan."
)


def of(inputs: Inputs, name: str) -> dict[str, Plot]:
    """Plots of the delegate with the largest arena."""
    found = inputs.facts.lifetimes
    if inputs.program is None or found is None:
        reason = inputs.missing.get("program", inputs.facts.lifetimes_reason)
        return {"arena": Plot(name, _TITLE, f"Not known: {reason}.")}
    rows = {
        row.offset: row
        for row in (inputs.profile.operations if inputs.profile is not None else ())
        if row.delegate == found.delegate and row.offset is not None
    }
    return {
        **{
            f"arena{region}": _extents(found, region, rows, f"{name}{region}")
            for region in _REGIONS
            if any(row.region == region for row in found.rows)
        },
        "arena-use": _use(found, rows, f"{name}-use"),
    }


def _which(found: Lifetimes) -> str:
    if found.delegates <= 1:
        return ""
    return f"Delegate {found.delegate}, of {found.delegates:,} the one with the largest arena. "


def _extents(found: Lifetimes, region: int, rows: Mapping[int, Operation], name: str) -> Plot:
    own = [row for row in found.rows if row.region == region]
    live = found.live_bytes(region)
    peak = max(live, default=0)
    at = live.index(peak) if live else 0
    drawn_ = sorted(own, key=lambda row: row.start - row.end)[:_MOST]
    left_out = "" if len(drawn_) == len(own) else f" The {_MOST:,} largest of {len(own):,} extents are drawn."
    text = (
        f"{_which(found)}Extents of the {_REGIONS[region]} that operations write, from the writer to the "
        f"last reader, as the command stream has them. The peak is at operation {at}: {peak:,} "
        f"bytes.{left_out} {_NOT_KNOWN}"
    )
    title = _TITLE if region == REGION_SCRATCH else f"{_TITLE}: {_REGIONS[region]}"
    return drawn(
        name,
        title,
        text,
        _rectangles(at),
        tenants=[_rectangle(row, rows) for row in drawn_],
        peak=[{"at": at + 0.5}],
    )


def _rectangle(row: Lifetime, rows: Mapping[int, Operation]) -> dict[str, Any]:
    entry = rows.get(row.offset) if row.offset is not None else None
    tensor = ""
    if entry is not None:
        tensor = (entry.tosa.tensor if entry.tosa is not None else None) or entry.name
    return {
        "from": max(row.first, 0),
        "to": row.last + 1,
        "start": row.start,
        "end": row.end,
        "bytes": row.end - row.start,
        "role": row.role or ("never read" if row.last == row.first else "inner"),
        "tensor": short(tensor) if row.offset is not None else "input of the delegate",
        "writer": row.first,
        "reader": row.last,
    }


def _rectangles(peak: int) -> Any:
    roles = ["inner", "input", "output", "never read"]
    rectangles = (
        altair.Chart(named("tenants"))
        .mark_rect(fillOpacity=0.55, strokeWidth=0.5)
        .encode(
            x=altair.X("from:Q", title="operation", scale=altair.Scale(nice=False, zero=True)),
            x2="to:Q",
            y=altair.Y("start:Q", title="byte", axis=altair.Axis(format="~s")),
            y2="end:Q",
            color=altair.Color("role:N", sort=roles, title=None, legend=altair.Legend(orient="top")),
            stroke=altair.Stroke("role:N", sort=roles, title=None, legend=None),
            tooltip=[
                altair.Tooltip("tensor:N"),
                altair.Tooltip("bytes:Q", format=","),
                altair.Tooltip("start:Q", format=",", title="first byte"),
                altair.Tooltip("writer:Q", title="written by operation"),
                altair.Tooltip("reader:Q", title="last read by operation"),
            ],
        )
    )
    mark = altair.Chart(named("peak")).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
    return (rectangles + mark).properties(width="container", height=_HEIGHT)


def _use(found: Lifetimes, rows: Mapping[int, Operation], name: str) -> Plot:
    """What the stream needs, beside what Vela states."""
    live = found.live_bytes(REGION_SCRATCH)
    by_offset = {row.offset: row.first for row in found.rows if row.offset is not None}
    points = [{"at": at, "bytes": value, "what": "needed, by the stream"} for at, value in enumerate(live)]
    stated = [
        {"at": by_offset[offset], "bytes": row.scratch_bytes, "what": "in use, by Vela"}
        for offset, row in rows.items()
        if row.scratch_bytes is not None and offset in by_offset
    ]
    text = (
        f"{_which(found)}The arena has {found.arena_bytes:,} bytes; at most {max(live, default=0):,} of them are "
        "needed at once by what the command stream writes and reads. "
    )
    if stated:
        most = max(row.scratch_bytes or 0 for offset, row in rows.items() if offset in by_offset)
        text += f"Vela states up to {most:,} bytes in use, for the operations it scheduled."
    else:
        text += "There is no compile record, and so no figure of Vela's for each operation."
    return drawn(
        name, _USE_TITLE, text, _steps(), points=[*points, *stated], size=[{"bytes": found.arena_bytes}]
    )


def _steps() -> Any:
    lines = (
        altair.Chart(named("points"))
        .mark_line(interpolate="step-after")
        .encode(
            x=altair.X("at:Q", title="operation", scale=altair.Scale(nice=False, zero=True)),
            y=altair.Y("bytes:Q", title="bytes", axis=altair.Axis(format="~s")),
            color=altair.Color("what:N", title=None, legend=altair.Legend(orient="top")),
            tooltip=[
                "what:N",
                altair.Tooltip("at:Q", title="operation"),
                altair.Tooltip("bytes:Q", format=","),
            ],
        )
    )
    whole = altair.Chart(named("size")).mark_rule(strokeDash=[4, 4]).encode(y="bytes:Q")
    return (lines + whole).properties(width="container", height=200)
