"""Transposes in the graph that Vela gets: it would lose outputs, channels or look-up tables by merging them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.graph_passes import (
    bring_forward,
    first_transpose,
    tosa_operator,
    unchanged_copy,
)

_FORGOTTEN = ("MATMUL", "TRANSPOSE")


def separate_outputs(graph: Any) -> bool:
    """Separate the outputs of a TOSA graph from the transposes that read them.

    Vela 5.1.0 merges a TRANSPOSE into the TRANSPOSE, or the reshaping to the same shape, that it reads from, also
    where the first result is an output of the graph: its payload then has one output fewer than the program.
    ExecuTorch makes such pairs wherever a feature map in NCHW order is both returned and used by a further layer in
    NHWC order: in the taps of a backbone, and around operators that stay on the CPU. Vela's MATMUL merges likewise
    on Ethos-U85: caches of attention are such outputs. An output that is an unchanged input of the graph, Vela
    refuses.

    So each TRANSPOSE that reads from an output, perhaps through further ones, reads instead what the output was made
    of, a MATMUL reads from a second TRANSPOSE like the returned one, and an input that is returned gets a copy.
    """
    # Both look at the whole graph, so neither may be left out by the other's result.
    changed = any([_reroot_all(graph), _separate_matmuls(graph), _copy_inputs(graph)])
    if changed:
        graph.eliminate_dead_code()
    return changed


def _reroot_all(graph: Any) -> bool:
    outputs = frozenset(graph.output_node().all_input_nodes)
    transposes = [node for node in graph.nodes if tosa_operator(node) == "TRANSPOSE"]
    return sum(_reroot(graph, node, outputs) for node in transposes) > 0


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
        if tosa_operator(output) != "TRANSPOSE" or not readers:
            continue
        with graph.inserting_before(output):
            twin = graph.node_copy(output)
        for reader in readers:
            reader.replace_input_with(output, twin)
        changed = True
    return changed


def _leads_to_matmul(node: Any) -> bool:
    """Whether the values of `node` reach a MATMUL as they are, be it in another shape."""
    if tosa_operator(node) in ("RESHAPE", "IDENTITY"):
        return any(map(_leads_to_matmul, node.users))
    return tosa_operator(node) == "MATMUL"


def _copy_inputs(graph: Any) -> bool:
    """Return a copy of each input that the graph returns."""
    from executorch.exir.dialects._ops import ops

    returned = [node for node in graph.output_node().all_input_nodes if node.op == "placeholder"]
    for node in returned:
        with graph.inserting_before(graph.output_node()):
            kept = graph.call_function(ops.backend.tosa.IDENTITY.default, (node,))
        kept.meta = dict(node.meta)
        graph.output_node().replace_input_with(node, kept)
    return bool(returned)


def hoist_activations(graph: Any) -> bool:
    """Move activations that make a part of a tensor from behind a TRANSPOSE to before it.

    For Ethos-U85, Vela 5.1.0 makes one NPU operation of a layer with weights, a TRANSPOSE behind it and a CLAMP or
    TABLE behind that. Where the last of them makes a part of a larger tensor, an input of a CONCAT or the middle of
    a PAD, Vela takes the last axis of the transposed part for the layer's channels. The weights are then encoded for
    too few channels, or for too many: with what lies behind them in Vela's memory. Ethos-U55 and Ethos-U65 transpose
    in operations of their own.
    """
    changed = False
    for activation in list(graph.nodes):
        if tosa_operator(activation) in ("CLAMP", "TABLE") and _makes_part(activation):
            moved = _transposed(activation.args[0])
            if moved is not None:
                bring_forward(activation, moved)
                changed = True
    return changed


def _makes_part(node: Any) -> bool:
    """Whether the values of `node` become a part of a larger tensor."""
    return any(
        tosa_operator(user) in ("CONCAT", "PAD")
        or (tosa_operator(user) in ("IDENTITY", "RESHAPE") and _makes_part(user))
        for user in node.users
    )


def _transposed(node: Any) -> Any | None:
    """The first of the operators that bring values to `node` in another order, or None: only those that nothing else
    reads, and that move the channels, are part of the layer's operation."""
    found = None
    while len(node.users) == 1:
        if tosa_operator(node) == "TRANSPOSE":
            found = node if node.args[1][-1] != len(node.args[1]) - 1 else found
        elif tosa_operator(node) not in ("IDENTITY", "RESHAPE"):
            break
        node = node.args[0]
    return found


# Vela 4.5.0 to 5.2.0 makes one operation of a TRANSPOSE of int8 values and the TABLE behind it, and forgets what it
# is:
#
# - It pads the operation as if the transposed result were read in its own order: with as many columns as are missing
#   then, though its window is one element wide. What the NPU makes of windows beyond their input is not documented.
# - On Ethos-U55-32 and -64, which have 16 KiB of shared RAM and no part of it set aside for look-up tables, it plans
#   the shared RAM as for a TRANSPOSE alone. The table is loaded behind the end of the shared RAM, and accumulators
#   lie where it is looked for. Moreover, it takes tables to be there still after a TRANSPOSE or MATMUL. What uses
#   one of them again looks into what is left of the accumulators.
#
# A TABLE looks at single values, so it can as well come before the TRANSPOSE. And a CLAMP to all values of the type
# before each TABLE of those that have the same table makes Vela load it anew. No value changes.


def _tables(graph: Any) -> list[Any]:
    return [node for node in graph.nodes if tosa_operator(node) == "TABLE"]


def hoist_tables(graph: Any) -> bool:
    """Move tables of int8 values from behind a TRANSPOSE to before it."""
    import torch

    narrow = [table for table in _tables(graph) if table.args[0].meta["val"].dtype == torch.int8]
    found = [(table, moved) for table in narrow if (moved := first_transpose(table.args[0])) is not None]
    for table, moved in found:
        bring_forward(table, moved)
    return bool(found)


def reload_tables(graph: Any) -> bool:
    """Put a CLAMP before tables that are used again, where something may lie between that Vela does not think of."""
    if not any(tosa_operator(node) in _FORGOTTEN for node in graph.nodes):
        return False
    users = defaultdict(list)
    for table in _tables(graph):
        users[table.args[1]].append(table)
    found = [table for alike in users.values() if len(alike) > 1 for table in alike]
    for table in found:
        with graph.inserting_before(table):
            same = unchanged_copy(graph, table.args[0])
        table.replace_input_with(table.args[0], same)
    return bool(found)
