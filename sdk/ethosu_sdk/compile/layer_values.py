"""A model's layers in PyTorch, value by value, what quantisation costs them, and which tensors of the delegates
hold them.

Quantised values are those of the program that is lowered. The float ones are seen by the observers of the model that
is prepared for quantisation, before it is converted: there it computes with its own weights, decomposed and with
batch normalisation folded as it will be quantised. The quantised model rounds as the NPU does, where that can be
computed (:mod:`ethosu_sdk.compile.npu_rounding`): differences from PyTorch's own rounding add up in a deep model
until they hide a fault. Each node that becomes a TOSA tensor has its history with it (``from_node``), so that the two
are joined by names.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import compile_facts as facts
from ethosu_sdk.compile.graphs import execution, fx, tensor_arrays, tosa_graph
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.graphs.tensor_arrays import Array
from ethosu_sdk.compile.model_state import InitialState
from ethosu_sdk.compile.npu_rounding import npu_replacements
from ethosu_sdk.compile.vela_capture import VelaCapture

Tensors = tuple[Any, ...]
Weights = dict[tuple[str, int], Array]  # by the node that reads them, and the place of the argument

_NOT_PREPARED = (
    "there is no float model: it came quantised, or has branches, each of which is quantised by itself"
)
_NOT_QUANTISED = "the model is not quantised"
_LEAST_TIMES = 2  # the range of the value that sets a scale, of that of the one that suffers from it
_LEAST_AXES = 2  # of weights; biases have one
# Operators of PyTorch that only move values, without their namespace and overload.
_MOVES = frozenset(
    (
        *("alias", "cat", "chunk", "clone", "concat", "constant_pad_nd", "contiguous", "copy", "expand"),
        *("flatten", "flip", "getitem", "index_select", "movedim", "narrow", "pad", "permute"),
        *("pixel_shuffle", "pixel_unshuffle", "repeat", "reshape", "roll", "select", "slice", "split"),
        *("split_with_sizes", "squeeze", "stack", "t", "tile", "transpose", "unbind", "unflatten"),
        *("unfold", "unsafe_split", "unsqueeze", "view"),
    )
)


class LayerValues:
    """The values of one execution, collected while the model is compiled."""

    def __init__(self, request: facts.LayerRequest, examples: Tensors) -> None:
        """`examples` are the model's example inputs. InputError for inputs that do not fit them."""
        self._folder = request.folder
        self._inputs = examples
        if request.inputs is not None:
            given = tensor_arrays.read_inputs(request.inputs)
            tensor_arrays.check_inputs(
                given, [tensor_arrays.as_numpy(item) for item in examples], request.inputs
            )
            self._inputs = tensor_arrays.tensors_like(given, examples)
        self._float: dict[str, Array] = {}
        self._weights: Weights = {}
        self._prepared: Any = None  # the graph of that model, whose id nodes of later ones have
        self._not_seen = _NOT_PREPARED

    def take_float(self, prepared: Any, state: InitialState) -> None:
        """Execute the model that is prepared for quantisation from `state` on, as the program begins. Its observers
        and its own state, which calibration changed, stay as they are."""
        self._prepared = prepared.graph
        self._weights = _weights_before(prepared)
        try:
            with execution.state_kept(prepared):
                state.restore(prepared)
                self._float = _observed(prepared, self._inputs)
        except InputError as error:
            self._not_seen = error.message

    def finish(
        self, program: Any, cpu_calls: Iterable[str], captures: Sequence[VelaCapture], finder: SourceFinder
    ) -> None:
        """Execute the lowered `program`, which calls the operators `cpu_calls` on the CPU, and fill the folder."""
        for index, tensor in enumerate(self._inputs):
            np.save(self._folder / f"input{index}.npy", tensor_arrays.as_numpy(tensor))
        module = program.module(check_guards=False)
        quantised, ties_up = _quantised(module, self._inputs, cpu_calls)
        nodes = {node.name: node for node in program.graph.nodes}
        places = {name: index for index, name in enumerate(quantised)}
        shared = _shared_scales(nodes, places, quantised)
        losses = self._weight_losses(module, nodes)
        values: list[facts.LayerValue] = []
        for index, (name, array) in enumerate(quantised.items()):
            np.save(self._folder / f"quantised{index}.npy", array)
            source = nodes[name].args[0]
            scale, zero_point, _, _, dtype = nodes[name].args[1:6]
            before = self._before(source, array)
            if before is not None:
                np.save(self._folder / f"float{index}.npy", before)
            called = source.op == "call_function"
            chain = _operator_chain(source)
            values.append(
                facts.LayerValue(
                    node=source.name,
                    operator=str(source.target).removesuffix(".default") if called else source.op,
                    scale=float(scale),
                    zero_point=int(zero_point),
                    dtype=str(dtype).removeprefix("torch."),
                    has_float=before is not None,
                    source=finder.find(source.meta),
                    operands=_value_operands(nodes[name], places),
                    shared=shared.get(index),
                    weights=next((losses[node.name] for node in chain if node.name in losses), None),
                )
            )
        missing = {} if values else {facts.QUANTISED: _NOT_QUANTISED}
        if not self._float:
            missing[facts.FLOAT] = self._not_seen if values else _NOT_QUANTISED
        facts.LayerFacts(
            values=tuple(values),
            tensors={
                capture.payload_sha256: _tensor_origins(program.graph, capture, places)
                for capture in captures
            },
            missing=missing,
            ties_up=ties_up,
            outputs=_value_outputs(program, nodes, places),
        ).write(self._folder)

    def _weight_losses(self, module: Any, nodes: Mapping[str, Any]) -> dict[str, facts.WeightLoss]:
        """What quantisation costs the weights that the quantised model's `nodes` read, by their names."""
        found: dict[str, facts.WeightLoss] = {}
        if self._prepared is None:
            return found
        for (name, place), array in _weights_after(module).items():
            reader = _counterpart(self._prepared, nodes[name])
            exact = None if reader is None else self._weights.get((reader.name, place))
            if exact is not None and exact.shape == array.shape:
                wide = exact.astype(np.float64)
                power, noise = (float(np.sum(np.square(part))) for part in (wide, array - wide))
                ratio = 10 * math.log10(power / noise) if power and noise else None
                found[name] = facts.WeightLoss(elements=array.size, sqnr_db=ratio)
        return found

    def _before(self, source: Any, array: Array) -> Array | None:
        """What an observer saw in the place where the value of `source` is quantised."""
        node = None if self._prepared is None else _counterpart(self._prepared, source)
        found = None if node is None else self._float.get(node.name)
        return found if found is not None and found.shape == array.shape else None


