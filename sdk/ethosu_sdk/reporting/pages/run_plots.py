"""The plots of a run as specifications of Vega-Lite: its time, its operators, their cycles and accuracy."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair

from ethosu_sdk.records import common, operation_tree, wording
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.operation_tree import Node, origin_of
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.records.time_line import TimePart
from ethosu_sdk.reporting.pages import side_by_side
from ethosu_sdk.reporting.pages.document import Plot, drawn_plot, named_data, short_name
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs

_ON_TOP: Any = {"title": None, "legend": altair.Legend(orient="top")}
_INFERENCE_TITLE = "Time line of an inference"
_PROCESSORS = ("CPU", "NPU")
# What the parts of a time line are drawn as: so many have colours of their own.
_PARTS = {
    "kernel": "kernel",
    "npu": "NPU",
    "runtime": "runtime",
    "copy_in": "copy",
    "copy_out": "copy",
    "driver_start": "driver",
    "driver_stop": "driver",
    "interrupt": "driver",
}
_ROW_PIXELS = 34
# A name stands in a bar that has the room, at 7 pixels for a letter; else its number may.
_NAME_THAT_FITS = (
    "scale('x', datum.end) - scale('x', datum.start) > 7 * length(datum.name) ? datum.name : "
    "scale('x', datum.end) - scale('x', datum.start) > 7 * length(datum.number) + 2 ? datum.number : ''"
)
_ON_BARS = "#000000"  # is legible on all colours of both palettes, as far as bars are transparent
_INFERENCE_MOST = 1000  # parts: more are finer than a pixel, and slow to draw


def inference_plot(inputs: ReportInputs, name: str) -> Plot:
    """What the CPU and the NPU do, one after the other: the time line of the profile, else of the run."""
    records = [row for row in (inputs.profile, inputs.run) if row is not None and row.time is not None]
    if not records:
        reasons = [row.reason for row in inputs.run.unavailable if row.path == "/time"]
        reason = next(iter(reasons), "no record has it")
        return Plot(name, _INFERENCE_TITLE, f"There is no time of the inference: {reason}.")
    time, priced = records[0].time, records[0].priced
    assert time is not None  # records
    caveat = priced.caveat if priced is not None else ""
    text = f"{f'The time is {caveat}. ' if caveat else ''}{'; '.join(time.total.band)}."
    if len(time.parts) > _INFERENCE_MOST:
        text += f" The {_INFERENCE_MOST:,} longest of {len(time.parts):,} parts are drawn."
    longest = sorted(time.parts, key=lambda row: -row.duration_s)[:_INFERENCE_MOST]
    parts = [part for row in longest for part in _inference_bars(row, inputs.profile)]
    chart = _lanes(
        "parts",
        "parts",
        "ms",
        altair.Y("on:N", sort=_PROCESSORS, title=None, scale=altair.Scale(domain=_PROCESSORS)),
        len(_PROCESSORS),
        color=altair.Color(
            "part:N", scale=altair.Scale(domain=list(dict.fromkeys(_PARTS.values()))), **_ON_TOP
        ),
        tooltip=[
            *("name:N", "module:N", "part:N"),
            altair.Tooltip("start:Q", format=",.4f", title="start, ms"),
            altair.Tooltip("ms:Q", format=",.4f", title="duration, ms"),
        ],
    )
    return drawn_plot(name, _INFERENCE_TITLE, text, chart, parts=parts)


def _inference_bars(part: TimePart, profile: Profile | None) -> Iterator[dict[str, Any]]:
    """A bar for a part of the time line; of a job of the NPU, one for each of its operators, in the order of the
    stream, if the profile has them."""
    base = {"on": part.on, "part": _PARTS[part.what], "number": "", "module": ""}
    rows = [] if profile is None else [row for row in profile.operations if row.instruction == part.operator]
    npu = [row for row in rows if row.runs_on == "NPU"]
    whole = sum(row.modelled_cycles for row in npu)
    if part.on != "NPU" or not whole or profile is None:
        is_named = part.what == "kernel" and bool(rows)
        label = wording.short_operator(part.name) if part.name else part.label
        names = _names(rows) if is_named else {"name": short_name(label)}
        yield {**base, **_span(part.start_s, part.duration_s), **names}
        return
    before = next((row.start_cycles or 0 for row in profile.delegates if row.index == npu[0].delegate), 0)
    at = part.start_s + part.duration_s * before / (before + whole)
    for _, same in itertools.groupby(npu, operation_tree.group_key):
        own = list(same)
        duration = part.duration_s * sum(row.modelled_cycles for row in own) / (before + whole)
        yield {**base, **_span(at, duration), **_names(own)}
        at += duration


def _span(start_s: float, duration_s: float) -> dict[str, float]:
    return {"start": start_s * 1e3, "end": (start_s + duration_s) * 1e3, "ms": duration_s * 1e3}


def _names(rows: Sequence[Operation]) -> dict[str, str]:
    """What the operator of `rows` is called, its number alone, and its module."""
    main = operation_tree.main_operation(rows)
    return {
        "name": short_name(f"{rows[0].index} {operation_tree.operator_name(main)}"),
        "number": str(rows[0].index),
        "module": short_name(operation_tree.module_of(main)),
    }


def _lanes(rows: str, names: str, unit: str, y: Any, count: int, **encodings: Any) -> Any:
    """Bars in lanes, with the names of those in `names`; a reader zooms into them."""
    axis = altair.X("start:Q", title=unit, scale=altair.Scale(nice=False, zero=True))
    zoom = altair.selection_interval(
        name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]"
    )
    bars = (
        altair.Chart(named_data(rows))
        .mark_rect(clip=True, fillOpacity=0.75)
        .encode(x=axis, x2="end:Q", y=y, **encodings)
    )
    words = (
        altair.Chart(named_data(names))
        .mark_text(fontSize=10, tooltip=None, color=_ON_BARS, clip=True)
        .transform_calculate(middle="(datum.start + datum.end) / 2")
        .encode(x=altair.X("middle:Q", title=unit), y=y, text=altair.value({"expr": _NAME_THAT_FITS}))
    )
    return (bars.add_params(zoom) + words).properties(width="container", height=_ROW_PIXELS * count)


def _bars(name: str, order: str, value: str, unit: str, height: int, **encodings: Any) -> Any:
    """A horizontal bar for each row, or a group of bars for rows with the same `name`, in the `order` of a member."""
    axis = altair.Axis(labelLimit=180)
    return (
        altair.Chart(named_data("rows"))
        .mark_bar()
        .encode(
            y=altair.Y(f"{name}:N", sort=altair.EncodingSortField(order, op="min"), title=None, axis=axis),
            x=altair.X(f"{value}:Q", title=unit),
            **encodings,
        )
        .properties(width="container", height=height)
    )


def _of_all(longest: Sequence[Any], known: Sequence[Any]) -> str:
    return f"{len(longest)} longest of {len(known):,}" if len(longest) < len(known) else ""


_SLOWEST_TITLE = "Slowest operators"
_SLOWEST_MOST = 12
_BETWEEN = "start, copies, runtime"
_WEIGHED = {  # by what operators are weighed: in words, with its unit and format
    "time": ("time of an inference", "ms", ",.4f"),
    "modelled": ("cycles of the NPU", "cycles", ","),
    "cpu_cycles": ("cycles of the CPU", "cycles", ","),
}


def slowest_plot(profile: Profile | None, name: str) -> Plot:
    """The operators that take longest, the longest first: on either processor where the time of an inference is
    known."""
    metric = "" if profile is None else operation_tree.weighed_by(operation_tree.tree_totals(profile))
    nodes = () if profile is None else _operators(operation_tree.tree_of(profile))
    times = ((node.figures().get(metric, 0.0), node) for node in nodes)
    known = sorted(((value, node) for value, node in times if value > 0), key=lambda row: -row[0])
    longest = known[:_SLOWEST_MOST]
    if not longest:
        return Plot(name, _SLOWEST_TITLE, "There is no profile with times or cycles.")
    whole = sum(value for value, _ in known)
    rows = [_bar(number, value, whole, node) for number, (value, node) in enumerate(longest)]
    share = sum(value for value, _ in longest) / whole
    some = _of_all(longest, known)
    words, unit, digits = _WEIGHED[metric]
    text = f"{f'The {some}' if some else f'All {len(known):,}'} operators, with {share:.0%} of the {words} (modelled)"
    if metric == "time":
        text += ": those of the CPU with the runtime around them, and what lies between operators"
    chart = _bars(
        "operator",
        "at",
        "value",
        unit,
        16 * len(longest),
        color=altair.Color("on:N", scale=altair.Scale(domain=[*_PROCESSORS, _BETWEEN]), **_ON_TOP),
        tooltip=[
            *("operator:N", "module:N", "line:N"),
            altair.Tooltip("value:Q", format=digits, title=unit),
            altair.Tooltip("share:Q", format=".1%"),
        ],
    )
    return drawn_plot(name, _SLOWEST_TITLE, f"{text}.", chart, rows=rows)


def _operators(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.kind == "module":
            yield from _operators(node.children)
        else:
            yield node


def _bar(number: int, value: float, whole: float, node: Node) -> dict[str, Any]:
    entry = node.entry
    return {
        "operator": short_name(node.name if entry is None else f"{entry.index} {node.name}"),
        "at": number,
        "value": value,
        "share": value / whole,
        "on": _BETWEEN if entry is None else entry.runs_on,
        "module": short_name(operation_tree.module_of(entry)),
        "line": short_name(common.source_function(entry.source)) if entry is not None else "",
    }


_ROOFLINE_TITLE = "Roofline"
_ROOFLINE_HEIGHT = 380
_WIDE, _NARROW = 560, 230  # pixels of the plot, between its axes


def roofline_plot(profile: Profile | None, name: str) -> Plot:
    """How near operations with MACs come to what the MAC unit and their busiest memory allow."""
    ideal = profile.totals.npu.macs_per_cycle.ideal if profile is not None else 0
    widths = bytes_per_cycle(profile) if profile is not None else {}
    rows = list(_points(profile.operations, widths, ideal)) if profile is not None else []
    if not rows or not ideal:
        reason = "No operation of the profile has MACs and a memory with a known bandwidth."
        return Plot(name, _ROOFLINE_TITLE, reason)
    used = {memory: width for memory, width in widths.items() if any(row["memory"] == memory for row in rows)}
    lines = list(_roofs(rows, used, ideal))
    text = (
        f"Each point is an operation with MACs ({len(rows):,}), against the bytes of the memory that it keeps busy "
        f"for longest. A line is what that memory's bandwidth and the {ideal} MACs per cycle of the NPU allow. "
        "Cycles and bytes are modelled. An operation that runs beside another one counts for as long as its MAC unit "
        "or that memory works."
    )
    flat = {**max(lines, key=lambda row: row["intensity"]), "text": f"{ideal} MACs per cycle"}  # its end
    chart = _roofline_chart(list(used))
    names = _apart(rows, lines)
    return drawn_plot(name, _ROOFLINE_TITLE, text, chart, points=rows, roofs=lines, flat=[flat], names=names)


def bytes_per_cycle(profile: Profile) -> dict[str, float]:
    hz = profile.clock.hz if profile.clock is not None else 0
    return {row.memory: row.peak_bytes_per_s / hz for row in profile.memories if hz and row.peak_bytes_per_s}


def moved(entry: Operation) -> dict[str, int]:
    """Bytes that an operation moves to and from each memory."""
    found: defaultdict[str, int] = defaultdict(int)
    for part in entry.traffic or ():
        found[part.memory] += part.bytes
    return dict(found)


def _points(
    operations: Sequence[Operation], widths: Mapping[str, float], ideal: float
) -> Iterator[dict[str, Any]]:
    for entry in operations:
        own = {name: size for name, size in moved(entry).items() if size and name in widths}
        if not entry.macs or not own:
            continue
        busiest = max(own, key=lambda name: own[name] / widths[name])
        # An operation that runs beside the one before adds fewer cycles than its MAC unit or that memory works.
        cycles = max(entry.modelled_cycles, entry.busy.mac, own[busiest] / widths[busiest])
        intensity = entry.macs / own[busiest]
        yield {
            **_names([entry]),
            "cycles": entry.modelled_cycles,
            "from": short_name(origin_of(entry)),
            "memory": busiest,
            "intensity": round(intensity, 4),
            "rate": round(entry.macs / cycles, 4),
            "roof": round(min(ideal, widths[busiest] * intensity), 4),
            "macs": entry.macs,
            "bound": entry.bound_by or "",
        }


def _roofs(rows: list[dict[str, Any]], widths: Mapping[str, float], ideal: float) -> Iterator[dict[str, Any]]:
    knees = [ideal / width for width in widths.values()]
    least = min(*(row["intensity"] for row in rows), *knees) / 2
    most = max(*(row["intensity"] for row in rows), *knees) * 2
    for (name, width), knee in zip(widths.items(), knees, strict=True):
        for place in (least, knee, most):
            yield {"memory": name, "intensity": place, "rate": min(ideal, width * place)}


def _roofline_chart(memories: list[str]) -> Any:
    scale = altair.Scale(type="log", nice=False)
    x = altair.X("intensity:Q", scale=scale, title="MACs per byte", axis=altair.Axis(tickCount=6))
    y = altair.Y("rate:Q", scale=scale, title="MACs per cycle", axis=altair.Axis(tickCount=5))
    colour = altair.Color("memory:N", sort=memories, **_ON_TOP)
    lines = altair.Chart(named_data("roofs")).mark_line().encode(x=x, y=y, color=colour)
    points = (
        altair.Chart(named_data("points"))
        .mark_point(filled=True, size=55, opacity=0.8)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=altair.Shape("memory:N", sort=memories, title=None, legend=None),
            tooltip=[
                altair.Tooltip("name:N", title="operation"),
                *("from:N", "memory:N"),
                altair.Tooltip("macs:Q", format=",", title="MACs"),
                altair.Tooltip("intensity:Q", format=",.2f", title="MACs per byte"),
                altair.Tooltip("rate:Q", format=",.2f", title="MACs per cycle"),
                altair.Tooltip("roof:Q", format=",.2f", title="possible"),
                altair.Tooltip("bound:N", title="pace set by"),
            ],
        )
    )
    flat = altair.Chart(named_data("flat")).mark_text(align="right", dy=10, fontSize=11, tooltip=None)
    names = altair.Chart(named_data("names")).mark_text(dy=-11, fontSize=10, tooltip=None)
    shown = f"width > {_WIDE} ? datum.wide : datum.narrow"
    words = flat.encode(x=x, y=y, text="text:N") + names.encode(x=x, y=y, text=altair.value({"expr": shown}))
    return (lines + points + words).properties(width="container", height=_ROOFLINE_HEIGHT)


def _apart(points: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points with names that do not lie on each other in a plot of _WIDE pixels or more, and with numbers that do not
    in a narrow one: those of the operations that take longest."""
    sides = {
        axis: [end(math.log(row[axis]) for row in (*points, *lines)) for end in (min, max)]
        for axis in ("intensity", "rate")
    }
    found = {id(row): {**row, "wide": "", "narrow": ""} for row in points}
    for shown, text, width in (("wide", "name", _WIDE), ("narrow", "number", _NARROW)):
        taken: list[tuple[float, float, float]] = []
        for row in sorted(points, key=lambda row: -row["cycles"]):
            x, y = (
                size * (math.log(row[axis]) - least) / (most - least or 1)
                for (axis, (least, most)), size in zip(sides.items(), (width, _ROOFLINE_HEIGHT), strict=True)
            )
            half = 3 * len(row[text]) + 4
            if half < x < width - half and all(
                abs(x - at) > half + other or abs(y - height) > 14 for at, height, other in taken
            ):
                taken.append((x, y, half))
                found[id(row)][shown] = row[text]
    return [row for row in found.values() if row["wide"] or row["narrow"]]


