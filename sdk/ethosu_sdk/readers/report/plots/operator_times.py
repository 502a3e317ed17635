"""The operators that take most of an inference, on either processor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.views import fold, operation_tree
from ethosu_sdk.readers.report.views.operation_tree import Node
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results import source_place

_MOST = 20
_TITLE = "Time by operator"
_BAR_PIXELS = 16
_PROCESSORS = ("CPU", "NPU")
_BETWEEN = "start, copies, runtime"


def of(profile: Profile | None, name: str) -> Plot | None:
    """The longest operators, the longest first; None where the time of an inference is not known."""
    nodes = [] if profile is None else list(_operators(operation_tree.of(profile)))
    known = sorted(
        ((node.figures().get("time", 0.0), node) for node in nodes), key=lambda row: row[0], reverse=True
    )
    longest = [row for row in known if row[0] > 0][:_MOST]
    if not longest:
        return None
    whole = sum(value for value, _ in known)
    rows = [_bar(number, value, whole, node) for number, (value, node) in enumerate(longest)]
    share = sum(value for value, _ in longest) / whole
    which = (
        f"The {len(longest)} longest of {len(known):,}"
        if len(longest) < len(known)
        else f"All {len(known):,}"
    )
    text = (
        f"{which} operators, with {share:.0%} of the time of an inference (modelled): those of the CPU with the "
        "runtime around them, and what lies between operators."
    )
    return drawn(name, _TITLE, text, _chart(len(longest)), rows=rows)


def _operators(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.kind == "module":
            yield from _operators(node.children)
        else:
            yield node


def _bar(number: int, value: float, whole: float, node: Node) -> dict[str, Any]:
    entry = node.entry
    module = fold.module(entry)
    label = node.name if entry is None else f"{entry.index} {node.name}"
    return {
        "operator": short(label),
        "at": number,
        "ms": value,
        "share": value / whole,
        "on": _BETWEEN if entry is None else entry.runs_on,
        "module": short(module),
        "line": short(source_place.function(entry.source)) if entry is not None else "",
    }


def _chart(count: int) -> Any:
    return (
        altair.Chart(named("rows"))
        .mark_bar()
        .encode(
            y=altair.Y(
                "operator:N", sort=altair.SortField("at"), title=None, axis=altair.Axis(labelLimit=180)
            ),
            x=altair.X("ms:Q", title="ms"),
            color=altair.Color(
                "on:N",
                title=None,
                scale=altair.Scale(domain=[*_PROCESSORS, _BETWEEN]),
                legend=altair.Legend(orient="top"),
            ),
            tooltip=[
                altair.Tooltip("operator:N"),
                altair.Tooltip("module:N"),
                altair.Tooltip("line:N"),
                altair.Tooltip("ms:Q", format=",.4f"),
                altair.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(width="container", height=count * _BAR_PIXELS)
    )
