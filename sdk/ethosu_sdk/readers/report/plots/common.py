"""One chart of all runs: the operators that take most, with a bar for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.views import side_by_side

_TITLE = "Operators of all runs"
_MOST = 30
_BAR_PIXELS, _GAP_PIXELS = 9, 5


def of(all_inputs: Sequence[Inputs], name: str) -> Plot:
    """The longest operators, by what all runs know of them."""
    found = side_by_side.operators_of(all_inputs)
    if found is None or not found.rows:
        return Plot(name, _TITLE, "Not every run has a profile with figures of the same source.")
    longest = sorted(found.rows.items(), key=lambda row: -max(value or 0 for value in row[1]))[:_MOST]
    labels = [short(inputs.label) for inputs in all_inputs]
    rows = [
        {"operator": short(operator), "at": number, "run": label, "value": value}
        for number, (operator, values) in enumerate(longest)
        for label, value in zip(labels, values, strict=True)
        if value is not None
    ]
    which = f"The {len(longest)} longest of {len(found.rows):,}" if len(longest) < len(found.rows) else "All"
    text = f"{which} operators by {found.what}, the longest first. A run without a bar lacks the operator."
    return drawn(name, _TITLE, text, _chart(labels, len(longest), found), rows=rows)


def _chart(labels: Sequence[str], count: int, found: side_by_side.Operators) -> Any:
    unit = found.unit
    return (
        altair.Chart(named("rows"))
        .mark_bar()
        .encode(
            y=altair.Y(
                "operator:N", sort=altair.SortField("at"), title=None, axis=altair.Axis(labelLimit=180)
            ),
            x=altair.X("value:Q", title=unit),
            yOffset=altair.YOffset("run:N", sort=list(labels)),
            color=altair.Color("run:N", sort=list(labels), title=None, legend=altair.Legend(orient="top")),
            tooltip=[
                altair.Tooltip("operator:N"),
                altair.Tooltip("run:N"),
                altair.Tooltip("value:Q", format=",.4~f", title=unit),
            ],
        )
        .properties(width="container", height=count * (_BAR_PIXELS * len(labels) + _GAP_PIXELS))
    )
