"""The page of runs: what the views and the plots say of each, in the page that the SDK's pages have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.page import document
from ethosu_sdk.readers.report import plots, views
from ethosu_sdk.readers.report.inputs import Inputs


def render(all_inputs: Sequence[Inputs]) -> str:
    """The page as HTML."""
    runs = [
        {"id": f"run{number}", **views.of(inputs), "plots": plots.of(inputs, f"run{number}")}
        for number, inputs in enumerate(all_inputs, start=1)
    ]
    specs = {plot.id: plot.spec for run in runs for plot in run["plots"].values() if plot.spec}
    return document.render(
        __package__,
        " · ".join(inputs.label for inputs in all_inputs),
        {"plots": specs},
        side_by_side=views.side_by_side(all_inputs),
        runs=runs,
    )
