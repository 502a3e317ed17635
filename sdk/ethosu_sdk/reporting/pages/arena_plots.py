"""The arena: what lies where and for how long, and how much of it is needed when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair

from ethosu_sdk.npu.vela_blocks import REGION_FAST_SCRATCH, REGION_SCRATCH
from ethosu_sdk.records import operation_tree
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.records.run_facts import Lifetime, Lifetimes
from ethosu_sdk.reporting.pages.document import Plot, drawn_plot, named_data, short_name
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs

_TITLE = "What lies where in the arena"
_REGIONS = {REGION_SCRATCH: "arena", REGION_FAST_SCRATCH: "fast scratch"}
_AXIS = "step: operators in the order in which they run"
_SCALE, _TICKS = altair.Scale(nice=False, zero=True), altair.Axis(format="d", tickMinStep=1)
_FITS = (  # a name, in a rectangle: 6 pixels for a letter, 11 for a line
    "scale('x', datum.to) - scale('x', datum.from) > 6 * length(datum.{name}) + 4 && "
    "scale('y', datum.start) - scale('y', datum.end) > 11"
)
_SIDES: dict[bool, dict[str, Any]] = {False: {"align": "left", "dx": 5}, True: {"align": "right", "dx": -5}}
_MOST = 2000  # tenants that are drawn, the largest ones
_NOT_KNOWN = (
    "Slices of one operator's result that lie beside each other are drawn as one extent, and so are rows of "
    "a feature map that lie apart. How long inputs are kept before the delegate, and outputs after it, is "
    "ExecuTorch's plan."
)


class _Steps:
    """The operations of the delegate by operator: those of one that follow each other are one step."""

    def __init__(self, found: Lifetimes, rows: Sequence[Operation]) -> None:
        ordered = sorted((row for row in rows if row.offset is not None), key=lambda row: row.offset or 0)
        known = len(ordered) == found.operations
        self._rows: dict[int, Operation] = dict(enumerate(ordered)) if known else {}
        # The number of each operator: that of its first operation.
        self._first: dict[tuple[Any, ...], int] = {}
        for row in self._rows.values():
            self._first.setdefault(operation_tree.group_key(row), row.index)
        self._steps: list[int] = []
        before: tuple[Any, ...] | None = None
        for number in range(found.operations):
            key = operation_tree.group_key(self._rows[number]) if known else ("operation", number)
            self._steps.append((self._steps[-1] if self._steps else -1) + (key != before))
            before = key

    def step_of(self, number: int) -> int:
        """The step of the operation `number` of the stream; 0 for what is there before the first."""
        return self._steps[number] if 0 <= number < len(self._steps) else 0

    def row(self, number: int) -> Operation | None:
        return self._rows.get(number)

    def name(self, number: int) -> str:
        row = self.row(number)
        if row is None:
            return f"operation {number}"
        return short_name(f"{self._first[operation_tree.group_key(row)]} {operation_tree.operator_name(row)}")

    def most(self, values: Sequence[int]) -> list[int]:
        found = [0] * (self.step_of(len(values) - 1) + 1) if values else []
        for number, value in enumerate(values):
            found[self.step_of(number)] = max(found[self.step_of(number)], value)
        return found


def plots_of_arena(inputs: ReportInputs, name: str) -> dict[str, Plot]:
    """Plots of the delegate with the largest arena."""
    found = inputs.facts.lifetimes
    if inputs.program is None or found is None:
        reason = inputs.missing.get("program", inputs.facts.lifetimes_reason)
        return {"arena": Plot(name, _TITLE, f"Not known: {reason}.")}
    profile = inputs.profile
    rows = [] if profile is None else [row for row in profile.operations if row.delegate == found.delegate]
    steps = _Steps(found, rows)
    return {
        **{
            f"arena{region}": _extents(found, region, steps, f"{name}{region}")
            for region in _REGIONS
            if any(row.region == region for row in found.rows)
        },
        "arena-use": _use(found, steps, f"{name}-use"),
    }


def _which(found: Lifetimes) -> str:
    if found.delegates <= 1:
        return ""
    return f"Delegate {found.delegate}, of {found.delegates:,} the one with the largest arena. "


def _extents(found: Lifetimes, region: int, steps: _Steps, name: str) -> Plot:
    live = found.live_bytes(region)
    peak = max(live, default=0)
    at = live.index(peak) if live else 0
    own = [row for row in found.rows if row.region == region]
    extents = list(_folded(own, steps))
    drawn = sorted(extents, key=lambda row: row["start"] - row["end"])[:_MOST]
    left_out = ""
    if len(drawn) < len(extents):
        left_out = f" The {_MOST:,} largest of {len(extents):,} extents are drawn."
    text = (
        f"{_which(found)}Extents of the {_REGIONS[region]} that operators write, from the writer to the "
        f"last reader, as the command stream has them: {len(own):,} results of operations in {len(extents):,} "
        f"extents. The peak is at {steps.name(at)}: {peak:,} bytes.{left_out} {_NOT_KNOWN}"
    )
    title = _TITLE if region == REGION_SCRATCH else f"{_TITLE}: {_REGIONS[region]}"
    middle = steps.step_of(at) + 0.5
    mark = {"at": middle, "what": f"peak: {peak:,} bytes"}
    chart = _rectangles(is_late=middle > max((row["to"] for row in drawn), default=0) / 2)
    return drawn_plot(name, title, text, chart, tenants=drawn, names=_apart(drawn), peak=[mark])


def _apart(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rectangles whose names cannot lie on each other: each that overlaps none of the larger ones among them."""
    found: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row["from"] - row["to"]) * (row["end"] - row["start"])):
        if all(
            row["from"] >= other["to"]
            or other["from"] >= row["to"]
            or row["start"] >= other["end"]
            or other["start"] >= row["end"]
            for other in found
        ):
            found.append(row)
    return found


