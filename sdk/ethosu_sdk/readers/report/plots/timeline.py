"""The timeline: which of the NPU's units and memories work while an operation runs, and for how much of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.plots.roofline import bytes_per_cycle, moved
from ethosu_sdk.readers.report.views import fold
from ethosu_sdk.readers.report.views.operations import origin
from ethosu_sdk.records.profile import Operation, Profile

_TITLE = "Timeline of units and memories"
_UNITS = {"mac": "MAC unit", "output": "output unit", "weight_decoder": "weight decoder"}
_ROW_PIXELS = 34
_MOST = 1000  # operations: more are finer than a pixel, and slow to draw


def of(profile: Profile | None, name: str) -> Plot:
    """One call of each delegate, one after the other: what the CPU does between them has no cycles."""
    widths = bytes_per_cycle(profile) if profile is not None else {}
    bars = list(_bars(profile, widths)) if profile is not None else []
    if not bars:
        return Plot(name, _TITLE, "There is no profile with operations of the NPU.")
    lanes = [
        lane for lane in (*_UNITS.values(), *map(short, widths)) if any(row["unit"] == lane for row in bars)
    ]
    operations = {row["operation"] for row in bars}
    left_out = ""
    if len(operations) > _MOST:
        kept = set(_longest(bars))
        bars = [row for row in bars if row["operation"] in kept]
        left_out = f" The {_MOST:,} longest of {len(operations):,} operations are drawn."
    text = (
        "Modelled cycles of the NPU, delegate after delegate, without the CPU's time between them. "
        "The more solid a bar's colour, the larger the share of the operation's time for which the unit or memory "
        "works; the model does not say when within it. Work that runs in parallel and adds no cycles "
        f"counts towards the operation that ends last.{left_out}"
    )
    return drawn(name, _TITLE, text, _chart(lanes), bars=bars)


def _longest(bars: Sequence[dict[str, Any]]) -> list[str]:
    lengths = {row["operation"]: row["end"] - row["start"] for row in bars}
    return sorted(lengths, key=lambda operation: -lengths[operation])[:_MOST]


def _bars(profile: Profile, widths: dict[str, float]) -> Iterator[dict[str, Any]]:
    starts = {row.index: row.start_cycles or 0 for row in profile.delegates}
    now, call = 0, None
    work: defaultdict[str, float] = defaultdict(float)
    for entry in profile.operations:
        if entry.runs_on != "NPU" or entry.delegate is None:
            continue
        if (entry.instruction, entry.delegate) != call:
            call = (entry.instruction, entry.delegate)
            now += starts.get(entry.delegate, 0)
            work.clear()
        for stage, unit in _UNITS.items():
            work[unit] += getattr(entry.busy, stage)
        for memory, size in moved(entry).items():
            if memory in widths:
                work[short(memory)] += size / widths[memory]
        cycles = entry.modelled_cycles
        if not cycles:
            continue
        yield from _of_operation(entry, now, cycles, work)
        now += cycles
        work.clear()


def _of_operation(
    entry: Operation, start: int, cycles: int, work: dict[str, float]
) -> Iterator[dict[str, Any]]:
    for unit, busy in work.items():
        if busy:
            yield {
                "unit": unit,
                "start": start,
                "end": start + cycles,
                "share": round(min(1.0, busy / cycles), 3),
                "cycles": cycles,
                "operation": short(f"{entry.index} {fold.name(entry)}"),
                "from": short(origin(entry)),
                "bound": entry.bound_by or "",
            }


def _chart(lanes: list[str]) -> Any:
    return (
        altair.Chart(named("bars"))
        .mark_rect()
        .encode(
            x=altair.X("start:Q", title="cycles", scale=altair.Scale(nice=False, zero=True)),
            x2="end:Q",
            y=altair.Y("unit:N", sort=lanes, title=None, axis=altair.Axis(labelLimit=110)),
            color=altair.Color("unit:N", sort=lanes, legend=None),
            opacity=altair.Opacity(
                "share:Q", scale=altair.Scale(domain=[0, 1], range=[0.06, 1]), legend=None
            ),
            tooltip=[
                altair.Tooltip("operation:N"),
                altair.Tooltip("from:N"),
                altair.Tooltip("unit:N"),
                altair.Tooltip("share:Q", format=".0%", title="works for"),
                altair.Tooltip("start:Q", format=","),
                altair.Tooltip("cycles:Q", format=","),
                altair.Tooltip("bound:N", title="pace set by"),
            ],
        )
        .properties(width="container", height=_ROW_PIXELS * len(lanes))
    )