_TIMELINE_TITLE = "Timeline of units and memories"
_OPERATION = "operation"  # a lane for names
_UNITS = {"mac": "MAC unit", "output": "output unit", "weight_decoder": "weight decoder"}
_TIMELINE_MOST = 1000  # operations: more are finer than a pixel, and slow to draw


def timeline_plot(profile: Profile | None, name: str) -> Plot:
    """Which of the NPU's units and memories work while an operation runs, and for how much of it: one call of each
    delegate, one after the other, as what the CPU does between them has no cycles."""
    widths = bytes_per_cycle(profile) if profile is not None else {}
    bars = list(_timeline_bars(profile, widths)) if profile is not None else []
    if not bars:
        return Plot(name, _TIMELINE_TITLE, "There is no profile with operations of the NPU.")
    units = (_OPERATION, *_UNITS.values(), *map(short_name, widths))
    lanes = [lane for lane in units if any(row["unit"] == lane for row in bars)]
    lengths = {row["name"]: row["end"] - row["start"] for row in bars}
    left_out = ""
    if len(lengths) > _TIMELINE_MOST:
        kept = set(sorted(lengths, key=lambda operation: -lengths[operation])[:_TIMELINE_MOST])
        bars = [row for row in bars if row["name"] in kept]
        left_out = f" The {_TIMELINE_MOST:,} longest of {len(lengths):,} operations are drawn."
    named = [row for row in bars if row["unit"] == _OPERATION]
    text = (
        "Modelled cycles of the NPU, delegate after delegate, without the CPU's time between them. "
        "The more solid a bar's colour, the larger the share of the operation's time for which the unit or memory "
        "works; the model does not say when within it. Work that runs in parallel and adds no cycles "
        f"counts towards the operation that ends last.{left_out}"
    )
    chart = _lanes(
        "bars",
        "names",
        "cycles",
        altair.Y("unit:N", sort=lanes, title=None, axis=altair.Axis(labelLimit=110)),
        len(lanes),
        color=altair.Color("unit:N", sort=lanes, legend=None),
        opacity=altair.Opacity("share:Q", scale=altair.Scale(domain=[0, 1], range=[0.06, 1]), legend=None),
        tooltip=[
            altair.Tooltip("name:N", title="operation"),
            *("from:N", "unit:N"),
            altair.Tooltip("share:Q", format=".0%", title="works for"),
            altair.Tooltip("start:Q", format=","),
            altair.Tooltip("cycles:Q", format=","),
            altair.Tooltip("bound:N", title="pace set by"),
        ],
    )
    return drawn_plot(name, _TIMELINE_TITLE, text, chart, bars=bars, names=named)


