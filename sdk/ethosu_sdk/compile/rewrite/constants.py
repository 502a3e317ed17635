"""Parts of a program that depend on no input and no state, whatever their operators, as constants.

PyTorch's and ExecuTorch's own folding is for modules with attributes and for graphs of edge operators, and folds all
that it can: weights ahead of the layer whose channels the quantiser knows, and a small tensor that is expanded to a
large one.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.compile.graphs.fx import add_constant, is_mutable, stored_values
from ethosu_sdk.compile.rewrite.before_quantisation import Goal

_MOST_GROWTH_BYTES = 64 * 1024  # of a constant over those that it is made of
_LAYERS = ("aten.conv", "aten.linear.")
_WEIGHT_AND_BIAS = (1, 2)
# What torch takes for a change: a literal that is detached, and checks that hold for the constant at hand.
_HARMLESS = ("aten.detach_.default", "aten._assert_tensor_metadata.default")
# What is a constant as it is, and costs the program nothing.
_FILLS = ("aten.full.default", "aten.scalar_tensor.default")


def fold_constants(program: Any, goal: Goal) -> list[tuple[dict[str, Any], str]]:
    """Store what the constant parts of `program` give, in place; the meta data and operators of their last nodes.

    Weights that only change their shape stay with their layer, and so do computed ones, of which the quantiser takes
    each channel for itself. A constant that is an output stays too: a program gives no constants.
    """
    values = stored_values(program, buffers=not goal.shares_state)
    known = set(values)
    for node in program.graph.nodes:
        if node.op == "call_function" and _is_pure(node) and known.issuperset(node.all_input_nodes):
            known.add(node)
    folded = [(node, _value(node, values)) for node in _last_of_parts(program, known)]
    made = [(dict(node.meta), str(node.target)) for node, _ in folded]
    for node, value in folded:
        node.replace_all_uses_with(add_constant(program, f"constant_{node.name}", value))
    if made:
        for node in reversed(list(program.graph.nodes)):
            if node in known and node.op == "call_function" and not node.users:
                program.graph.erase_node(node)
    return made


def _is_pure(node: Any) -> bool:
    """Whether a call gives the same for the same arguments each time, and writes to none of them."""
    if str(node.target) in _HARMLESS:
        return True
    inner = any(source.op == "get_attr" for source in node.all_input_nodes)  # branches and other graphs
    return not (inner or node.is_impure() or is_mutable(node))


def _last_of_parts(program: Any, known: set[Any]) -> list[Any]:
    """Of the constant nodes `known` those whose values are to be stored: what others than constants take."""
    sources = _sources(program, known)
    needed: set[Any] = set()
    folded = []
    for node in reversed(list(program.graph.nodes)):
        if node not in known or node.op == "placeholder":
            needed.update(node.all_input_nodes)
        elif node in needed and not any(_takes_as_weight(user, node) for user in node.users):
            if _may_be_stored(node, sources[node], known):
                folded.append(node)
            else:
                needed.update(node.all_input_nodes)
    return folded[::-1]


def _sources(program: Any, known: set[Any]) -> dict[Any, set[Any]]:
    """The stored tensors that a constant is made of, for each."""
    found: dict[Any, set[Any]] = {}
    for node in program.graph.nodes:
        if node in known:
            parts = (found[source] for source in node.all_input_nodes)
            found[node] = {node} if node.op == "placeholder" else set().union(*parts)
    return found


def _may_be_stored(node: Any, sources: set[Any], known: set[Any]) -> bool:
    import torch

    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or str(node.target) in _FILLS or _is_shaped_weight(node, known):
        return False
    if any(user.op == "output" for user in node.users):
        return False
    freed = sum(_size(source) for source in sources if known.issuperset(source.users))
    return bool(_size(node) - freed <= _MOST_GROWTH_BYTES)


def _size(node: Any) -> int:
    return int(node.meta["val"].nbytes)


def _takes_as_weight(layer: Any, node: Any) -> bool:
    positions = [index for index, argument in enumerate(layer.args) if argument is node]
    return str(layer.target).startswith(_LAYERS) and any(index in _WEIGHT_AND_BIAS for index in positions)


def _is_shaped_weight(node: Any, known: set[Any]) -> bool:
    """Whether `node` gives the floating-point values of one stored tensor in another shape."""
    while node.op == "call_function":
        schema = getattr(node.target, "_schema", None)
        source = node.all_input_nodes[0] if len(node.all_input_nodes) == 1 else None
        if schema is None or source is None or source not in known:
            return False
        same_type = source.meta["val"].dtype == node.meta["val"].dtype
        if schema.returns[0].alias_info is None or not same_type:
            return False
        node = source
    return bool(node.meta["val"].is_floating_point())


def _value(node: Any, values: dict[Any, Any]) -> Any:
    """What `node` gives, for the `values` of those that are known."""
    import torch

    if node not in values:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda row: _value(row, values))
        values[node] = node.target(*args, **kwargs)
    return values[node]
