"""Where two stages begin to differ: the operator of a graph whose value the other stage never has, although it has
all values that the operator is computed from."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.comparison.chain import comparison
from ethosu_sdk.aot.graph import interpreting, tensors
from ethosu_sdk.aot.graph.fx import is_mutable, operator_name
from ethosu_sdk.aot.graph.interpreting import Values
from ethosu_sdk.aot.graph.source_lines import SourceFinder


def find(graph_module: Any, values: Values, other: Values, output: int, finder: SourceFinder) -> str:
    """Words for the operator of `graph_module`, whose values are `values`, at which `other` stops to have them.

    Searched from its output number `output` backwards. Empty when no operator can be named.
    """
    from torch.utils import _pytree

    results = [
        node for node in _pytree.tree_leaves(graph_module.graph.output_node().args) if hasattr(node, "op")
    ]
    if output >= len(results):
        return ""
    lost = _deepest(graph_module, results[output], values, other)
    if lost is None:
        return ""
    writer = _writer(graph_module, lost, values)
    return words(writer or lost, finder)


def words(node: Any, finder: SourceFinder) -> str:
    """An operator and its line: ``aten::copy_ (model.py, line 12)``."""
    place = finder.place(node.meta)
    name = operator_name(node) or str(node.target)
    return f"{name} ({place})" if place else name


def _deepest(graph_module: Any, node: Any, values: Values, other: Values) -> Any | None:
    """The first lost node on the ways back from `node` through lost ones; None when it is not lost itself."""
    pending, lost = [node], set()
    while pending:
        current = pending.pop()
        if current in lost or current.op != "call_function" or not _is_lost(current, values, other):
            continue
        lost.add(current)
        pending += current.all_input_nodes
    return next((current for current in graph_module.graph.nodes if current in lost), None)


def _is_lost(node: Any, values: Values, other: Values) -> bool:
    value = values.by_node.get(node.name)
    return any(not other.hold(leaf, _close) for leaf in interpreting.tensors_of(value))


def _close(one: Any, other: Any) -> bool:
    return comparison.is_close(tensors.as_numpy(one), tensors.as_numpy(other))


def _writer(graph_module: Any, node: Any, values: Values) -> Any | None:
    """The first operator that writes to the memory of a node's value."""
    places = {
        leaf.untyped_storage().data_ptr() for leaf in interpreting.tensors_of(values.by_node[node.name])
    }
    for user in graph_module.graph.nodes:
        if not is_mutable(user) or not user.all_input_nodes:
            continue
        written = values.by_node.get(user.all_input_nodes[0].name)
        if any(leaf.untyped_storage().data_ptr() in places for leaf in interpreting.tensors_of(written)):
            return user
    return None
