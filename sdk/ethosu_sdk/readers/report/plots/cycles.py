"""Cycles by source beside each other, of each operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.views import fold
from ethosu_sdk.records.profile import Operation, Profile, cycles
from ethosu_sdk.results import source_place

_MOST = 40
_TITLE = "Cycles of the NPU by operator"
_BAR_PIXELS, _GAP_PIXELS = 9, 5
_ONE = (
    " The model counts the start-up of every NPU operation. Vela has one estimate for those that it scheduled "
    "together, which is far less where many small ones make an operator, as in a transpose."
)
_SOURCES = ("modelled", "estimated", "measured")


def of(profile: Profile | None, name: str) -> Plot:
    """The longest operators, in the order in which they run."""
    npu = [] if profile is None else [row for row in profile.operations if row.runs_on == "NPU"]
    known = fold.operators(npu)
    if not known:
        return Plot(name, _TITLE, "There is no profile with operations of the NPU.")
    longest = sorted(known, key=lambda rows: max(_cycles(rows).values(), default=0), reverse=True)[:_MOST]
    ordered = sorted(longest, key=lambda rows: rows[0].index)
    rows = [part for group in ordered for part in _bars(group)]
    sources = [source for source in _SOURCES if any(row["source"] == source for row in rows)]
    which = (
        f"the {len(ordered)} longest of {len(known):,}"
        if len(ordered) < len(known)
        else f"all {len(known):,}"
    )
    text = (
        f"Operators on the NPU, {which}, in the order in which they run, with cycles {' and '.join(sources)}. One of "
        "them may be several NPU operations, such as slices or a DMA transfer of its weights; the table lists each."
        f"{_ONE if 'estimated' in sources and 'modelled' in sources else ''}"
    )
    return drawn(name, _TITLE, text, _chart(sources, len(ordered)), rows=rows)


def _cycles(rows: Sequence[Operation]) -> dict[str, int]:
    """Cycles by source, of sources that have any."""
    found = {}
    for source in _SOURCES:
        known = [row.calls * value for row in rows if (value := cycles(row.cycles, source)) is not None]
        if known:
            found[source] = sum(known)
    return found


def _bars(rows: Sequence[Operation]) -> list[dict[str, Any]]:
    main = fold.main(rows)
    base = {
        "operation": short(f"{rows[0].index} {fold.name(main)}"),
        "index": rows[0].index,
        "module": short(fold.module(main)),
        "line": short(source_place.function(main.source)),
        "bound": main.bound_by or "",
        "jobs": len(rows),
    }
    return [{**base, "source": source, "cycles": value} for source, value in _cycles(rows).items()]


def _chart(sources: list[str], count: int) -> Any:
    return (
        altair.Chart(named("rows"))
        .mark_bar()
        .encode(
            y=altair.Y(
                "operation:N", sort=altair.SortField("index"), title=None, axis=altair.Axis(labelLimit=150)
            ),
            x=altair.X("cycles:Q", title="cycles"),
            yOffset=altair.YOffset("source:N", sort=sources),
            color=altair.Color("source:N", sort=sources, title=None, legend=altair.Legend(orient="top")),
            tooltip=[
                altair.Tooltip("operation:N"),
                altair.Tooltip("module:N"),
                altair.Tooltip("line:N"),
                altair.Tooltip("source:N"),
                altair.Tooltip("cycles:Q", format=","),
                altair.Tooltip("bound:N", title="pace set by"),
                altair.Tooltip("jobs:Q", title="NPU operations"),
            ],
        )
        .properties(width="container", height=count * (_BAR_PIXELS * len(sources) + _GAP_PIXELS))
    )
