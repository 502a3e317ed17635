"""Slices of tensors of five and more axes, at which Vela's compiler for Ethos-U55 and Ethos-U65 crashes.

Vela 5.1.0 cuts an operation on several batches into one for each. Where it reads a part of a tensor of more than
four axes, through a RESHAPE, the pieces are cut again without end, until the stack overflows. Windowed attention
(a Swin transformer) asks for that: query, key and value are the parts of one tensor (3, windows, heads, …).

So such a part is taken of the same tensor with three axes: those before the cut one, itself, and those behind.
"""

from __future__ import annotations

import math
from typing import Any

_MOST_AXES = 4


def repair(graph: Any) -> bool:
    """Take parts of tensors of many axes from the same values with three axes."""
    from executorch.backends.arm.tosa.specification import get_context_spec

    found = [node for node in graph.nodes if _is_deep(node)] if get_context_spec().is_U55_subset else []
    for node in found:
        _flatten(graph, node)
    return bool(found)


def _is_deep(node: Any) -> bool:
    from executorch.exir.dialects._ops import ops

    return bool(node.target == ops.edge.aten.slice_copy.Tensor and node.meta["val"].dim() > _MOST_AXES)


def _flatten(graph: Any, node: Any) -> None:
    """Let `node` cut the second of three axes, between two changes of shape."""
    from executorch.exir.dialects._ops import ops

    source, axis, shape = node.args[0], node.args[1], node.meta["val"].shape
    whole = source.meta["val"].shape
    axis %= len(whole)
    flat = [math.prod(whole[:axis]), whole[axis], math.prod(whole[axis + 1 :])]
    with graph.inserting_before(node):
        joined = graph.call_function(ops.edge.aten.view_copy.default, (source, flat))
    with graph.inserting_after(node):
        restored = graph.call_function(ops.edge.aten.view_copy.default, (node, list(shape)))
    joined.meta, restored.meta = dict(source.meta), dict(node.meta)
    node.replace_all_uses_with(restored, delete_user_cb=lambda user: user is not restored)
    node.args = (joined, 1, *node.args[2:])
