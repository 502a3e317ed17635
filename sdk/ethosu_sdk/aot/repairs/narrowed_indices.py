"""Converts indices to the type that the kernels accept.

Before a model is quantised, the Arm backend of ExecuTorch 1.5.1 makes every int64 input an int32, for the sake of the
NPU. An operator that then stays on the CPU gets those, and the kernels of `gather` and `scatter` take int64 alone:
the program ends with error 0x12 in its first inference. So they are cast back.
"""

from __future__ import annotations

from typing import Any

_INDEX = 2  # its place among the arguments of each
_OPERATORS = ("gather.default", "scatter.src", "scatter.value", "scatter_add.default")


def repair(graph: Any) -> bool:
    """Cast what is not int64 among the indices of `graph`; whether there was any."""
    import torch
    from executorch.exir.dialects._ops import ops

    targets = {operator(ops.edge.aten, name) for name in _OPERATORS}
    narrow = [
        node
        for node in graph.nodes
        if node.target in targets and node.args[_INDEX].meta["val"].dtype != torch.int64
    ]
    for node in narrow:
        index = node.args[_INDEX]
        value = index.meta["val"].to(torch.int64)
        options = {"dtype": torch.int64, "dim_order": list(value.dim_order())}
        with graph.inserting_before(node):
            cast = graph.call_function(ops.edge.dim_order_ops._to_dim_order_copy.default, (index,), options)
        cast.meta = {**node.meta, "val": value}
        node.update_arg(_INDEX, cast)
    return bool(narrow)


def operator(namespace: Any, name: str) -> Any:
    """The overload `name`, such as ``scatter.src``, of a namespace of operators."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(namespace, packet), overload)