def _folded(own: Sequence[Lifetime], steps: _Steps) -> Iterator[dict[str, Any]]:
    """Rectangles of the lifetimes. Those of one operator that touch in memory and overlap in time are one."""
    by_operator: dict[tuple[Any, ...], list[Lifetime]] = {}
    for number, row in enumerate(own):
        entry = steps.row(row.first)
        key = ("lifetime", number) if entry is None else (row.role, *operation_tree.group_key(entry))
        by_operator.setdefault(key, []).append(row)
    for same in by_operator.values():
        group: list[Lifetime] = []
        for row in sorted(same, key=lambda row: row.start):
            if group:
                first, last = min(other.first for other in group), max(other.last for other in group)
                apart = row.start > max(other.end for other in group)
                if apart or row.first > last or first > row.last:
                    yield _rectangle(group, steps)
                    group = []
            group.append(row)
        yield _rectangle(group, steps)


def _rectangle(group: Sequence[Lifetime], steps: _Steps) -> dict[str, Any]:
    row = min(group, key=lambda row: row.first)
    entry = steps.row(row.first)
    first, last = row.first, max(other.last for other in group)
    start, end = min(other.start for other in group), max(other.end for other in group)
    is_input = row.offset is None
    name = "" if entry is None else operation_tree.tensor_of(entry) or operation_tree.operator_name(entry)
    return {
        "from": steps.step_of(first),
        "to": steps.step_of(last) + 1,
        "start": start,
        "end": end,
        "bytes": end - start,
        "role": row.role or ("never read" if last == first else "inner"),
        "tensor": "input of the delegate" if is_input else short_name(name or f"of operation {first}"),
        "module": short_name(operation_tree.module_of(entry)),
        "slices": len(group),
        "writer": "before the delegate" if is_input else steps.name(first),
        "reader": "after the delegate" if row.role == "output" else steps.name(last),
    }