def _observed(prepared: Any, inputs: Tensors) -> dict[str, Array]:
    import torch

    found: dict[str, Array] = {}

    def observe(node: Any, _observer: Any, value: Any) -> Any:
        source = node.args[0]
        if isinstance(value, torch.Tensor) and source.op != "get_attr":
            found[source.name] = tensor_arrays.as_numpy(value)
        return value

    _interpret(prepared, inputs, observe=observe)
    return found


def _quantised(module: Any, inputs: Tensors, cpu_calls: Iterable[str]) -> tuple[dict[str, Array], bool]:
    """The values that `module` quantises, those of weights left out, by the names of the quantisations; and whether
    they are rounded as on the NPU."""
    names = {
        node.name for node in module.graph.nodes if fx.is_quantize(node) and node.args[0].op != "get_attr"
    }
    try:
        with (
            execution.state_kept(module),
            execution.targets_replaced(module, npu_replacements(module, cpu_calls)),
        ):
            return _results(module, inputs, names), True
    except InputError:  # an operator that has no float64
        with execution.state_kept(module):
            return _results(module, inputs, names), False


def _results(module: Any, inputs: Tensors, names: Collection[str]) -> dict[str, Array]:
    found: dict[str, Array] = {}

    def note(node: Any, result: Any) -> None:
        if node.name in names:
            found[node.name] = tensor_arrays.as_numpy(result)

    _interpret(module, inputs, note=note)
    return found


def _interpret(graph_module: Any, inputs: Tensors, **hooks: Callable[..., Any]) -> None:
    try:
        execution.run_graph(graph_module, inputs, **hooks)
    except Exception as error:
        raise InputError(f"the model failed in PyTorch, node by node: {plain_text.error(error)}") from error


def _value_operands(quantisation: Any, places: Mapping[str, int]) -> tuple[int, ...]:
    """The values, numbered by `places`, that the value of a `quantisation` is computed from."""
    rows = (node.args[0] for node in _operator_chain(quantisation.args[0]) if fx.is_dequantize(node))
    return tuple(dict.fromkeys(places[row.name] for row in rows if row.name in places))


