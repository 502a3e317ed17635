"""Rewrites of a lowered program: integers as state, new values that would be lost, and indices of int64."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.compile.graphs.fx import operator_name

# The writes of a quantised model end in a dequantise operator, and its reads begin with a quantise operator. Between
# them a buffer would hold floating-point values, and the CPU would convert all of them twice in each inference.
# Where both have one scale, zero point and type, the buffer holds the integers, and the conversions go. That changes
# no result: a value that was dequantised and is quantised with the same parameters gives the same integer (computed
# here for each integer of the type), moves give the same of integers, and of the initial value the program sees only
# what the quantise operator makes of it. Arm's int16 ends at -32767: should a delegate give -32768, which the
# quantise operator would have made -32767, the buffer keeps that.

EDGE_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
EDGE_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"
# What the Cortex-M backend puts in their place has the same arguments.
EDGE_QUANTIZES = frozenset({EDGE_QUANTIZE, "cortex_m::quantize_per_tensor"})
EDGE_DEQUANTIZES = frozenset({EDGE_DEQUANTIZE, "cortex_m::dequantize_per_tensor"})

# Operators that only move values, with the positions of the arguments whose values they move.
_MOVES: Mapping[str, tuple[int, ...]] = {
    **{
        f"aten::{name}": (0,)
        for name in (
            *("view_copy", "permute_copy", "slice_copy", "select_copy", "squeeze_copy", "unsqueeze_copy"),
            *("expand_copy", "alias_copy", "clone", "cat", "index_select", "index", "flip"),
        )
    },
    "dim_order_ops::_clone_dim_order": (0,),
    "aten::slice_scatter": (0, 1),
    "aten::select_scatter": (0, 1),
    "aten::where": (1, 2),
    "aten::index_put": (0, 2),
    "aten::index_copy": (0, 3),
}
_ACCUMULATE = 3  # the argument of index_put that makes a sum of it
_INDEX = 2  # the place of an index among the arguments of `gather` and `scatter`
_VIEWS = ("aten::view_copy", "aten::view", "aten::alias", "aten::alias_copy", "aten::detach")
_BITS = 16  # of the widest integers that are tried one by one

Parameters = tuple[Any, ...]  # scale, zero point, least and largest integer, type


class _Program:
    """An edge program with its states: the placeholders of the buffers `written` by their names, and the places of
    their new values among the outputs."""

    def __init__(self, program: Any, written: set[str]) -> None:
        from torch.export.graph_signature import OutputKind

        signature = program.graph_signature
        named = [
            (signature.inputs_to_buffers.get(row.name), row)
            for row in program.graph.find_nodes(op="placeholder")
        ]
        self.program = program
        self.states: dict[str, Any] = {name: node for name, node in named if name in written}
        self.places = {
            row.target: index
            for index, row in enumerate(signature.output_specs)
            if row.kind is OutputKind.BUFFER_MUTATION
        }

    @property
    def outputs(self) -> list[Any]:
        """The nodes of the outputs."""
        return list(self.program.graph.output_node().args[0])

    def holder(self, name: str) -> dict[str, Any]:
        """What has the value of a buffer."""
        held: dict[str, Any] = self.program.state_dict
        return held if name in held else self.program.constants

    def connected(self, node: Any) -> Iterator[Any]:
        """The nodes that have to be of the type of `node`: moves from it and to it, and new values of a state."""
        pairs = [
            (state, self.outputs[self.places[name]])
            for name, state in self.states.items()
            if name in self.places
        ]
        yield from (value for state, value in pairs if state is node)
        if operator_name(node) in EDGE_DEQUANTIZES:
            return  # its users may have the integers or the floating-point values, each for itself
        yield from (state for state, value in pairs if value is node)
        yield from _moved(node)
        yield from (user for user in node.users if node in _moved(user))


@dataclass(frozen=True)
class _Connected:
    """The values of a program that moves connect with a state: their `nodes`, the names of the `states` among them,
    and the one quantisation of all; None where they have to stay floating-point values."""

    program: _Program
    nodes: tuple[Any, ...]
    states: tuple[str, ...]
    parameters: Parameters | None


def keep_integer_state(programs: Sequence[Any]) -> None:
    """Let the edge `programs`, the methods of one `.pte`, keep integers in all buffers for which that changes
    nothing. A buffer of several methods is changed in all of them or in none."""
    written = {name for program in programs for name in program.graph_signature.buffers_to_mutate.values()}
    parts = [part for program in programs for part in _parts(_Program(program, written))]
    for part in _agreeing(parts):
        _retype(part)


def _agreeing(parts: Sequence[_Connected]) -> list[_Connected]:
    """Those of the `parts` that have a quantisation, and share each of their states with none of another."""
    uses = Counter(name for part in parts for name in part.states)
    left = [part for part in parts if part.parameters is not None]
    while True:
        same = Counter((name, part.parameters) for part in left for name in part.states)
        kept = [row for row in left if all(same[name, row.parameters] == uses[name] for name in row.states)]
        if len(kept) == len(left):
            return kept
        left = kept


def _parts(program: _Program) -> Iterator[_Connected]:
    seen: set[Any] = set()
    for start in program.states.values():
        found, waiting = [], [start]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                # Another part may begin with the same dequantised value.
                seen.update({node} if operator_name(node) not in EDGE_DEQUANTIZES else ())
                found += [] if node in found else [node]
                waiting += [row for row in program.connected(node) if row not in found]
        names = tuple(name for name, node in program.states.items() if node in found)
        if names:
            yield _Connected(program, tuple(found), names, _parameters(program, found, names))


def _moved(node: Any) -> list[Any]:
    """The values that a node only moves; empty for another node."""
    name = operator_name(node)
    if name == "aten::index_put" and len(node.args) > _ACCUMULATE and node.args[_ACCUMULATE]:
        return []
    found = []
    for position in _MOVES.get(name, ()):
        given = node.args[position]
        found += list(given) if isinstance(given, (list, tuple)) else [given]
    return found


def _parameters(program: _Program, nodes: Sequence[Any], states: Sequence[str]) -> Parameters | None:
    """The one quantisation of connected values, with which they can be integers; None without one."""
    import torch

    found: set[Parameters] = set()
    own = {program.places[name] for name in states if name in program.places}
    for node in nodes:
        if operator_name(node) in EDGE_DEQUANTIZES:
            found.add(tuple(node.args[1:6]))
            continue
        if not _moved(node) and node not in program.states.values():
            return None
        for user in node.users:
            if operator_name(user) in EDGE_QUANTIZES:
                found.add(tuple(user.args[1:6]))
            elif user.op == "output":
                if any(row is node and index not in own for index, row in enumerate(program.outputs)):
                    return None
            elif node not in _moved(user):
                return None
    initial = [program.holder(name)[name] for name in states]
    floats = all(value.is_floating_point() and torch.isfinite(value).all() for value in initial)
    return found.pop() if floats and len(found) == 1 and all(map(_is_exact, found)) else None


@functools.cache
def _is_exact(parameters: Parameters) -> bool:
    """Whether each integer is what it becomes when it is dequantised and quantised again."""
    import torch

    low, high, dtype = parameters[2:]
    if torch.iinfo(dtype).bits > _BITS:
        return False
    integers = torch.arange(low, high + 1).to(dtype)
    values = torch.ops.quantized_decomposed.dequantize_per_tensor.default(integers, *parameters)
    return bool(torch.equal(_initial_integers(values, parameters), integers))


def _initial_integers(values: Any, parameters: Parameters) -> Any:
    """What the quantise operator makes of a state's values."""
    import torch

    return torch.ops.quantized_decomposed.quantize_per_tensor.default(values, *parameters)