def _rectangles(*, is_late: bool) -> Any:
    """Extents and the peak, whose words stand at the side that has the room."""
    roles = ["inner", "input", "output", "never read"]
    rectangles = (
        altair.Chart(named_data("tenants"))
        .mark_rect(fillOpacity=0.55, strokeWidth=0.5)
        .encode(
            x=altair.X("from:Q", title=_AXIS, scale=_SCALE, axis=_TICKS),
            x2="to:Q",
            y=altair.Y("start:Q", title="byte", axis=altair.Axis(format="~s")),
            y2="end:Q",
            color=altair.Color("role:N", sort=roles, title=None, legend=altair.Legend(orient="top")),
            stroke=altair.Stroke("role:N", sort=roles, title=None, legend=None),
            tooltip=[
                *("tensor:N", "module:N"),
                altair.Tooltip("slices:Q", format=","),
                altair.Tooltip("bytes:Q", format=","),
                altair.Tooltip("start:Q", format=",", title="first byte"),
                altair.Tooltip("writer:N", title="written by"),
                altair.Tooltip("reader:N", title="last read by"),
            ],
        )
    )
    mark = altair.Chart(named_data("peak")).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
    said = altair.Chart(named_data("peak")).mark_text(tooltip=None, fontSize=11, **_SIDES[is_late])
    said = said.encode(x="at:Q", y=altair.value(8), text="what:N")
    # The tensor's name in rectangles that have the room, else its module's.
    tensor, module = (_FITS.format(name=name) for name in ("tensor", "module"))
    names = _name("tensor", tensor) + _name("module", f"!({tensor}) && {module}")
    return (rectangles + names + mark + said).properties(width="container", height=320)


def _name(field: str, test: str) -> Any:
    return (
        altair.Chart(named_data("names"))
        .mark_text(fontSize=10, tooltip=None)
        .transform_calculate(middle="(datum.from + datum.to) / 2", height="(datum.start + datum.end) / 2")
        .encode(
            x=altair.X("middle:Q", title=_AXIS),
            y=altair.Y("height:Q", title="byte"),
            text=altair.condition(test, altair.Text(f"{field}:N"), altair.value("")),
        )
    )


def _use(found: Lifetimes, steps: _Steps, name: str) -> Plot:
    live = found.live_bytes(REGION_SCRATCH)
    needed = dict(enumerate(steps.most(live)))
    stated: dict[int, int] = {}  # by Vela
    for number in range(found.operations):
        row, at = steps.row(number), steps.step_of(number)
        if row is not None and row.scratch_bytes is not None:
            stated[at] = max(row.scratch_bytes, stated.get(at, 0))
    points = []
    for values, what in ((needed, "needed, by the stream"), (stated, "in use, by Vela")):
        last = max(values, default=0)
        ends = {last + 1: values[last]} if values else {}  # a step goes on to the next point
        points += [{"at": at, "bytes": size, "what": what} for at, size in sorted({**values, **ends}.items())]
    text = (
        f"{_which(found)}The arena has {found.arena_bytes:,} bytes; at most {max(live, default=0):,} of them are "
        "needed at once by what the command stream writes and reads. "
    )
    if stated:
        most = max(stated.values())
        text += f"Vela states up to {most:,} bytes in use, for the operations it scheduled."
    else:
        text += "There is no compile record, and so no figure of Vela's for each operation."
    size = altair.Tooltip("bytes:Q", format=",")
    lines = (
        altair.Chart(named_data("points"))
        .mark_line(interpolate="step-after")
        .encode(
            x=altair.X("at:Q", title=_AXIS, scale=_SCALE, axis=_TICKS),
            y=altair.Y("bytes:Q", title="bytes", axis=altair.Axis(format="~s")),
            color=altair.Color("what:N", title=None, legend=altair.Legend(orient="top")),
            tooltip=["what:N", altair.Tooltip("at:Q", title="operator"), size],
        )
    )
    whole = altair.Chart(named_data("size")).mark_rule(strokeDash=[4, 4]).encode(y="bytes:Q")
    said = altair.Chart(named_data("size")).mark_text(align="right", dx=-5, dy=-7, fontSize=11, tooltip=None)
    said = said.encode(x=altair.value("width"), y="bytes:Q", text="what:N")
    return drawn_plot(
        name,
        "Use of the arena",
        text,
        (lines + whole + said).properties(width="container", height=200),
        points=points,
        size=[{"bytes": found.arena_bytes, "what": f"size of the arena: {found.arena_bytes:,} bytes"}],
    )
