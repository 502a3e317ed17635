"""The page of a sweep: its plot of memory against time, and all parts put together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records import kinds
from ethosu_sdk.records.sweep import CellVerdict, Constraint, Sweep, Verdict
from ethosu_sdk.reporting.pages import document
from ethosu_sdk.reporting.pages.document import Plot, drawn_plot, named_data
from ethosu_sdk.sweep import sweep_goals, sweep_page
from ethosu_sdk.sweep.sweep_page import LEADER, MODE, MOST_CELLS, Row, Settings, judging_clock, short_text

ID = "pareto"
_TITLE = "SRAM against NPU time"
_HEIGHT = 420
_LABELS = 36  # pixels for those of the vertical axis, whichever model is chosen
_AXES = {"sram": "sram_bytes", "time": "time_ms"}
_MOST_COLOURS = 7  # that the page's own palette has
_STAR = "M0,-1L.23,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.23,-.31Z"
_SHAPES = {  # the marks of the matrix, as far as they are shapes
    "winner": _STAR,
    LEADER: "triangle-up",
    "pareto": "diamond",
    "dominated": "circle",
    "not ranked": "square",
    "broken": "cross",
    "not judged": "triangle-down",
}
_SIZES = {"winner": 340, LEADER: 170, "pareto": 170}
_SIZE = 100  # of all others
_FILLS = (("filled", 1.0), ("hollow", 0.0), ("pale", 0.35))  # marks by memory mode, as far as they differ
# An axis goes beyond the points by a share of their span, and ends at twice its start or later.
_MARGIN, _LEAST_SPAN = 0.08, 2.0


def render_sweep(folder: Path, record: Sweep, rows: Sequence[Row]) -> str:
    found = sweep_page.settings_of(rows)
    drawn = memory_time_plot(record.verdict, rows, found)
    data = {
        "plots": {drawn.id: drawn.spec} if drawn.spec else {},
        "cells": sweep_page.page_cells(folder, record.verdict, rows, found),
    }
    # Models that have a point in the plot, by source where they have several.
    points = drawn.spec.get("datasets", {}).get("points", ())
    models, targets = len(record.verdict.models), len(record.verdict.targets)
    name = sweep_page.short_text(record.name) or "sweep"
    version = " ".join(filter(None, (record.tool.name, record.tool.version, record.tool.git)))
    title = f"{name}: {counted(models, 'model')} on {counted(targets, 'target')}"
    return document.render_page(
        __package__,
        title,
        data,
        overview=sweep_page.verdict_overview(record.verdict, rows, found),
        plot=drawn,
        plot_models=list(dict.fromkeys(row["group"] for row in points)),
        origins={
            "made": [("record", kinds.SWEEP.schema), ("created", record.created), ("by", version)],
            "files": [(row.role, row.file, row.bytes, row.sha256) for row in record.provenance.inputs],
            "tools": [(row.name, row.version) for row in record.provenance.tools],
        },
    )


def memory_time_plot(verdict: Verdict, rows: Sequence[Row], settings: Settings) -> Plot:
    judged = {cell.cell: cell for cell in verdict.cells}
    clock = judging_clock(verdict)
    found = (_point(row, verdict, judged.get(str(row["cell"])), settings) for row in rows[:MOST_CELLS])
    points = [row for row in found if row is not None]
    if not points:
        return Plot(ID, _TITLE, "No cell that passed has both SRAM and NPU time.")
    axes = {(figure, sweep_goals.MIN) for figure in _AXES.values()}
    timed = (goal for goal in verdict.goals if goal.figure == sweep_goals.TIME)
    is_front = {(goal.figure, goal.want) for goal in verdict.goals} == axes
    is_front = is_front and all(goal.clock_mhz == clock for goal in timed)
    groups, front = _grouped(points), []
    for name in groups if is_front else ():
        own = [row for row in points if row["group"] == name]
        # One point, which draws no line, where there is no Pareto set: an axis needs an extent.
        front += [row for row in own if row["standing"] in ("winner", LEADER, "pareto")] or own[:1]
    limits = {axis: list(_limits(verdict.constraints, figure, clock)) for axis, figure in _AXES.items()}
    text = (
        "The cells of a model that passed, by the SRAM that they need and the time of the NPU in an "
        "inference; low and left is better. No other cell is at least as good in all goals as a cell of "
        "the Pareto set. Times of different sources cannot be compared, and have separate plots."
    )
    if looks := [f"{look} marks are {mode}" for mode, (look, _) in _modes(points).items()]:
        text += f" By memory mode, {', '.join(looks)}."
    if names := "; ".join(row["text"] for found in limits.values() for row in found):
        text += f" Dashed lines are limits for all models ({names}) that are near the model's cells."
    limited = [axis for axis, found in limits.items() if found]
    chart = _chart(groups[0], points, bool(front), limited, sweep_goals.figure_title(sweep_goals.TIME, clock))
    lines = {"front": front, **{f"{axis}_limits": found for axis, found in limits.items()}}
    drawn = {name: found for name, found in lines.items() if found}
    return drawn_plot(ID, _TITLE, text, chart, points=points, **drawn)


def _point(
    row: Row, verdict: Verdict, judged: CellVerdict | None, settings: Settings
) -> dict[str, Any] | None:
    if row["status"] != "pass":
        return None
    clock_mhz = judging_clock(verdict)
    sram, time = (sweep_goals.figure_value(row, name, clock_mhz) for name in ("sram_bytes", sweep_goals.TIME))
    if not sram.number or not time.number:  # a logarithm has no place for zero
        return None
    return {
        "model": short_text(row["model"]),
        "cell": row["cell"],
        "target": short_text(row["target"]),
        "settings": settings.words(row),
        "sram": sram.number,
        "time": time.number,
        "clock": f"{clock_mhz or sweep_goals.parse_clock(row.get('clock_mhz')) or 0:,g} MHz",
        "source": time.source,
        "mode": short_text(row.get(MODE)),
        "standing": sweep_page.standing_of(verdict, row, judged),
    }


def _grouped(points: Sequence[dict[str, Any]]) -> list[str]:
    """What is drawn together: cells of a model, and of one source where it has several. Points get their group."""
    sources: dict[str, set[str]] = {}
    for row in points:
        sources.setdefault(row["model"], set()).add(row["source"])
    for row in points:
        row["group"] = f"{row['model']} ({row['source']})" if len(sources[row["model"]]) > 1 else row["model"]
    return list(dict.fromkeys(row["group"] for row in points))


def _ends(points: Sequence[Mapping[str, Any]], axis: str) -> dict[str, list[float]]:
    """Where the axis of each group begins and ends, on its logarithmic scale: the points fill the plot."""
    found = {}
    for group in dict.fromkeys(row["group"] for row in points):
        values = [row[axis] for row in points if row["group"] == group]
        least, most = min(values), max(values)
        span = max(most / least, _LEAST_SPAN)
        middle, reach = math.sqrt(least * most), span ** (0.5 + _MARGIN)
        found[group] = [middle / reach, middle * reach]
    return found


def _limits(
    constraints: Sequence[Constraint], figure: str, clock_mhz: float | None
) -> Iterator[dict[str, Any]]:
    """Limits that are straight lines in the plot: those for all models, and of a time at the plot's clock."""
    for row in constraints:
        at_clock = row.clock_mhz == clock_mhz or figure != sweep_goals.TIME
        if row.figure == figure and at_clock and row.models is None:
            for limit in (row.max, row.min):
                if limit:
                    yield {"at": limit, "text": row.text}


