"""Outputs of a delegate that Vela would lose.

Vela 5.1.0 merges a TRANSPOSE into the TRANSPOSE, or the reshaping to the same shape, that it reads from, also where
the first result is an output of the graph: its payload then has one output fewer than the program. ExecuTorch makes
such pairs wherever a feature map in NCHW order is both returned and used by a further layer in NHWC order: in the
taps of a backbone, and around operators that stay on the CPU. An output that is an unchanged input of the graph,
Vela refuses.

So each TRANSPOSE that reads from an output, perhaps through further ones, reads instead what the output was made of,
and an input that is returned gets a copy. Vela's MATMUL has a transpose of its own, which it merges likewise on
Ethos-U85: caches of attention are such outputs. A MATMUL reads from a second TRANSPOSE like the one that is returned.
No value changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import operator


def repair(graph: Any) -> bool:
    """Separate the outputs of a TOSA graph from the transposes that read them."""
    # Both look at the whole graph, so neither may be left out by the other's result.
    changed = any([_reroot_all(graph), _separate_matmuls(graph), _copy_inputs(graph)])
    if changed:
        graph.eliminate_dead_code()
    return changed


def _outputs(graph: Any) -> frozenset[Any]:
    """The nodes whose values the graph returns."""
    return frozenset(graph.output_node().all_input_nodes)


def _reroot_all(graph: Any) -> bool:
    from executorch.exir.dialects._ops import ops

    outputs, changed = _outputs(graph), False
    for node in list(graph.nodes):
        if node.target == ops.backend.tosa.TRANSPOSE.default:
            changed |= _reroot(graph, node, outputs)
    return changed


def _reroot(graph: Any, reader: Any, outputs: frozenset[Any]) -> bool:
    """Let the transpose `reader` read what the output behind it is made of; False when there is no output."""
    from executorch.exir.dialects._ops import ops

    source, order, through_output = reader.args[0], list(reader.args[1]), False
    for copied, permutation in _same_values(source):
        through_output |= copied in outputs
        order = [permutation[axis] for axis in order]
        source = copied.args[0]
    if not through_output:
        return False
    if order != sorted(order):
        reader.args = (source, order)
        return True
    if reader in outputs:
        with graph.inserting_before(reader):
            kept = graph.call_function(ops.backend.tosa.IDENTITY.default, (source,))
        kept.meta = dict(reader.meta)
        graph.output_node().replace_input_with(reader, kept)
    reader.replace_all_uses_with(source)
    return True


def _same_values(node: Any) -> Iterator[tuple[Any, Sequence[int]]]:
    """`node` and what it was made of, as far as the values stay the same, each with the order of its axes."""
    from executorch.exir.dialects._ops import ops

    tosa = ops.backend.tosa
    while node.op == "call_function":
        axes = range(node.meta["val"].dim()) if node.target != tosa.TRANSPOSE.default else node.args[1]
        same_shape = (
            node.target == tosa.RESHAPE.default and node.meta["val"].shape == node.args[0].meta["val"].shape
        )
        if node.target not in (tosa.TRANSPOSE.default, tosa.IDENTITY.default) and not same_shape:
            return
        yield node, axes
        node = node.args[0]


def _separate_matmuls(graph: Any) -> bool:
    """Let each MATMUL that reads a transposed output, perhaps in another shape, read a transpose of its own."""
    changed = False
    for output in graph.output_node().all_input_nodes:
        readers = [user for user in output.users if _leads_to_matmul(user)]
        if operator(output) != "TRANSPOSE" or not readers:
            continue
        with graph.inserting_before(output):
            twin = graph.node_copy(output)
        for reader in readers:
            reader.replace_input_with(output, twin)
        changed = True
    return changed


def _leads_to_matmul(node: Any) -> bool:
    """Whether the values of `node` reach a MATMUL as they are, be it in another shape."""
    if operator(node) in ("RESHAPE", "IDENTITY"):
        return any(map(_leads_to_matmul, node.users))
    return operator(node) == "MATMUL"


def _copy_inputs(graph: Any) -> bool:
    """Return a copy of each input that the graph returns."""
    from executorch.exir.dialects._ops import ops

    returned = [node for node in _outputs(graph) if node.op == "placeholder"]
    for node in returned:
        with graph.inserting_before(graph.output_node()):
            kept = graph.call_function(ops.backend.tosa.IDENTITY.default, (node,))
        kept.meta = dict(node.meta)
        graph.output_node().replace_input_with(node, kept)
    return bool(returned)