def _timeline_bars(profile: Profile, widths: dict[str, float]) -> Iterator[dict[str, Any]]:
    starts = {row.index: row.start_cycles or 0 for row in profile.delegates}
    now, call = 0, None
    work: defaultdict[str, float] = defaultdict(float)
    for entry in profile.operations:
        if entry.runs_on != "NPU" or entry.delegate is None:
            continue
        if (entry.instruction, entry.delegate) != call:
            call = (entry.instruction, entry.delegate)
            now += starts.get(entry.delegate, 0)
            work.clear()
        for stage, unit in _UNITS.items():
            work[unit] += getattr(entry.busy, stage)
        for memory, size in moved(entry).items():
            if memory in widths:
                work[short_name(memory)] += size / widths[memory]
        cycles = entry.modelled_cycles
        if not cycles:
            continue
        for unit, busy in ((_OPERATION, cycles), *work.items()):
            if busy:
                yield {
                    "unit": unit,
                    "start": now,
                    "end": now + cycles,
                    "share": round(min(1.0, busy / cycles), 3),
                    "cycles": cycles,
                    **_names([entry]),
                    "from": short_name(origin_of(entry)),
                    "bound": entry.bound_by or "",
                }
        now += cycles
        work.clear()


_ACCURACY_TITLE = "Signal to quantisation noise by layer"


