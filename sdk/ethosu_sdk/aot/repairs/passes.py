"""Passes of ExecuTorch that call a function of ours; their bases are expensive to import, so they are made late."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

Rewrite = Callable[[Any], bool]  # changes a torch.fx graph, and says whether it did


def of_quantised(name: str, rewrite: Rewrite) -> Any:
    """A pass `name` over a graph whose quantisations are still operators."""
    from executorch.exir.pass_base import ExportPass, PassResult

    def call(_: Any, graph_module: Any) -> Any:
        changed = rewrite(graph_module.graph)
        if changed:
            graph_module.recompile()
        return PassResult(graph_module, changed)

    return type(name, (ExportPass,), {"call": call})()


def of_tosa(name: str, rewrite: Rewrite) -> Any:
    """A pass `name` over a graph of TOSA operators, whose shapes are computed anew where it changed something."""
    from executorch.backends.arm._passes import ArmPass
    from executorch.exir.pass_base import PassResult

    def call(self: Any, graph_module: Any) -> Any:
        changed = rewrite(graph_module.graph)
        if changed:
            graph_module.recompile()
            graph_module = ArmPass.call(self, graph_module).graph_module
        return PassResult(graph_module, changed)

    return type(name, (ArmPass,), {"_passes_required_after": frozenset(), "call": call})()


def stored(value: Any, parameters: tuple[Any, ...], quantize: Any) -> tuple[Any, Any]:
    """Nodes behind the current place that store `value` by the quantisation `parameters` and read it again.

    `quantize` is the node that stores it otherwise: the new one has its notes and keywords.
    """
    from executorch.exir.dialects._ops import ops

    decomposed = ops.edge.quantized_decomposed
    graph = value.graph
    written = graph.call_function(
        decomposed.quantize_per_tensor.default, (value, *parameters), dict(quantize.kwargs)
    )
    with graph.inserting_after(written):
        read = graph.call_function(decomposed.dequantize_per_tensor.default, (written, *parameters))
    written.meta, read.meta = copy(quantize.meta), copy(value.meta)
    return written, read