def _operator_chain(node: Any) -> Iterator[Any]:
    """The operators up to `node`, the last one first, and the dequantisations from which they start."""

    def before(current: Any) -> Iterable[Any]:
        return () if fx.is_quantize(current) or fx.is_dequantize(current) else current.all_input_nodes

    return (current for current in fx.reachable(node, before) if not fx.is_quantize(current))


def _value_outputs(
    program: Any, nodes: Mapping[str, Any], places: Mapping[str, int]
) -> tuple[int | None, ...]:
    """The value, numbered by `places`, that each output of an ``ExportedProgram`` is, quantised or not."""
    found = []
    for name in program.graph_signature.user_outputs:
        node = nodes.get(name)
        if node is not None and fx.is_dequantize(node):
            node = node.args[0]
        found.append(None if node is None else places.get(node.name))
    return tuple(found)


class _Groups:
    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self.joining: dict[int, str] = {}

    def of(self, value: int) -> int:
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


def _shared_scales(
    nodes: Mapping[str, Any], places: Mapping[str, int], stored: Mapping[str, Array]
) -> dict[int, facts.SharedScale]:
    """The values that use much less of their type's range than another, whose scale they have to share, by number. A
    concatenation, for example, gives all of its operands one scale: that of the widest. `nodes` are the
    quantisations, `stored` the values, by the names that `places` numbers in order."""
    groups, moved = _Groups(), set[int]()
    rows = [nodes[name] for name in places]
    for place, node in enumerate(rows):
        form = node.args[1:3]
        same = [other for other in _value_operands(node, places) if rows[other].args[1:3] == form]
        if same:
            moved.add(place)
            name = fx.operator_name(node.args[0]).rpartition("::")[2]
            groups.join([place, *same], name if len(same) > 1 else "")
    used = [int(stored[name].max()) - int(stored[name].min()) + 1 for name in places]
    widest: dict[int, int] = {}
    for place in sorted(set(range(len(rows))) - moved, key=lambda place: used[place]):
        widest[groups.of(place)] = place
    return {
        place: facts.SharedScale(wide, groups.joining[group])
        for place in range(len(rows))
        if (group := groups.of(place)) in groups.joining
        and (wide := widest.get(group, place)) != place
        and used[wide] >= _LEAST_TIMES * used[place]
    }


def _weights_before(prepared: Any) -> Weights:
    found: Weights = {}
    for node in prepared.graph.nodes:
        for place, observed in enumerate(node.args):
            is_call = getattr(observed, "op", "") == "call_module"
            if is_call and execution.observer_of(prepared, observed) is not None:
                source = observed.args[0]
                if source.op == "get_attr":
                    _take(found, node, place, _attribute(prepared, source))
    return found


def _weights_after(module: Any) -> Weights:
    found: Weights = {}
    for node in module.graph.nodes:
        for place, source in enumerate(node.args):
            if (
                str(getattr(source, "target", "")) in (fx.DEQUANTIZE, fx.DEQUANTIZE_CHANNELS)
                and source.args[0].op == "get_attr"
            ):
                arguments = (
                    _attribute(module, item) if getattr(item, "op", "") == "get_attr" else item
                    for item in source.args
                )
                _take(found, node, place, source.target(*arguments, **source.kwargs))
    return found


def _attribute(module: Any, node: Any) -> Any:
    found = module
    for part in node.target.split("."):
        found = getattr(found, part)
    return found


def _take(found: Weights, node: Any, place: int, value: Any) -> None:
    if value.dim() >= _LEAST_AXES:
        found[node.name, place] = tensor_arrays.as_numpy(value)


def _tensor_origins(
    graph: Any, capture: VelaCapture, places: Mapping[str, int]
) -> dict[str, facts.TensorOrigin]:
    """The origins of the tensors of `capture`'s graph by name; `places` number the quantisations of `graph`."""
    nodes = {node.name: node for node in graph.nodes}
    found = {}
    for name, meta in capture.nodes.items():
        node = next((nodes[n] for n, key in _history(meta) if key == id(graph) and n in nodes), None)
        if node is None:
            values = tuple(_same_quantisation(meta, nodes, places))
            reason = "" if values else "ExecuTorch does not tell which node of the model it comes from"
            found[name] = facts.TensorOrigin(None, values, reason)
            continue
        following = [row for row in _following(node) if row.name in places]
        values = tuple(places[row.name] for row in following)
        certain = len(following) == 1 and _is_direct(node, following[0])
        found[name] = facts.TensorOrigin(
            node.name, values, "" if values else "the model quantises no value there", certain
        )
    operands = {places[name]: _value_operands(nodes[name], places) for name in places}
    return _without_intermediate(_by_inputs(found, operands, capture.tosa), capture.tosa)


