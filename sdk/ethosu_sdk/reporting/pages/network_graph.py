"""The network as a graph: which operator reads what another wrote, as boxes between which data flows down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall, List, MoveCall, Tensor
from ethosu_sdk.records import operation_tree
from ethosu_sdk.records.operation_tree import Figures, Node
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.records.run_facts import Flow
from ethosu_sdk.reporting.pages.document import short_name
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs

MOST_NODES = 150  # that a reader finds a way through
_MOST_EDGES = 600
_MOST_LEVELS = 20
Edge = tuple[int, int]
_Place = tuple[int, int, int]  # number of a planned buffer, first byte, byte behind the last


def graph_of(inputs: ReportInputs) -> dict[str, Any]:
    """The network by operators, or by modules where there are many operators: boxes and lines with their places in
    pixels, or the `reason` why there is no graph."""
    profile, reason, nodes = inputs.profile, "", list[tuple[str, Node]]()
    edges: set[Edge] = set()
    if inputs.program is None:
        reason = inputs.missing.get("program", "there is no program")
    elif profile is None or not profile.operations:
        reason = inputs.missing.get("profile", "the profile has no operations")
    else:
        # Operators, or the modules of the deepest level that has few enough.
        roots = operation_tree.tree_of(profile)
        cuts = (list(_at(roots, level, "")) for level in reversed(range(_MOST_LEVELS)))
        nodes = next((found for found in cuts if len(found) <= MOST_NODES), [])
        place = {
            row.index: at
            for at, (_, node) in enumerate(nodes)
            for leaf in node.leaves()
            for row in leaf.parts
        }
        if nodes:
            found = _Reading(inputs.program.plan(), profile, inputs.facts.flows).edges()
            pairs = ((place[one], place[other]) for one, other in found)
            edges = {pair for pair in pairs if pair[0] != pair[1]}
        else:
            reason = f"the network has more than {MOST_NODES} modules and operators outside of modules"
        if len(edges) > _MOST_EDGES:
            reason = f"the network has {len(edges):,} connections, more than {_MOST_EDGES}"
    if reason or profile is None:
        return {"reason": reason, "boxes": []}
    places, bends = _layout(len(nodes), sorted(edges))
    ends = [*places, *(point for line in bends.values() for point in line)]
    totals = operation_tree.tree_totals(profile)
    boxes = [_box(node, row, point, totals) for (row, node), point in zip(nodes, places, strict=True)]
    max(boxes, key=lambda box: box["share"])["on"] += " largest"  # to which a page scrolls
    return {
        "reason": "",
        "width": round(max((x for x, _ in ends), default=0) + _BOX[0] + 2 * _MARGIN),
        "height": round(max((y for _, y in ends), default=0) + _BOX[1] + 2 * _MARGIN),
        "boxes": boxes,
        "lines": [
            {"path": _path(places[one], bends[one, other], places[other]), "ends": f"{one} {other}"}
            for one, other in sorted(edges)
        ],
        "box": _BOX,
        "what": "modules and operators" if any(node.kind == "module" for _, node in nodes) else "operators",
        "count": len(nodes),
    }


def _at(nodes: Sequence[Node], level: int, parent: str) -> Iterator[tuple[str, Node]]:
    for number, node in enumerate(nodes):
        row = f"{parent}.{number}" if parent else str(number)
        if node.kind == "module" and level:
            yield from _at(node.children, level - 1, row)
        elif node.kind != "overhead":
            yield row, node


class _Reading:
    """The edges between operations of a profile, by their indices."""

    def __init__(self, plan: ExecutionPlan, profile: Profile, flows: Mapping[int, Flow]) -> None:
        self._plan, self._flows = plan, flows
        self._rows: dict[int, list[Operation]] = {}
        for row in profile.operations:
            self._rows.setdefault(row.instruction, []).append(row)
        self._writers: dict[int, tuple[int, ...]] = {}  # operations that wrote a value of the plan
        self._places: dict[_Place, tuple[int, ...]] = {}  # operations that wrote what lies there now

    def edges(self) -> Iterator[Edge]:
        """Pairs of an operation that writes and one that reads, in the order of the program."""
        for number, instruction in enumerate(self._plan.instructions):
            rows = sorted(self._rows.get(number, ()), key=lambda row: (row.offset or 0, row.index))
            if isinstance(instruction, DelegateCall):
                yield from self._delegate(instruction, rows)
            elif isinstance(instruction, KernelCall) and rows:
                yield from self._kernel(instruction.args, rows[0].index)
            elif isinstance(instruction, MoveCall):
                self._write(instruction.move_to, self._wrote(instruction.move_from))

    def _kernel(self, args: Sequence[int], index: int) -> Iterator[Edge]:
        """The last argument of a kernel is the result, which also stands before it as the out argument."""
        written = set(self._tensors(args[-1:]))
        for value in self._tensors(args):
            if value not in written:
                yield from ((writer, index) for writer in self._wrote(value))
        for value in written:
            self._write(value, (index,))

    def _write(self, value: int, writers: tuple[int, ...]) -> None:
        self._writers[value] = writers
        place = self._place(value)
        if place is not None:
            buffer, start, end = place
            self._places = {
                key: found
                for key, found in self._places.items()
                if key[0] != buffer or key[1] >= end or start >= key[2]
            }
            self._places[place] = writers

    def _wrote(self, value: int) -> tuple[int, ...]:
        """Who wrote a value; of a view, which no operation writes, who wrote the bytes that it lies on."""
        place = self._place(value)
        if value in self._writers or place is None:
            return self._writers.get(value, ())
        return self._places.get(place, ())

    def _place(self, value: int) -> _Place | None:
        tensor = self._plan.values[value]
        if not isinstance(tensor, Tensor) or tensor.allocation is None:
            return None
        start = tensor.allocation.offset
        return tensor.allocation.memory_id, start, start + tensor.nbytes

    def _tensors(self, args: Iterable[int]) -> Iterator[int]:
        for index in args:
            value = self._plan.values[index]
            if isinstance(value, Tensor):
                yield index
            elif isinstance(value, List) and value.kind in ("TensorList", "OptionalTensorList"):
                yield from (int(item) for item in value.items if item >= 0)

    def _delegate(self, call: DelegateCall, rows: Sequence[Operation]) -> Iterator[Edge]:
        flow = self._flows.get(call.delegate_index)
        vela = self._plan.delegates[call.delegate_index].vela
        if vela is None or not rows:
            return
        if flow is None:  # in the order of the stream, then
            last = len(rows) - 1
            steps = tuple((at, at + 1) for at in range(last))
            flow = Flow(steps, [(0,)] * len(vela.inputs), [(last,)] * len(vela.outputs))
        indices = [row.index for row in rows]
        for value, readers in zip(call.args, flow.inputs, strict=False):
            for writer in self._wrote(value):
                yield from ((writer, indices[reader]) for reader in readers if reader < len(indices))
        for one, other in flow.edges:
            if one < len(indices) and other < len(indices):
                yield indices[one], indices[other]
        for value, writers in zip(call.args[len(flow.inputs) :], flow.outputs, strict=False):
            self._write(value, tuple(indices[writer] for writer in writers if writer < len(indices)))


_BOX = (236, 44)  # pixels
_STEP = (258, 68)  # from one box to the next
_MARGIN = 12
_MOST_LETTERS, _MOST_MODULE = 32, 14
_DUMMY = 0.25  # room for an edge beside boxes, in steps
_Point = tuple[float, float]


def _layout(count: int, edges: Sequence[Edge]) -> tuple[list[_Point], Mapping[Edge, list[_Point]]]:
    """The upper left corner of each box, and where edges that pass other boxes bend."""
    import fast_sugiyama

    used = sorted({node for edge in edges for node in edge})
    number = {node: at for at, node in enumerate(used)}  # no gaps: the layout's own nodes come behind them
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
        following = dict(line for line in lines if line[0] >= len(used))
        for one, other in lines:
            if one < len(used):
                bend, last = [], other
                while last >= len(used):
                    bend.append(found[last])
                    last = following[last]
                bends[used[one], used[last]] = bend
        places |= {used[node]: point for node, point in found.items() if node < len(used)}
        right += width + 1
    for node in range(count):  # nothing reads or writes what these do
        if node not in places:
            places[node] = (_MARGIN + right * _STEP[0], float(_MARGIN))
            right += 1
    return [places[node] for node in range(count)], bends


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
    is_module = node.kind == "module"
    entry = None if is_module else node.entry
    module = node.name if is_module else operation_tree.module_of(entry)
    texts = []
    if not is_module:  # the last part of a module's path says most
        path = plain_text.line(module)
        texts.append(path if len(path) <= _MOST_MODULE else "…" + path[-_MOST_MODULE:])
    for name, unit in (("modelled", "cycles"), ("cpu_cycles", "CPU cycles")):
        if name in figures:
            texts.append(f"{figures[name]:,.0f} {unit}" if figures[name] else operation_tree.PARALLEL)
            break
    if metric in figures or node.children:
        texts.append(f"{share:.1%}")
    return {
        "x": round(place[0], 1),
        "y": round(place[1], 1),
        "row": row,
        # An operator has its number in the table of operations.
        "name": plain_text.cut(node.name if entry is None else f"{entry.index} {node.name}", _MOST_LETTERS),
        "text": " · ".join(filter(None, texts)),
        "share": share,
        "on": "module" if entry is None else entry.runs_on.lower(),
        "tip": [(name, text) for name, text in _tip(node, module, figures, share) if text],
    }


def _tip(node: Node, module: str, figures: Figures, share: float) -> Iterator[tuple[str, str]]:
    entry = node.entry
    yield "operator", "" if node.kind == "module" else short_name(node.name)
    yield "module", short_name(module)
    yield "runs on", "" if entry is None or node.kind == "module" else entry.runs_on
    yield "IFM → OFM", operation_tree.shapes_of(node.parts)
    yield "tensor", "" if entry is None else short_name(operation_tree.tensor_of(entry))
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
