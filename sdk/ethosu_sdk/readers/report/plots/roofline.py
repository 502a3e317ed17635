"""The roofline: how near each operation comes to what the MAC unit and its busiest memory allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.views import fold
from ethosu_sdk.readers.report.views.operations import origin
from ethosu_sdk.records.profile import Operation, Profile

_TITLE = "Roofline"
_HEIGHT = 380


def of(profile: Profile | None, name: str) -> Plot:
    """Operations with MACs, by the memory that they keep busy for longest."""
    ideal = profile.totals.npu.macs_per_cycle.ideal if profile is not None else 0
    widths = bytes_per_cycle(profile) if profile is not None else {}
    rows = list(_points(profile.operations, widths, ideal)) if profile is not None else []
    if not rows or not ideal:
        return Plot(name, _TITLE, "No operation of the profile has MACs and a memory with a known bandwidth.")
    lines = list(_roofs(rows, widths, ideal))
    text = (
        f"Each point is an operation with MACs ({len(rows):,}), against the bytes of the memory that it keeps busy "
        f"for longest. A line is what that memory's bandwidth and the {ideal} MACs per cycle of the NPU allow. "
        "Cycles and bytes are modelled. An operation that runs beside another one counts for as long as its MAC unit "
        "or that memory works."
    )
    return drawn(
        name,
        _TITLE,
        text,
        _chart([row for row in widths if _used(row, rows)]),
        points=rows,
        roofs=lines,
        flat=_flat(lines, ideal),
    )


def bytes_per_cycle(profile: Profile) -> dict[str, float]:
    """Bytes that each memory moves in a cycle of the NPU at most."""
    hz = profile.clock.hz if profile.clock is not None else 0
    return {row.memory: row.peak_bytes_per_s / hz for row in profile.memories if hz and row.peak_bytes_per_s}


def moved(entry: Operation) -> dict[str, int]:
    """Bytes that an operation moves to and from each memory."""
    found: defaultdict[str, int] = defaultdict(int)
    for part in entry.traffic or ():
        found[part.memory] += part.bytes
    return dict(found)


def _used(memory: str, rows: list[dict[str, Any]]) -> bool:
    return any(row["memory"] == memory for row in rows)


def _points(
    operations: Sequence[Operation], widths: Mapping[str, float], ideal: float
) -> Iterator[dict[str, Any]]:
    for entry in operations:
        own = {name: size for name, size in moved(entry).items() if size and name in widths}
        if not entry.macs or not own:
            continue
        busiest = max(own, key=lambda name: own[name] / widths[name])
        # An operation that runs beside the one before adds fewer cycles than its MAC unit or that memory works.
        cycles = max(entry.modelled_cycles, entry.busy.mac, own[busiest] / widths[busiest])
        intensity = entry.macs / own[busiest]
        yield {
            "operation": short(f"{entry.index} {fold.name(entry)}"),
            "from": short(origin(entry)),
            "memory": busiest,
            "intensity": round(intensity, 4),
            "rate": round(entry.macs / cycles, 4),
            "roof": round(min(ideal, widths[busiest] * intensity), 4),
            "macs": entry.macs,
            "bound": entry.bound_by or "",
        }


def _roofs(rows: list[dict[str, Any]], widths: Mapping[str, float], ideal: float) -> Iterator[dict[str, Any]]:
    used = [name for name in widths if _used(name, rows)]
    knees = [ideal / widths[name] for name in used]
    least = min(*(row["intensity"] for row in rows), *knees) / 2
    most = max(*(row["intensity"] for row in rows), *knees) * 2
    for name, knee in zip(used, knees, strict=True):
        for place in (least, knee, most):
            yield {"memory": name, "intensity": place, "rate": min(ideal, widths[name] * place)}


def _flat(lines: list[dict[str, Any]], ideal: float) -> list[dict[str, Any]]:
    """Where the flat part of the roof ends, and what it is."""
    return [{**max(lines, key=lambda row: row["intensity"]), "text": f"{ideal} MACs per cycle"}]


def _chart(memories: list[str]) -> Any:
    x = altair.X(
        "intensity:Q",
        scale=altair.Scale(type="log", nice=False),
        title="MACs per byte",
        axis=altair.Axis(tickCount=6),
    )
    y = altair.Y(
        "rate:Q",
        scale=altair.Scale(type="log", nice=False),
        title="MACs per cycle",
        axis=altair.Axis(tickCount=5),
    )
    colour = altair.Color("memory:N", sort=memories, title=None, legend=altair.Legend(orient="top"))
    lines = altair.Chart(named("roofs")).mark_line().encode(x=x, y=y, color=colour)
    points = (
        altair.Chart(named("points"))
        .mark_point(filled=True, size=55, opacity=0.8)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=altair.Shape("memory:N", sort=memories, title=None, legend=None),
            tooltip=[
                altair.Tooltip("operation:N"),
                altair.Tooltip("from:N"),
                altair.Tooltip("memory:N"),
                altair.Tooltip("macs:Q", format=",", title="MACs"),
                altair.Tooltip("intensity:Q", format=",.2f", title="MACs per byte"),
                altair.Tooltip("rate:Q", format=",.2f", title="MACs per cycle"),
                altair.Tooltip("roof:Q", format=",.2f", title="possible"),
                altair.Tooltip("bound:N", title="pace set by"),
            ],
        )
    )
    flat = altair.Chart(named("flat")).mark_text(align="right", dy=10, fontSize=11, tooltip=None)
    return (lines + points + flat.encode(x=x, y=y, text="text:N")).properties(
        width="container", height=_HEIGHT
    )
