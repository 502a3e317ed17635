"""``addmm`` as a product and a sum.

ExecuTorch 1.5.1 takes it apart itself before a model is quantised, into ``beta * bias + alpha * (x @ w)``, also where
both factors are one; that product of a parameter and a number then fails ('Parameter' object has no attribute
'to_tensor'). The Conv1D layers of GPT-2 in transformers are such.
"""

from __future__ import annotations

from typing import Any


def repair(program: Any) -> Any:
    """The ``ExportedProgram`` without ``addmm`` whose factors are one, changed in place."""
    import torch

    aten, graph = torch.ops.aten, program.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not aten.addmm.default:
            continue
        if any(node.kwargs.get(factor, 1) != 1 for factor in ("alpha", "beta")):
            continue
        bias, left, right = node.args
        with graph.inserting_before(node):
            product = graph.call_function(aten.mm.default, (left, right))
        product.meta = dict(node.meta)
        node.target, node.args, node.kwargs = aten.add.Tensor, (product, bias), {}
    program.graph_module.recompile()
    return program
