"""The page of runs: what the views and the plots say of each, in the page that the SDK's pages have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ethosu_sdk.page import document
from ethosu_sdk.readers.report import plots, views
from ethosu_sdk.readers.report.subject import Subject


def render(subjects: Sequence[Subject]) -> str:
    """The page as HTML."""
    runs = [
        {"id": f"run{number}", **views.of(subject), "plots": plots.of(subject, f"run{number}")}
        for number, subject in enumerate(subjects, start=1)
    ]
    specs = {plot.id: plot.spec for run in runs for plot in run["plots"].values() if plot.spec}
    return document.render(
        __package__,
        " · ".join(subject.label for subject in subjects),
        {"plots": specs},
        side_by_side=views.side_by_side(subjects),
        runs=runs,
    )
