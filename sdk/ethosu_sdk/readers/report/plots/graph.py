"""The network as a graph: operators or modules as boxes, with what each takes; data flows downwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.page.plot import short
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.views import fold, network, operation_tree
from ethosu_sdk.readers.report.views.network import Edge
from ethosu_sdk.readers.report.views.operation_tree import Figures, Node

_BOX = (236, 44)  # pixels
_STEP = (258, 68)  # from one box to the next
_MARGIN = 12
_MOST_LETTERS, _MOST_MODULE = 32, 14
_DUMMY = 0.25  # room for an edge beside boxes, in steps
_Point = tuple[float, float]


def of(inputs: Inputs) -> dict[str, Any]:
    """Boxes and lines with their places in pixels, or the `reason` why there is no graph."""
    found = network.of(inputs)
    if isinstance(found, str):
        return {"reason": found, "boxes": []}
    assert inputs.profile is not None  # network
    places, bends = _layout(len(found.nodes), found.edges)
    ends = [*places, *(point for line in bends.values() for point in line)]
    totals = operation_tree.totals(inputs.profile)
    modules = sum(node.kind == "module" for node in found.nodes)
    return {
        "reason": "",
        "width": round(max((x for x, _ in ends), default=0) + _BOX[0] + 2 * _MARGIN),
        "height": round(max((y for _, y in ends), default=0) + _BOX[1] + 2 * _MARGIN),
        "boxes": [_box(*row, totals) for row in zip(found.nodes, found.rows, places, strict=True)],
        "lines": [
            {"path": _path(places[one], bends[one, other], places[other]), "ends": f"{one} {other}"}
            for one, other in found.edges
        ],
        "box": _BOX,
        "what": "modules and operators" if modules else "operators",
        "count": len(found.nodes),
    }


def _layout(count: int, edges: Sequence[Edge]) -> tuple[list[_Point], Mapping[Edge, list[_Point]]]:
    """The upper left corner of each box, and where edges that pass other boxes bend."""
    import fast_sugiyama

    used = sorted({node for edge in edges for node in edge})
    number = {
        node: at for at, node in enumerate(used)
    }  # without gaps: the layout's own nodes come behind them
    places: dict[int, _Point] = {}
    bends: dict[Edge, list[_Point]] = {edge: [] for edge in edges}
    right = 0.0
    for positions, width, height, parts in fast_sugiyama.from_edges(
        [(number[one], number[other]) for one, other in edges],
        vertex_spacing=1.0,
        dummy_vertices=True,
        dummy_size=_DUMMY,
    ):
        found = {
            int(node): (_MARGIN + (right + x) * _STEP[0], _MARGIN + (height - y) * _STEP[1])
            for node, (x, y) in positions
        }
        lines = [(int(one), int(other)) for one, other in parts or ()]
        for (one, other), line in _bends(len(used), lines, found).items():
            bends[used[one], used[other]] = line
        places |= {used[node]: point for node, point in found.items() if node < len(used)}
        right += width + 1
    for node in range(count):  # nothing reads or writes what these do
        if node not in places:
            places[node] = (_MARGIN + right * _STEP[0], float(_MARGIN))
            right += 1
    return [places[node] for node in range(count)], bends


def _bends(real: int, parts: Sequence[Edge], found: Mapping[int, _Point]) -> dict[Edge, list[_Point]]:
    """The points of edges over several layers: there the layout has nodes of its own, which are no `real` ones."""
    following = dict(part for part in parts if part[0] >= real)
    bends: dict[Edge, list[_Point]] = {}
    for one, first in parts:
        if one >= real:
            continue
        line, last = [], first
        while last >= real:
            line.append(found[last])
            last = following[last]
        bends[one, last] = line
    return bends


def _path(start: _Point, bends: Sequence[_Point], end: _Point) -> str:
    """A line from the lower edge of a box to the upper edge of another, as SVG has it."""
    half = _BOX[0] / 2
    points = [(x + half, y + _BOX[1] / 2) for x, y in bends]
    x, y = start[0] + half, start[1] + _BOX[1]
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in (*points, (end[0] + half, end[1])):
        middle = (y + to_y) / 2
        path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


def _box(node: Node, row: str, place: _Point, totals: Figures) -> dict[str, Any]:
    figures = node.figures()
    metric = operation_tree.weighed_by(totals)
    whole = totals.get(metric) or 0
    share = max(0.0, min(1.0, figures.get(metric, 0) / whole)) if whole else 0.0
    entry = node.entry
    module = node.name if node.kind == "module" else fold.module(entry)
    return {
        "x": round(place[0], 1),
        "y": round(place[1], 1),
        "row": row,
        "name": plain_text.cut(_numbered(node), _MOST_LETTERS),
        "text": " · ".join(
            filter(
                None,
                (
                    "" if node.kind == "module" else _end(module),
                    *_costs(figures, share if metric in figures or node.children else None),
                ),
            )
        ),
        "share": share,
        "on": entry.runs_on.lower() if entry is not None and node.kind != "module" else "module",
        "tip": [(name, text) for name, text in _tip(node, module, figures, share) if text],
    }


def _numbered(node: Node) -> str:
    """The operator with its number in the table of operations."""
    return node.name if node.kind == "module" or node.entry is None else f"{node.entry.index} {node.name}"


def _end(module: str) -> str:
    """The last part of a module's path, which says most."""
    path = plain_text.line(module)
    return path if len(path) <= _MOST_MODULE else "…" + path[-_MOST_MODULE:]


def _costs(figures: Figures, share: float | None) -> Iterator[str]:
    if "modelled" in figures:
        yield f"{figures['modelled']:,.0f} cycles"
    elif "cpu_cycles" in figures:
        yield f"{figures['cpu_cycles']:,.0f} CPU cycles"
    if share is not None:
        yield f"{share:.1%}"


def _tip(node: Node, module: str, figures: Figures, share: float) -> Iterator[tuple[str, str]]:
    entry = node.entry
    yield "operator", "" if node.kind == "module" else short(node.name)
    yield "module", short(module)
    yield "runs on", "" if entry is None or node.kind == "module" else entry.runs_on
    yield "IFM → OFM", fold.shapes(node.parts)
    yield "tensor", "" if entry is None else short(fold.tensor(entry))
    for name, title in _FIGURES.items():
        yield title, f"{figures[name]:,.0f}" if figures.get(name) else ""
    yield "time", f"{figures['time']:,.4f} ms" if "time" in figures else ""
    yield "share", f"{share:.1%}"


_FIGURES = {
    "modelled": "NPU cycles",
    "measured": "NPU cycles, measured",
    "cpu_cycles": "CPU cycles",
    "macs": "MACs",
}