def _retype(part: _Connected) -> None:
    """Let the values of `part` be integers."""
    program, parameters = part.program.program, part.parameters
    assert parameters is not None
    graph = program.graph
    values = [node for node in part.nodes if operator_name(node) not in EDGE_DEQUANTIZES]
    for name in part.states:
        held = part.program.holder(name)
        held[name] = _initial_integers(held[name].detach(), parameters)
    for node in values:
        node.meta["val"] = node.meta["val"].to(parameters[-1])
        for user in [row for row in node.users if operator_name(row) in EDGE_QUANTIZES]:
            user.replace_all_uses_with(node)
            graph.erase_node(user)
    for source in [node for node in part.nodes if node not in values]:
        for user in [row for row in source.users if row in values]:
            user.replace_input_with(source, source.args[0])
    _return(part)
    for source in [node for node in part.nodes if node not in values and not node.users]:
        graph.erase_node(source)
    program.graph_module.recompile()


def _return(part: _Connected) -> None:
    """Let the program return the integers as the new values of the states."""
    output, results = part.program.program.graph.output_node(), part.program.outputs
    for name in part.states:
        place = part.program.places.get(name)
        if place is not None and operator_name(results[place]) in EDGE_DEQUANTIZES:
            results[place] = results[place].args[0]
            part.program.program.graph_signature.output_specs[place].arg.name = results[place].name
    output.args = (tuple(results),)