def accuracy_plot(debug: Debug, name: str) -> Plot:
    """The SQNR of each layer beside each model in PyTorch that it was compared with."""
    rows = [
        {"layer": layer.index, "tensor": short_name(layer.tensor), "against": against, "db": distance.sqnr_db}
        for layer in debug.layers
        for against, distance in (("quantised", layer.quantised), ("float", layer.float))
        if distance is not None and distance.sqnr_db is not None
    ]
    if not rows:
        return Plot(name, _ACCURACY_TITLE, "All layers that were compared are equal to the model's.")
    text = (
        "Layers that are equal to the model's have no noise, and so no point. Layers that were not "
        "compared have no point either."
    )
    data = altair.Chart(named_data("rows"))
    lines = data.mark_line(point=True).encode(
        x=altair.X("layer:Q", axis=altair.Axis(format="d", tickMinStep=1)),
        y=altair.Y("db:Q", title="SQNR, dB"),
        color=altair.Color("against:N", sort=["quantised", "float"], **_ON_TOP),
        tooltip=["layer:Q", "tensor:N", "against:N", altair.Tooltip("db:Q", format=".1f", title="dB")],
    )
    breaks = data.mark_rule(strokeDash=[4, 4]).encode(y=altair.datum(debug.thresholds.break_db))
    chart = (lines + breaks).properties(width="container", height=260)
    return drawn_plot(name, _ACCURACY_TITLE, text, chart, rows=rows)


