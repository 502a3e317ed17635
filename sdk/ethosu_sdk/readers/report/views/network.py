"""The network as it runs: which operator reads what another wrote, from the program and its command streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.views import operation_tree
from ethosu_sdk.readers.report.views.operation_tree import Node
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.results.run_facts import Flow

MOST_NODES = 150  # that a reader finds a way through
_MOST_EDGES = 600
_MOST_LEVELS = 20
Edge = tuple[int, int]
_Place = tuple[int, int, int]  # number of a planned buffer, first byte, byte behind the last


@dataclass(frozen=True)
class Network:
    """`edges` are pairs of places in `nodes`. `rows` are the ids of the nodes' rows in the table of operations."""

    nodes: Sequence[Node]
    rows: Sequence[str]
    edges: Sequence[Edge]


def of(inputs: Inputs) -> Network | str:
    """The network by operators, or by modules where there are many operators; or the reason why there is none."""
    profile = inputs.profile
    if inputs.program is None:
        return inputs.missing.get("program", "there is no program")
    if profile is None or not profile.operations:
        return inputs.missing.get("profile", "the profile has no operations")
    nodes = _cut(operation_tree.of(profile))
    if nodes is None:
        return f"the network has more than {MOST_NODES} modules and operators outside of modules"
    place = {
        row.index: at for at, (_, node) in enumerate(nodes) for row in _operations(node)
    }  # of an operation among the nodes
    edges = {
        (place[one], place[other])
        for one, other in _Reading(inputs.program.plan(), profile, inputs.facts.flows).edges()
        if place[one] != place[other]
    }
    if len(edges) > _MOST_EDGES:
        return f"the network has {len(edges):,} connections, more than {_MOST_EDGES}"
    return Network([node for _, node in nodes], [row for row, _ in nodes], sorted(edges))


def _cut(roots: Sequence[Node]) -> list[tuple[str, Node]] | None:
    """Operators, or the modules of the deepest level that has few enough; with the ids of their rows."""
    for level in reversed(range(_MOST_LEVELS)):
        found = list(_at(roots, level, ""))
        if len(found) <= MOST_NODES:
            return found
    return None


def _at(nodes: Sequence[Node], level: int, parent: str) -> Iterator[tuple[str, Node]]:
    for number, node in enumerate(nodes):
        row = f"{parent}.{number}" if parent else str(number)
        if node.kind == "module" and level:
            yield from _at(node.children, level - 1, row)
        elif node.kind != "overhead":
            yield row, node


def _operations(node: Node) -> Iterator[Operation]:
    if node.children:
        for child in node.children:
            yield from _operations(child)
    else:
        yield from node.parts


def _overlap(one: _Place, other: _Place) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


class _Reading:
    """The edges between operations of a profile, by their indices."""

    def __init__(self, plan: pte.ExecutionPlan, profile: Profile, flows: Mapping[int, Flow]) -> None:
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
            if isinstance(instruction, pte.DelegateCall):
                yield from self._delegate(instruction, rows)
            elif isinstance(instruction, pte.KernelCall) and rows:
                yield from self._kernel(instruction.args, rows[0].index)
            elif isinstance(instruction, pte.MoveCall):
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
            self._places = {key: found for key, found in self._places.items() if not _overlap(key, place)}
            self._places[place] = writers

    def _wrote(self, value: int) -> tuple[int, ...]:
        """Who wrote a value; of a view, which no operation writes, who wrote the bytes that it lies on."""
        place = self._place(value)
        if value in self._writers or place is None:
            return self._writers.get(value, ())
        return self._places.get(place, ())

    def _place(self, value: int) -> _Place | None:
        tensor = self._plan.values[value]
        if not isinstance(tensor, pte.Tensor) or tensor.allocation is None:
            return None
        start = tensor.allocation.offset
        return tensor.allocation.memory_id, start, start + tensor.nbytes

    def _tensors(self, args: Iterable[int]) -> Iterator[int]:
        """The values that are tensors, those in lists among them."""
        for index in args:
            value = self._plan.values[index]
            if isinstance(value, pte.Tensor):
                yield index
            elif isinstance(value, pte.List) and value.kind in ("TensorList", "OptionalTensorList"):
                yield from (int(item) for item in value.items if item >= 0)

    def _delegate(self, call: pte.DelegateCall, rows: Sequence[Operation]) -> Iterator[Edge]:
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