def keep_write_backs(program: Any) -> None:
    """Copy new values of buffers that are old values of buffers in `program`, an edge program, before anything is
    written back.

    ExecuTorch 1.5.1 writes new values back by ``copy_`` at the end of a program, but not where the value is a
    placeholder of a buffer: it takes such a value for one that was written in place. ``self.a.copy_(self.b)`` is
    lost, and so is a reset to a constant. If the value is a view of a buffer, the program reads the view only after
    it has written that buffer.
    """
    from executorch.exir.dialects._ops import ops

    signature = program.graph_signature
    output = program.graph.output_node()
    results = list(output.args[0])
    for number, row in enumerate(signature.output_specs):
        node = results[number]
        if not _changes_too_early(node, row, signature):
            continue
        with program.graph.inserting_before(output):
            results[number] = program.graph.call_function(
                ops.edge.dim_order_ops._clone_dim_order.default,
                (node,),
                {"dim_order": list(node.meta["val"].dim_order())},
            )
        results[number].meta = copy(node.meta)
        row.arg.name = results[number].name
    output.args = (tuple(results),)
    program.graph_module.recompile()


def _changes_too_early(node: Any, row: Any, signature: Any) -> bool:
    """Whether the result `node` of a program is a buffer's memory, and is lost or overwritten before it is taken."""
    from torch.export.graph_signature import OutputKind

    root = node
    while operator_name(root) in _VIEWS:
        root = root.args[0]
    buffer = signature.inputs_to_buffers.get(getattr(root, "name", None))
    if buffer is None:
        return False
    if row.kind is OutputKind.BUFFER_MUTATION:
        return node is not root or buffer != row.target
    return buffer in signature.buffers_to_mutate.values()


def widen_indices(program: Any) -> None:
    """Cast what is not int64 among the indices of `program`, an edge program, to the type that the kernels take.

    Before a model is quantised, the Arm backend of ExecuTorch 1.5.1 makes every int64 input an int32, for the sake
    of the NPU. An operator that then stays on the CPU gets those: the program ends with error 0x12 in its first
    inference.
    """
    import torch
    from executorch.exir.dialects._ops import ops

    aten = ops.edge.aten
    targets = {aten.gather.default, aten.scatter.src, aten.scatter.value, aten.scatter_add.default}
    for node in [node for node in program.graph.nodes if node.target in targets]:
        index = node.args[_INDEX]
        if index.meta["val"].dtype == torch.int64:
            continue
        value = index.meta["val"].to(torch.int64)
        options = {"dtype": torch.int64, "dim_order": list(value.dim_order())}
        with program.graph.inserting_before(node):
            cast = program.graph.call_function(
                ops.edge.dim_order_ops._to_dim_order_copy.default, (index,), options
            )
        cast.meta = {**node.meta, "val": value}
        node.update_arg(_INDEX, cast)
    program.graph_module.recompile()
