"""Which quantised value of a program each tensor of a TOSA graph holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

from ethosu_sdk.aot.comparison.evaluation import quantised_graph
from ethosu_sdk.aot.comparison.evaluation.histories import history
from ethosu_sdk.aot.facts.layers import TensorOrigin
from ethosu_sdk.aot.graph import tosa_moves, tosa_operators
from ethosu_sdk.aot.graph.conversions import is_quantize
from ethosu_sdk.aot.vela.capture import VelaCapture

_NO_NODE = "ExecuTorch does not tell which node of the model it comes from"
_NO_VALUE = "the model quantises no value there"
_INTERMEDIATE = "an intermediate step: {name} is what holds the model's value"


def find(graph: Any, capture: VelaCapture, places: Mapping[str, int]) -> dict[str, TensorOrigin]:
    """The origins of the tensors of `capture`'s graph, by name; `places` number the quantisations of the program's
    `graph` by their names."""
    nodes = {node.name: node for node in graph.nodes}
    found = {}
    for name, meta in capture.nodes.items():
        node = next((nodes[n] for n, key in history(meta) if key == id(graph) and n in nodes), None)
        if node is None:
            values = tuple(_same_quantisation(meta, nodes, places))
            found[name] = TensorOrigin(None, values, "" if values else _NO_NODE)
            continue
        following = [row for row in _following(node) if row.name in places]
        values = tuple(places[row.name] for row in following)
        certain = len(following) == 1 and _is_direct(node, following[0])
        found[name] = TensorOrigin(node.name, values, "" if values else _NO_VALUE, certain)
    operands = {places[name]: quantised_graph.operands(nodes[name], places) for name in places}
    return _without_intermediate(_by_inputs(found, operands, capture.tosa), capture.tosa)


def _following(node: Any) -> list[Any]:
    """The quantisations of a node's value: its users, or those behind operators that are fused with it."""
    found, pending, seen = [], [node], set()
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        if is_quantize(current):
            found.append(current)
            continue
        for user in current.users:
            if is_quantize(user) or len(user.all_input_nodes) == 1:
                pending.append(user)
    return found


def _is_direct(node: Any, quantisation: Any) -> bool:
    """Whether what `node` computes is quantised in its own form, perhaps after an activation."""
    import torch

    current = quantisation.args[0]
    while current is not node:
        if (
            torch.Tag.pointwise not in getattr(current.target, "tags", ())
            or len(current.all_input_nodes) != 1
        ):
            return False
        current = current.all_input_nodes[0]
    return node.op == "call_function" and not quantised_graph.moves(node)


def _same_quantisation(
    meta: Mapping[str, Any], nodes: Mapping[str, Any], places: Mapping[str, int]
) -> list[int]:
    """The values that are quantised as a tensor of unknown origin is."""
    rows = [row for row in (meta.get("output_qparams") or {}).values() if isinstance(row.scale, float)]
    return [
        place
        for name, place in places.items()
        for row in rows[:1]
        if isclose(nodes[name].args[1], row.scale, rel_tol=1e-6) and nodes[name].args[2] == int(row.zp)
    ]


def _by_inputs(
    found: Mapping[str, TensorOrigin], operands: Mapping[int, Sequence[int]], tosa: bytes
) -> dict[str, TensorOrigin]:
    """`found`, where a tensor of unknown origin keeps those values that the model computes from what the tensor is
    computed from in the graph: with one alone, it is sure."""
    makers = {name: row.inputs for row in tosa_operators.read(tosa) for name in row.outputs}
    result = dict(found)
    for name, origin in found.items():
        if origin.node is not None or not origin.values:
            continue
        before = _values_before(name, makers, result)
        values = tuple(value for value in origin.values if before.intersection(operands[value]))
        if values:
            result[name] = replace(origin, values=values, certain=len(values) == 1)
    return result


def _values_before(
    name: str, makers: Mapping[str, Sequence[str]], found: Mapping[str, TensorOrigin]
) -> set[int]:
    """The values of the nearest tensors that have some, among those that `name` is computed from."""
    pending, seen, values = list(makers.get(name, ())), {name}, set[int]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        origin = found.get(current)
        if origin is not None and origin.values:
            values.update(origin.values)
        else:
            pending += makers.get(current, ())
    return values


def _without_intermediate(found: Mapping[str, TensorOrigin], tosa: bytes) -> dict[str, TensorOrigin]:
    """`found`, without the values of tensors from which another one of the same values is computed.

    A layer whose activation is an operator of its own has two: the last one is the layer's.
    """
    operators = tosa_operators.read(tosa)
    users: dict[str, list[tosa_operators.TosaOperator]] = {}
    for row in operators:
        for name in row.inputs:
            users.setdefault(name, []).append(row)
    narrow = tosa_operators.narrow_tensors(tosa)
    result = dict(found)
    for name, origin in found.items():
        later = _later(name, origin, found, users, narrow) if origin.values else None
        if later is not None:
            result[name] = TensorOrigin(origin.node, (), _INTERMEDIATE.format(name=later))
    return result


def _later(
    name: str,
    origin: TensorOrigin,
    found: Mapping[str, TensorOrigin],
    users: Mapping[str, Sequence[tosa_operators.TosaOperator]],
    narrow: frozenset[str],
) -> str | None:
    """A tensor of the same values that is computed from `name`, by more than moving it."""
    pending, seen = [(name, False)], set()
    while pending:
        current, computed = pending.pop()
        for user in users.get(current, ()):
            for output in user.outputs:
                other = found.get(output)
                if other is None or other.values != origin.values or output in seen:
                    continue
                seen.add(output)
                anew = computed or user.name not in tosa_moves.NAMES
                if anew and output in narrow:
                    return output
                pending.append((output, anew))
    return None
