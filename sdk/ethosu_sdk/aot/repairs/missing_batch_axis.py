"""Layers of one sample without an axis of batches, which PyTorch takes: ``Conv2d`` on [channels, height, width].

ExecuTorch 1.5.1 fails on pooling of such, and makes convolutions that give a part of their result. They get a batch
of one.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.fx import rename_output

_AXES = {  # operator → axes of an input with batches
    **dict.fromkeys(("aten.conv1d.default", "aten.conv1d.padding", "aten.conv_transpose1d.default"), 3),
    **dict.fromkeys(("aten.avg_pool1d.default", "aten.adaptive_avg_pool1d.default"), 3),
    **dict.fromkeys(("aten.conv2d.default", "aten.conv2d.padding", "aten.conv_transpose2d.input"), 4),
    **dict.fromkeys(("aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default"), 4),
}


def repair(program: Any) -> Any:
    """The ``ExportedProgram`` with a batch of one around such layers, changed in place."""
    import torch

    graph = program.graph
    for node in list(graph.nodes):
        axes = _AXES.get(str(node.target)) if node.op == "call_function" else None
        if axes is None or node.args[0].meta["val"].dim() != axes - 1:
            continue
        source, users = node.args[0], list(node.users)
        with graph.inserting_before(node):
            batched = graph.call_function(torch.ops.aten.unsqueeze.default, (source, 0))
        batched.meta = {**node.meta, "val": source.meta["val"].unsqueeze(0)}
        node.update_arg(0, batched)
        with graph.inserting_after(node):
            single = graph.call_function(torch.ops.aten.squeeze.dim, (node, 0))
        single.meta = dict(node.meta)
        node.meta = {**node.meta, "val": node.meta["val"].unsqueeze(0)}
        for user in users:
            user.replace_input_with(node, single)
        rename_output(program, node, single)
    program.graph_module.recompile()
    return program
