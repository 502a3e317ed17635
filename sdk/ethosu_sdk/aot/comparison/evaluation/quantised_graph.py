"""What the graph of a quantised model says of its values: what each is computed from, and which of them have to share
one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ethosu_sdk.aot.facts.layers import SharedScale
from ethosu_sdk.aot.graph.arrays import Array
from ethosu_sdk.aot.graph.conversions import is_dequantize, is_quantize
from ethosu_sdk.aot.graph.fx import operator_name

_LEAST_TIMES = 2  # the range of the value that sets a scale, of that of the one that suffers from it

# Operators of PyTorch that only move values, without their namespace and overload.
MOVES = frozenset(
    (
        *(
            "alias",
            "cat",
            "chunk",
            "clone",
            "concat",
            "constant_pad_nd",
            "contiguous",
            "copy",
            "expand",
            "flatten",
        ),
        *("flip", "getitem", "index_select", "movedim", "narrow", "pad", "permute", "pixel_shuffle"),
        *(
            "pixel_unshuffle",
            "repeat",
            "reshape",
            "roll",
            "select",
            "slice",
            "split",
            "split_with_sizes",
            "squeeze",
        ),
        *(
            "stack",
            "t",
            "tile",
            "transpose",
            "unbind",
            "unflatten",
            "unfold",
            "unsafe_split",
            "unsqueeze",
            "view",
        ),
    )
)


def moves(node: Any) -> bool:
    """Whether a node only moves values."""
    name = operator_name(node).rpartition("::")[2] or getattr(node.target, "__name__", "")
    return name.removesuffix("_copy").rstrip("_") in MOVES


def operands(quantisation: Any, places: Mapping[str, int]) -> tuple[int, ...]:
    """The values, numbered by `places`, that the value of a `quantisation` is computed from."""
    rows = (node.args[0] for node in chain(quantisation.args[0]) if is_dequantize(node))
    return tuple(dict.fromkeys(places[row.name] for row in rows if row.name in places))


def chain(node: Any) -> Iterator[Any]:
    """The operators up to `node`, the last one first, and the dequantisations from which they start."""
    pending, seen = [node], set()
    while pending:
        current = pending.pop(0)
        if current in seen or is_quantize(current):
            continue
        seen.add(current)
        yield current
        if not is_dequantize(current):
            pending += current.all_input_nodes


def outputs(program: Any, nodes: Mapping[str, Any], places: Mapping[str, int]) -> tuple[int | None, ...]:
    """The value, numbered by `places`, that each output of an ``ExportedProgram`` is, quantised or not."""
    found = []
    for name in program.graph_signature.user_outputs:
        node = nodes.get(name)
        if node is not None and is_dequantize(node):
            node = node.args[0]
        found.append(None if node is None else places.get(node.name))
    return tuple(found)


class _Groups:
    """Values that share a scale, and the operators that make them share it."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self.joining: dict[int, str] = {}

    def of(self, value: int) -> int:
        """The group of a value."""
        while (above := self._above.get(value, value)) != value:
            value = above
        return value

    def join(self, values: list[int], name: str) -> None:
        """Let `values` be in one group; the operator `name` joins several operands, unless it is empty."""
        groups = {self.of(value) for value in values}
        first = min(groups)
        names = [self.joining[group] for group in sorted(groups) if group in self.joining]
        self._above |= dict.fromkeys(groups, first)
        if names or name:
            self.joining[first] = names[0] if names else name


def shared_scales(
    nodes: Mapping[str, Any], places: Mapping[str, int], stored: Mapping[str, Array]
) -> dict[int, SharedScale]:
    """The values that use much less of their type's range than another, whose scale they have to share, by number.

    A concatenation, for example, gives all of its operands one scale: that of the widest. `nodes` are the
    quantisations, `stored` the values, by the names that `places` numbers in order.
    """
    groups, moved = _Groups(), set[int]()
    rows = [nodes[name] for name in places]
    for place, node in enumerate(rows):
        same = [other for other in operands(node, places) if _scale(rows[other]) == _scale(node)]
        if same:
            moved.add(place)
            groups.join([place, *same], _operator(node) if len(same) > 1 else "")
    used = [int(stored[name].max()) - int(stored[name].min()) + 1 for name in places]
    widest: dict[int, int] = {}
    for place in sorted(set(range(len(rows))) - moved, key=lambda place: used[place]):
        widest[groups.of(place)] = place
    return {
        place: SharedScale(wide, groups.joining[group])
        for place in range(len(rows))
        if (group := groups.of(place)) in groups.joining
        and (wide := widest.get(group, place)) != place
        and used[wide] >= _LEAST_TIMES * used[place]
    }


def _scale(quantisation: Any) -> tuple[Any, ...]:
    return tuple(quantisation.args[1:3])


def _operator(quantisation: Any) -> str:
    return operator_name(quantisation.args[0]).rpartition("::")[2]
