"""Keeps a buffer's new value that is the old value of a buffer.

ExecuTorch 1.5.1 writes new values back by ``copy_`` at the end of a program, but not where the value is a placeholder
of a buffer: it takes such a value for one that was written in place. ``self.a.copy_(self.b)`` is lost, and so is a
reset to a constant. If the value is a view of a buffer, the program reads the view only after it has written that
buffer.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from ethosu_sdk.aot.graph.fx import operator_name

_VIEWS = ("aten::view_copy", "aten::view", "aten::alias", "aten::alias_copy", "aten::detach")


def repair(program: Any) -> None:
    """Copy such values in `program`, an edge program, before anything is written back."""
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

    root = _root(node)
    buffer = signature.inputs_to_buffers.get(getattr(root, "name", None))
    if buffer is None:
        return False
    if row.kind is OutputKind.BUFFER_MUTATION:
        return node is not root or buffer != row.target
    return buffer in signature.buffers_to_mutate.values()


def _root(node: Any) -> Any:
    while operator_name(node) in _VIEWS:
        node = node.args[0]
    return node