_COMPARED_TITLE = "Operators of all runs"
_COMPARED_MOST = 30


def compared_plot(all_inputs: Sequence[ReportInputs], name: str) -> Plot:
    """The longest operators, by what all runs know of them, with a bar for each run."""
    found = side_by_side.operators_of(all_inputs)
    if found is None or not found.rows:
        return Plot(name, _COMPARED_TITLE, "Not every run has a profile with figures of the same source.")
    longest = sorted(found.rows.items(), key=lambda row: -max(value or 0 for value in row[1]))
    longest = longest[:_COMPARED_MOST]
    labels = [short_name(inputs.label) for inputs in all_inputs]
    rows = [
        {"operator": short_name(operator), "at": number, "run": label, "value": value}
        for number, (operator, values) in enumerate(longest)
        for label, value in zip(labels, values, strict=True)
        if value is not None
    ]
    some = _of_all(longest, [*found.rows])
    text = (
        f"{f'The {some}' if some else 'All'} operators by {found.what}, the longest first. A run without a bar lacks "
        "the operator."
    )
    chart = _bars(
        "operator",
        "at",
        "value",
        found.unit,
        len(longest) * (9 * len(labels) + 5),
        yOffset=altair.YOffset("run:N", sort=labels),
        color=altair.Color("run:N", sort=labels, **_ON_TOP),
        tooltip=[
            *("operator:N", "run:N"),
            altair.Tooltip("value:Q", format=",.4~f", title=found.unit),
        ],
    )
    return drawn_plot(name, _COMPARED_TITLE, text, chart, rows=rows)
