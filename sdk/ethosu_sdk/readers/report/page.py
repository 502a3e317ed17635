"""The page of runs: what the views and the plots say of each, in the page that the SDK's pages have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.page import document
from ethosu_sdk.readers.report import plots, views
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.plots import common, graph
from ethosu_sdk.readers.report.views import side_by_side, summary


def render(all_inputs: Sequence[Inputs]) -> str:
    """The page as HTML."""
    runs = [
        {
            "id": f"run{number}",
            **views.of(inputs),
            "plots": plots.of(inputs, f"run{number}"),
            "graph": graph.of(inputs),
        }
        for number, inputs in enumerate(all_inputs, start=1)
    ]
    compared = common.of(all_inputs, "compared") if len(all_inputs) > 1 else None
    found = [plot for run in runs for plot in run["plots"].values()] + ([compared] if compared else [])
    return document.render(
        __package__,
        summary.titles(all_inputs),
        {"plots": {plot.id: plot.spec for plot in found if plot.spec}},
        side_by_side=side_by_side.of(all_inputs) if len(all_inputs) > 1 else None,
        compared=compared,
        runs=runs,
    )
