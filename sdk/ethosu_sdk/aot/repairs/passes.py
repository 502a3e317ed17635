"""Passes of ExecuTorch that call a function of ours; their bases are expensive to import, so they are made late."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

Rewrite = Callable[[Any], bool]  # changes a torch.fx graph, and says whether it did


def of_edge(name: str, repair: Rewrite) -> Any:
    """A pass `name` over a graph of edge operators, among which the quantisations still are."""
    return class_of_edge(name, repair)()


def class_of_edge(name: str, repair: Rewrite) -> Any:
    """The class of the passes that :func:`of_edge` makes."""
    from executorch.exir.pass_base import ExportPass

    return _made(name, ExportPass, repair)


def of_tosa(name: str, repair: Rewrite) -> Any:
    """A pass `name` over a graph of TOSA operators, whose shapes are computed again where it changed something."""
    from executorch.backends.arm._passes import ArmPass

    return _made(name, ArmPass, repair, retrace=ArmPass.call, _passes_required_after=frozenset())()


def _made(
    name: str, base: Any, repair: Rewrite, retrace: Callable[[Any, Any], Any] | None = None, **attributes: Any
) -> Any:
    """The class of all passes: change the graph, regenerate its code, and trace it again if needed."""
    from executorch.exir.pass_base import PassResult

    def call(self: Any, graph_module: Any) -> Any:
        changed = repair(graph_module.graph)
        if changed:
            graph_module.recompile()
            graph_module = graph_module if retrace is None else retrace(self, graph_module).graph_module
        return PassResult(graph_module, changed)

    return type(name, (base,), {"call": call, **attributes})


def of_each(is_wrong: Callable[[Any], bool], change: Callable[[Any, Any], None]) -> Rewrite:
    """`change` (graph, node) for each node that `is_wrong`; all are found before the first is changed."""

    def repair(graph: Any) -> bool:
        found = [node for node in graph.nodes if is_wrong(node)]
        for node in found:
            change(graph, node)
        return bool(found)

    return repair


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
