"""The plots of a run, as specifications of Vega-Lite."""

from __future__ import annotations

from ethosu_sdk.page.plot import Plot
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.plots import (
    accuracy,
    arena,
    cycles,
    inference,
    operator_times,
    roofline,
    timeline,
)


def of(inputs: Inputs, prefix: str) -> dict[str, Plot]:
    """Plots by name; their `id` begins with `prefix`."""
    profile = inputs.profile
    plots = {"inference": inference.of(inputs, f"{prefix}-plot-inference")}
    if profile is None or profile.totals.npu.operations:
        plots |= {
            "cycles": cycles.of(profile, f"{prefix}-plot-cycles"),
            "roofline": roofline.of(profile, f"{prefix}-plot-roofline"),
            "timeline": timeline.of(profile, f"{prefix}-plot-timeline"),
            **arena.of(inputs, f"{prefix}-plot-arena"),
        }
    times = operator_times.of(profile, f"{prefix}-plot-times")
    if times is not None:
        plots["times"] = times
    if inputs.debug is not None and inputs.debug.comparisons:
        plots["accuracy"] = accuracy.of(inputs.debug, f"{prefix}-plot-accuracy")
    return plots
