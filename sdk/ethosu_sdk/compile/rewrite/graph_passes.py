"""ExecuTorch's passes around functions of ours, and the nodes of TOSA graphs that such functions change."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from ethosu_sdk.compile.graphs.fx import operator_name

GraphRewrite = Callable[[Any], bool]  # changes a torch.fx graph, and says whether it did

_TRANSPARENT = ("IDENTITY", "RESCALE", "RESHAPE")
_MOVED = ("IDENTITY", "RESHAPE", "TRANSPOSE")


# The bases of passes are expensive to import, so the classes are made late.
def edge_pass_class(name: str, rewrite: GraphRewrite) -> Any:
    """The class of the passes `name` over graphs of edge operators, among which the quantisations still are."""
    from executorch.exir.pass_base import ExportPass, PassResult

    def call(self: Any, graph_module: Any) -> Any:
        del self
        changed = rewrite(graph_module.graph)
        if changed:
            graph_module.recompile()
        return PassResult(graph_module, changed)

    return type(name, (ExportPass,), {"call": call})


def tosa_pass_class(name: str, rewrite: GraphRewrite) -> Any:
    """The class of the passes `name` over graphs of TOSA operators, whose shapes are computed again where one changed
    something."""
    from executorch.backends.arm._passes import ArmPass
    from executorch.exir.pass_base import PassResult

    def call(self: Any, graph_module: Any) -> Any:
        changed = rewrite(graph_module.graph)
        if changed:
            graph_module.recompile()
            graph_module = ArmPass.call(self, graph_module).graph_module
        return PassResult(graph_module, changed)

    return type(name, (ArmPass,), {"call": call, "_passes_required_after": frozenset()})


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
    """The first TRANSPOSE of those through which values alone come from `node` to its one reader, or None."""
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


def unchanged_copy(graph: Any, value: Any) -> Any:
    """A node at the current place that gives `value` as it is and that Vela does not merge: a CLAMP to all values of
    the type, or LOGICAL_OR of a truth value with itself."""
    import torch
    from executorch.exir.dialects._ops import ops

    tosa, dtype = ops.backend.tosa, value.meta["val"].dtype
    if dtype == torch.bool:
        same = graph.call_function(tosa.LOGICAL_OR.default, (value, value))
    else:
        limits = torch.iinfo(dtype)
        same = graph.call_function(tosa.CLAMP.default, (value, limits.min, limits.max))
    same.meta = dict(value.meta)
    return same