def _chart(
    group: str, points: Sequence[Mapping[str, Any]], has_front: bool, limited: Sequence[str], time: str
) -> Any:
    chosen = altair.param(name="chosen", value=group)
    ends = [altair.param(name=f"{axis}_ends", value=_ends(points, axis)) for axis in _AXES]
    ticks: dict[str, Any] = {"tickCount": 6, "labelOverlap": True}
    titles = {"sram": "SRAM, bytes", "time": f"{time}, ms"}
    below, left = altair.Axis(format="~s", **ticks), altair.Axis(format="~g", minExtent=_LABELS, **ticks)
    x = altair.X("sram:Q", scale=_scale("sram"), title=titles["sram"], axis=below)
    y = altair.Y("time:Q", scale=_scale("time"), title=titles["time"], axis=left)
    layers = [_rules(axis, titles[axis]) for axis in limited]
    of_model = "datum.group === chosen"
    if has_front:  # the line of the Pareto set, for each source
        front = altair.Chart(named_data("front"))
        line = front.mark_line(interpolate="step-after", strokeWidth=1.5, opacity=0.6).encode(
            x=x, y=y, detail="source:N", order=altair.Order("sram:Q"), color=altair.value("#888888")
        )
        layers.append(line.transform_filter(of_model))
    layers.append(_points(x, y, points).transform_filter(of_model))
    return altair.layer(*layers).add_params(chosen, *ends).properties(width="container", height=_HEIGHT)


