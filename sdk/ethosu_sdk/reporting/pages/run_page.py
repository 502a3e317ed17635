"""The page of runs: what is shown of each, its plots, and the page around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.records import operation_tree
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.reporting.pages import (
    advice_rows,
    arena_plots,
    document,
    headline,
    network_graph,
    next_commands,
    run_plots,
    run_rows,
    side_by_side,
)
from ethosu_sdk.reporting.pages.document import Plot
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs


def render_runs(all_inputs: Sequence[ReportInputs]) -> str:
    runs = [
        {
            "id": f"run{number}",
            **views_of(inputs),
            "plots": plots_of(inputs, f"run{number}"),
            "graph": network_graph.graph_of(inputs),
        }
        for number, inputs in enumerate(all_inputs, start=1)
    ]
    compared = run_plots.compared_plot(all_inputs, "compared") if len(all_inputs) > 1 else None
    found = [plot for run in runs for plot in run["plots"].values()] + ([compared] if compared else [])
    return document.render_page(
        __package__,
        headline.page_title(all_inputs),
        {"plots": {plot.id: plot.spec for plot in found if plot.spec}},
        side_by_side=side_by_side.compared_runs(all_inputs) if len(all_inputs) > 1 else None,
        compared=compared,
        runs=runs,
    )


def plots_of(inputs: ReportInputs, prefix: str) -> dict[str, Plot]:
    """Plots by name; their `id` begins with `prefix`."""
    profile = inputs.profile
    plots = {
        "inference": run_plots.inference_plot(inputs, f"{prefix}-plot-inference"),
        "slowest": run_plots.slowest_plot(profile, f"{prefix}-plot-slowest"),
    }
    if profile is None or profile.totals.npu.operations:
        plots |= {
            "roofline": run_plots.roofline_plot(profile, f"{prefix}-plot-roofline"),
            "timeline": run_plots.timeline_plot(profile, f"{prefix}-plot-timeline"),
            **arena_plots.plots_of_arena(inputs, f"{prefix}-plot-arena"),
        }
    debug = inputs.record(Debug)
    if debug is not None and debug.comparisons:
        plots["accuracy"] = run_plots.accuracy_plot(debug, f"{prefix}-plot-accuracy")
    return plots


def views_of(inputs: ReportInputs) -> dict[str, Any]:
    run, profile, compiled = inputs.run, inputs.profile, inputs.record(Compilation)
    return {
        "label": inputs.label,
        "title": headline.run_title(inputs),
        "limits": headline.limit_words(inputs),
        "stale": headline.stale_words(inputs),
        "board": run.board.capitalize(),
        "memory_of": run.memory.board or "",
        "cards": headline.cards(inputs),
        "ran": [*run_rows.setting_rows(inputs), *run_rows.count_rows(inputs)],
        "advice": advice_rows.advice_view(inputs),
        "next": [row._asdict() for row in next_commands.next_commands(inputs)],
        "checks": run.verdict.checks,
        "memory": run_rows.memory_rows(run, inputs.built),
        "state": run_rows.state_rows(run.state),
        "source_of_cycles": run.npu.cycles.source if run.npu is not None and run.npu.cycles else "",
        "phases": operation_tree.phase_rows(profile),
        "traffic": run_rows.traffic_rows(profile.memories) if profile is not None else [],
        "sources": run_rows.source_rows(profile),
        "vela": run_rows.vela_rows(profile),
        "operations": operation_tree.operations_table(profile),
        "delegation": next(
            (row.delegation for row in (profile, compiled) if row and row.delegation is not None), ()
        ),
        "not_delegated": operation_tree.not_delegated(compiled) if compiled is not None else [],
        "planned": run_rows.planned_rows(inputs.program),
        "accuracy": run_rows.accuracy_view(inputs),
        "origins": run_rows.origins_view(inputs),
        "unavailable": run_rows.unavailable_rows(inputs),
        "counters": run.npu.counters if run.npu is not None else (),
        "missing": inputs.missing,
    }
