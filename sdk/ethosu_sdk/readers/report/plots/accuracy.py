"""The SQNR of each layer beside the model in PyTorch."""

from __future__ import annotations

from typing import Any

import altair

from ethosu_sdk.page.plot import Plot, drawn, named, short
from ethosu_sdk.records.debug import Debug

_TITLE = "Signal to quantisation noise by layer"
_HEIGHT = 260
_AGAINST = ("quantised", "float")


def of(debug: Debug, name: str) -> Plot:
    """A point for each layer and each model that it was compared with."""
    rows = [
        {
            "layer": layer.index,
            "tensor": short(layer.tensor),
            "against": against,
            "db": distance.sqnr_db,
        }
        for layer in debug.layers
        for against, distance in zip(_AGAINST, (layer.quantised, layer.float), strict=True)
        if distance is not None and distance.sqnr_db is not None
    ]
    if not rows:
        return Plot(name, _TITLE, "All layers that were compared are equal to the model's.")
    text = (
        "Layers that are equal to the model's have no noise, and so no point. Layers that were not "
        "compared have no point either."
    )
    return drawn(name, _TITLE, text, _chart(debug.thresholds.break_db), rows=rows)


def _chart(threshold_db: float) -> Any:
    lines = (
        altair.Chart(named("rows"))
        .mark_line(point=True)
        .encode(
            x=altair.X("layer:Q", axis=altair.Axis(format="d", tickMinStep=1)),
            y=altair.Y("db:Q", title="SQNR, dB"),
            color=altair.Color(
                "against:N", sort=list(_AGAINST), title=None, legend=altair.Legend(orient="top")
            ),
            tooltip=["layer:Q", "tensor:N", "against:N", altair.Tooltip("db:Q", format=".1f", title="dB")],
        )
    )
    breaks = altair.Chart(named("rows")).mark_rule(strokeDash=[4, 4]).encode(y=altair.datum(threshold_db))
    return (lines + breaks).properties(width="container", height=_HEIGHT)