def _scale(axis: str) -> Any:
    least, most = (altair.expr(f"{axis}_ends[chosen][{end}]") for end in (0, 1))
    return altair.Scale(type="log", nice=False, domainMin=least, domainMax=most)


def _rules(axis: str, title: str) -> Any:
    """Dashed lines at limits of one of the axes, where they are near the points."""
    place = {"sram": altair.X, "time": altair.Y}[axis]("at:Q", scale=_scale(axis), title=title)
    rules = altair.Chart(named_data(f"{axis}_limits")).mark_rule(strokeDash=[5, 4], opacity=0.7, clip=True)
    return rules.encode(place, tooltip=[altair.Tooltip("text:N", title="limit")])


def _points(x: Any, y: Any, points: Sequence[Mapping[str, Any]]) -> Any:
    targets = list(dict.fromkeys(row["target"] for row in points))
    standings = [name for name in _SHAPES if any(row["standing"] == name for row in points)]
    colours: dict[str, Any] = {} if len(targets) <= _MOST_COLOURS else {"scheme": "tableau20"}
    top: dict[str, Any] = {"orient": "top", "title": None, "labelLimit": 160}
    scale = altair.Scale(domain=targets, **colours)
    by_target: dict[str, Any] = {"scale": scale, "legend": altair.Legend(**top)}
    by_standing = [{"test": f"datum.standing === '{name}'", "value": size} for name, size in _SIZES.items()]
    return (
        altair.Chart(named_data("points"))
        .mark_point(filled=True, opacity=1, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=altair.Color("target:N", **by_target),
            shape=altair.Shape(
                "standing:N",
                scale=altair.Scale(domain=standings, range=[_SHAPES[name] for name in standings]),
                legend=altair.Legend(**{**top, "orient": "bottom"}),
            ),
            size=altair.SizeValue(_SIZE, condition=by_standing),
            **_by_mode(points, by_target),
            tooltip=[
                altair.Tooltip("settings:N", title="cell"),
                altair.Tooltip("sram:Q", format=",", title="SRAM, bytes"),
                altair.Tooltip("time:Q", format=",.3f", title="NPU time, ms"),
                *("clock:N", "source:N", "standing:N"),
                altair.Tooltip("cell:N", title="id"),
            ],
        )
    )


def _modes(points: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, float]]:
    """The memory modes, how their marks look, and how much of them is filled; empty where all look alike."""
    modes = list(dict.fromkeys(row["mode"] for row in points if row["mode"]))
    return dict(zip(modes, _FILLS, strict=False)) if 1 < len(modes) <= len(_FILLS) else {}


def _by_mode(points: Sequence[Mapping[str, Any]], edge: Mapping[str, Any]) -> dict[str, Any]:
    """Marks that are filled by their memory mode, with an edge of their target's colour."""
    modes = _modes(points)
    if not modes:
        return {}
    places = ",".join(map(json.dumps, modes))
    conditions = [
        {"test": f"indexof([{places}], datum.mode) === {number}", "value": fill}
        for number, (_, fill) in enumerate(modes.values())
    ]
    return {
        "stroke": altair.Stroke("target:N", **edge),
        "fillOpacity": altair.FillOpacityValue(1, condition=conditions),
    }
