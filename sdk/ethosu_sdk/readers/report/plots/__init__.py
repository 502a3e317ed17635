"""The plots of a run, as specifications of Vega-Lite."""

from __future__ import annotations

from ethosu_sdk.page.plot import Plot
from ethosu_sdk.readers.report.plots import accuracy, arena, cycles, roofline, timeline
from ethosu_sdk.readers.report.subject import DEBUG, PROFILE, Subject


def of(subject: Subject, prefix: str) -> dict[str, Plot]:
    """Plots by name; their `id` begins with `prefix`."""
    profile = subject.record(PROFILE)
    plots = {
        "cycles": cycles.of(profile, f"{prefix}-plot-cycles"),
        "roofline": roofline.of(profile, f"{prefix}-plot-roofline"),
        "timeline": timeline.of(profile, f"{prefix}-plot-timeline"),
        **arena.of(subject, f"{prefix}-plot-arena"),
    }
    if subject.record(DEBUG).get("comparisons"):
        plots["accuracy"] = accuracy.of(subject.record(DEBUG), f"{prefix}-plot-accuracy")
    return plots
