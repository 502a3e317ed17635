"""Cycles by source beside each other, of each operation that Vela scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.views.operations import origin
from ethosu_sdk.records.profile import Operation, Profile, cycles

_MOST = 40
_TITLE = "Cycles per operation"
_BAR_PIXELS, _GAP_PIXELS = 9, 5
_SOURCES = ("modelled", "estimated", "measured")


@dataclass
class _Scheduled:
    """The NPU operations that one of Vela's scheduled operations became; Vela estimates them together."""

    rows: list[Operation] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The number of the first one, and what they stand for."""
        names = (row.operator or (row.vela.operator if row.vela is not None else "") for row in self.rows)
        name = next(filter(None, names), self.rows[-1].name)
        return short(f"{self.rows[0].index} {name}")

    def cycles(self) -> dict[str, int]:
        """Cycles by source, of sources that have any."""
        found = {}
        for source in _SOURCES:
            known = [value for row in self.rows if (value := cycles(row.cycles, source)) is not None]
            if known:
                found[source] = sum(known)
        return found


def of(profile: Profile | None, name: str) -> Plot:
    """The longest operations, in the order in which they run."""
    known = _scheduled([] if profile is None else [row for row in profile.operations if row.runs_on == "NPU"])
    if not known:
        return Plot(name, _TITLE, "There is no profile with operations of the NPU.")
    longest = sorted(known, key=lambda group: max(group.cycles().values(), default=0), reverse=True)[:_MOST]
    ordered = sorted(longest, key=lambda group: group.rows[0].index)
    rows = [part for group in ordered for part in _bars(group)]
    sources = [source for source in _SOURCES if any(row["source"] == source for row in rows)]
    which = (
        f"the {len(ordered)} longest of {len(known):,}"
        if len(ordered) < len(known)
        else f"all {len(known):,}"
    )
    text = (
        f"Operations as Vela scheduled them, {which}, in the order in which they run, with cycles "
        f"{_and(sources)}. One of them may be several NPU operations, such as a DMA transfer of its "
        "weights; the table lists each."
    )
    return drawn(name, _TITLE, text, _chart(sources, len(ordered)), rows=rows)


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)


def _scheduled(rows: Sequence[Operation]) -> list[_Scheduled]:
    """Rows by what they were scheduled for; alone where that is not known."""
    found: dict[tuple[Any, ...], _Scheduled] = {}
    for row in rows:
        own = ("row", row.index) if row.scheduled is None else ("op", row.scheduled)
        key = (row.instruction, *own)
        found.setdefault(key, _Scheduled()).rows.append(row)
    return list(found.values())


def _bars(group: _Scheduled) -> list[dict[str, Any]]:
    last = group.rows[-1]
    base = {
        "operation": group.label,
        "index": group.rows[0].index,
        "from": short(origin(last)),
    }
    base |= {"bound": last.bound_by or "", "jobs": len(group.rows)}
    return [{**base, "source": source, "cycles": value} for source, value in group.cycles().items()]


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
                altair.Tooltip("from:N"),
                altair.Tooltip("source:N"),
                altair.Tooltip("cycles:Q", format=","),
                altair.Tooltip("bound:N", title="pace of the last set by"),
                altair.Tooltip("jobs:Q", title="NPU operations"),
            ],
        )
        .properties(width="container", height=count * (_BAR_PIXELS * len(sources) + _GAP_PIXELS))
    )