def _following(node: Any) -> list[Any]:
    """The quantisations of a node's value: its users, or those behind operators that are fused with it."""

    def fused(current: Any) -> Iterable[Any]:
        users = () if fx.is_quantize(current) else current.users
        return [user for user in users if fx.is_quantize(user) or len(user.all_input_nodes) == 1]

    return [current for current in fx.reachable(node, fused) if fx.is_quantize(current)]


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
    return node.op == "call_function" and not _moves_only(node)


def _moves_only(node: Any) -> bool:
    name = fx.operator_name(node).rpartition("::")[2] or getattr(node.target, "__name__", "")
    return name.removesuffix("_copy").rstrip("_") in _MOVES


def _same_quantisation(
    meta: Mapping[str, Any], nodes: Mapping[str, Any], places: Mapping[str, int]
) -> list[int]:
    """The values that are quantised as a tensor of unknown origin is."""
    rows = [row for row in (meta.get("output_qparams") or {}).values() if isinstance(row.scale, float)]
    return [
        place
        for name, place in places.items()
        for row in rows[:1]
        if math.isclose(nodes[name].args[1], row.scale, rel_tol=1e-6) and nodes[name].args[2] == int(row.zp)
    ]


def _by_inputs(
    found: Mapping[str, facts.TensorOrigin], operands: Mapping[int, Sequence[int]], tosa: bytes
) -> dict[str, facts.TensorOrigin]:
    """`found`, where a tensor of unknown origin keeps those values that the model computes from what the tensor is
    computed from in the graph: with one alone, it is sure."""
    makers = {name: row.inputs for row in tosa_graph.read_operators(tosa) for name in row.outputs}
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
    name: str, makers: Mapping[str, Sequence[str]], found: Mapping[str, facts.TensorOrigin]
) -> set[int]:
    """The values of the nearest tensors that have some, among those that `name` is computed from."""

    def held(tensor: str) -> Sequence[int]:
        return found[tensor].values if tensor in found and tensor != name else ()

    before = fx.reachable(name, lambda tensor: () if held(tensor) else makers.get(tensor, ()))
    return {value for tensor in before for value in held(tensor)}


def _without_intermediate(
    found: Mapping[str, facts.TensorOrigin], tosa: bytes
) -> dict[str, facts.TensorOrigin]:
    """`found`, without the values of tensors from which another one of the same values is computed. A layer whose
    activation is an operator of its own has two: the last one is the layer's."""
    operators = tosa_graph.read_operators(tosa)
    users: dict[str, list[tosa_graph.TosaOperator]] = {}
    for row in operators:
        for name in row.inputs:
            users.setdefault(name, []).append(row)
    narrow = tosa_graph.narrow_tensors(tosa)
    result = dict(found)
    for name, origin in found.items():
        later = _later(name, origin, found, users, narrow) if origin.values else None
        if later is not None:
            result[name] = facts.TensorOrigin(
                origin.node, (), f"an intermediate step: {later} is what holds the model's value"
            )
    return result


def _later(
    name: str,
    origin: facts.TensorOrigin,
    found: Mapping[str, facts.TensorOrigin],
    users: Mapping[str, Sequence[tosa_graph.TosaOperator]],
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
                anew = computed or user.name not in tosa_graph.MOVE_NAMES
                if anew and output in narrow:
                    return output
                pending.append((output, anew))
    return None


def _history(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(name, id of the graph) of the nodes that a node was made from, the latest first."""
    pending = list(meta.get("from_node") or ())
    while pending:
        source = pending.pop(0)
        yield source.name, source.graph_id
        pending = [*source.from_node, *pending]


def _counterpart(graph: Any, node: Any) -> Any | None:
    """The node of an earlier `graph` from which `node` was made, by its history; None where there is none."""
    named = {row.name: row for row in graph.nodes}
    if node.op == "placeholder":
        return named.get(node.name)
    if node.target is operator.getitem:
        whole = _counterpart(graph, node.args[0])
        parts = () if whole is None else whole.users
        same = (row for row in parts if (row.target, row.args[1:]) == (node.target, node.args[1:]))
        return next(same, None)
    return next(
        (named[name] for name, key in _history(node.meta) if key == id(graph) and name in named), None
    )
