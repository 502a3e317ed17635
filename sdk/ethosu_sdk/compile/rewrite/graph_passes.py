"""Passes of ExecuTorch that call a function of ours, and the nodes of TOSA graphs that such functions change."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from ethosu_sdk.compile.graphs.fx import operator_name

# ---- aot.repairs.passes
# Passes of ExecuTorch that call a function of ours; their bases are expensive to import, so they are made late.

Rewrite = Callable[[Any], bool]  # changes a torch.fx graph, and says whether it did


def edge_pass(name: str, repair: Rewrite) -> Any:
    """A pass `name` over a graph of edge operators, among which the quantisations still are."""
    return edge_pass_class(name, repair)()


def edge_pass_class(name: str, repair: Rewrite) -> Any:
    """The class of the passes that :func:`of_edge` makes."""
    from executorch.exir.pass_base import ExportPass

    return _made(name, ExportPass, repair)


def tosa_pass(name: str, repair: Rewrite) -> Any:
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


def rewrite_each(is_wrong: Callable[[Any], bool], change: Callable[[Any, Any], None]) -> Rewrite:
    """`change` (graph, node) for each node that `is_wrong`; all are found before the first is changed."""

    def repair(graph: Any) -> bool:
        found = [node for node in graph.nodes if is_wrong(node)]
        for node in found:
            change(graph, node)
        return bool(found)

    return repair


def stored_and_read(value: Any, parameters: tuple[Any, ...], quantize: Any) -> tuple[Any, Any]:
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


# ---- aot.graph.tosa_nodes
# Nodes of a graph that ExecuTorch has brought to operators of TOSA, before it is written as a flatbuffer.

_TRANSPARENT = ("IDENTITY", "RESCALE", "RESHAPE")
_MOVED = ("IDENTITY", "RESHAPE", "TRANSPOSE")


def tosa_operator(node: Any) -> str | None:
    """The name of the node's TOSA operator, such as ``CONV2D``; None for an input or another operator."""
    space, _, name = operator_name(node).partition("::")
    return name if space == "tosa" else None


def tosa_origin(node: Any) -> Any:
    """The first node before `node`, or itself, that does more than to scale values or to give them another shape."""
    while tosa_operator(node) in _TRANSPARENT:
        node = node.args[0]
    return node


def first_transpose(node: Any) -> Any | None:
    """The first TRANSPOSE of those through which values alone come from `node` to its one reader; None when there is
    none."""
    found = None
    while tosa_operator(node) in _MOVED and len(node.users) == 1:
        found = node if tosa_operator(node) == "TRANSPOSE" else found
        node = node.args[0]
    return found


def bring_forward(activation: Any, first: Any) -> None:
    """Let `activation`, which looks at single values, read what `first` reads, a node before it.

    From `first` up to the node that it read from, each result is used by the next one alone.
    """
    last = activation.args[0]
    activation.replace_all_uses_with(last)
    activation.replace_input_with(last, first.args[0])
    first.replace_input_with(first.args[0], activation)
    first.prepend(activation)
