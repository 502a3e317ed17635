"""Makes constants of tensors that use only the shape of another tensor.

``ones_like(x)`` and its kin read nothing of `x`. Where ExecuTorch 1.5.1 puts one into a delegate, `x` becomes an
input of it; inside, the constant is folded and the input goes, but the program still passes it: the delegate's
arguments are off by one. So they become constants before anything else looks at them.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.fx import take_place

_VALUE_AT = {  # operator → the constant, or the position of the argument that is it
    "aten.zeros_like.default": 0,
    "aten.ones_like.default": 1,
    "aten.new_zeros.default": 0,
    "aten.new_ones.default": 1,
    "aten.full_like.default": "second",
    "aten.new_full.default": "third",
}
_POSITION = {"second": 1, "third": 2}


def repair(program: Any) -> Any:
    """The ``ExportedProgram`` with such operators of fixed shape in terms of ``aten.full``, changed in place."""
    import torch

    graph = program.graph
    for node in list(graph.nodes):
        value = _value(node)
        if value is None:
            continue
        made = node.meta["val"]
        with graph.inserting_before(node):
            full = graph.call_function(
                torch.ops.aten.full.default,
                (list(made.shape), value),
                {"dtype": made.dtype, "device": made.device, "pin_memory": False},
            )
        full.meta = dict(node.meta)
        take_place(program, node, full)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program


def _value(node: Any) -> bool | int | float | None:
    """What all elements of the node's tensor are, or None for another operator or a value that is computed."""
    import torch

    known = _VALUE_AT.get(str(node.target)) if node.op == "call_function" else None
    if known is None:
        return None
    value = known
    if isinstance(known, str):
        position = _POSITION[known]
        value = node.args[position] if len(node.args) > position else None
    made = node.meta.get("val")
    fixed = isinstance(made, torch.Tensor) and all(type(size) is int for size in made.shape)
    return value if fixed and isinstance(value, (bool, int, float)) else None
