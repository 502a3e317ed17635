"""Rewrites of where an image enters a delegate: the processor changes its layout while it quantises, not the NPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.graphs.fx import is_dequantize, is_quantize, operator_name

# ExecuTorch has the channels of images first, and the NPU has them last: Vela transposes what comes into a delegate.
# A delegate whose input has its channels last in memory, by its dim order, takes it as it is. So a quantised input is
# copied to that order, and back for the operators, which stay as they are. The first copy stays outside of the
# delegate. The second one goes into it, where it undoes the transposition. The firmware's kernels quantise to any
# layout, straight to where the NPU reads: the first copy is none there. Other runtimes make it.

_AXES = 4
_CHANNELS, _HEIGHT, _WIDTH = 1, 2, 3
_LAST = (0, 2, 3, 1)
_COPY = "dim_order_ops::_clone_dim_order"

# Operators that the NPU computes with the channels last, by their first argument.
_IMAGE_OPERATORS = frozenset(
    {
        *("aten.conv2d.default", "aten.conv2d.padding", "aten.conv_transpose2d.input"),
        *("aten.max_pool2d.default", "aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default"),
        *("aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"),
    }
)


def order_inputs(program: Any) -> Any:
    """The ``ExportedProgram`` in which the images among the inputs have their channels last behind their quantise
    operator, changed in place."""
    import torch

    names = set(program.graph_signature.user_inputs)
    graph = program.graph
    for node in [node for node in graph.nodes if _takes_image(node, names)]:
        users, source = list(node.users), node
        for order in (torch.channels_last, torch.contiguous_format):
            with graph.inserting_after(source):
                made = graph.call_function(torch.ops.aten.clone.default, (source,), {"memory_format": order})
            made.meta = {**node.meta, "val": node.meta["val"].clone(memory_format=order)}
            source = made
        for user in users:
            user.replace_input_with(node, source)
    program.graph_module.recompile()
    return program


def _takes_image(node: Any, inputs: set[str]) -> bool:
    """Whether `node` quantises an input of a program that only operators on images read."""
    if not is_quantize(node) or node.args[0].name not in inputs:
        return False
    shape = node.meta["val"].shape
    if len(shape) != _AXES or shape[_CHANNELS] == 1 or shape[_HEIGHT] * shape[_WIDTH] == 1:
        return False
    return all(
        is_dequantize(user) and all(_works_on_image(user, row) for row in user.users) for user in node.users
    )


def _works_on_image(source: Any, user: Any) -> bool:
    return str(user.target) in _IMAGE_OPERATORS and [
        row for row in user.all_input_nodes if row is source
    ] == [user.args[0]]


def enters_delegate(node: Any) -> bool:
    """Whether `node`, of a program that is being lowered, is the first copy of :func:`order_inputs`."""
    return (
        operator_name(node) == _COPY
        and operator_name(node.args[0]).rpartition("::")[2] == "quantize_per_tensor"
        and tuple(node.meta["val"].dim_order()) == _LAST
        and all(operator_name(user) == _COPY for user in node.users)
    )


def drop_idle_copies(programs: Sequence[Any]) -> None:
    """Remove the two copies of :func:`order_inputs` from edge programs where the operators stayed on the CPU."""
    for program in programs:
        graph = program.graph
        found = [node for node in graph.nodes if operator_name(node) == _COPY]
        for first in [node for node in found if enters_delegate(node)]:
            for second in list(first.users):
                second.replace_all_uses_with(first.args[0])
                graph.erase_node(second)
            graph.erase_node(first)
        program.graph_module.recompile()
