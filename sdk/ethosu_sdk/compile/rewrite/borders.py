"""Rewrites of where an image enters or leaves a delegate: the processor changes its layout while it converts it, not
the NPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.graphs.fx import is_dequantize, is_quantize, operator_name

# ExecuTorch has the channels of images first, and the NPU has them last: Vela transposes what comes into a delegate.
# A delegate whose input has its channels last in memory, by its dim order, takes it as it is. So a quantised input is
# copied to that order, and back for the operators, which stay as they are. The first copy stays outside of the
# delegate. The second one goes into it, where it undoes the transposition. Outputs likewise: there the first copy is
# in the delegate. The firmware's kernels quantise to any layout, straight to where the NPU reads, and dequantise from
# any: the copy outside is none there. Other runtimes make it.

_AXES = 4
_CHANNELS, _HEIGHT, _WIDTH = 1, 2, 3
_LAST = (0, 2, 3, 1)
_LEAST_PIXELS = 64  # the processor converts channel by channel; less of each costs it more than the NPU
_COPY = "dim_order_ops::_clone_dim_order"
_QUANTIZE, _DEQUANTIZE = "quantize_per_tensor", "dequantize_per_tensor"

# Operators that the NPU computes with the channels last, by their first argument.
_IMAGE_OPERATORS = frozenset(
    {
        *("aten.conv2d.default", "aten.conv2d.padding", "aten.conv_transpose2d.input"),
        *("aten.max_pool2d.default", "aten.avg_pool2d.default", "aten.adaptive_avg_pool2d.default"),
        *("aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"),
    }
)

_POINTWISE = frozenset(
    f"aten.{name}.default"
    for name in ("relu", "hardtanh", "relu6", "clamp", "sigmoid", "tanh", "hardsigmoid")
) | {"aten.relu_.default", "aten.hardtanh_.default"}


def order_inputs(program: Any) -> Any:
    """The ``ExportedProgram`` in which the images among the inputs have their channels last behind their quantise
    operator, changed in place."""
    names = set(program.graph_signature.user_inputs)
    for node in [node for node in program.graph.nodes if _takes_image(node, names)]:
        _copy_twice(node, list(node.users))
    program.graph_module.recompile()
    return program


def order_outputs(program: Any) -> Any:
    """The ``ExportedProgram`` in which an image that is the only output has its channels last before its dequantise
    operator, changed in place. With several, the partitioner makes two delegates of one."""
    only = len(program.graph_signature.user_outputs) == 1
    for node in [node for node in program.graph.nodes if only and _gives_image(node)]:
        _copy_twice(node.args[0], [node])
    program.graph_module.recompile()
    return program


def _copy_twice(source: Any, users: Sequence[Any]) -> None:
    """Let `users` of `source` read a copy, in its own order, of a copy with the channels last."""
    import torch

    made = source
    for order in (torch.channels_last, torch.contiguous_format):
        with source.graph.inserting_after(made):
            made = source.graph.call_function(torch.ops.aten.clone.default, (made,), {"memory_format": order})
        made.meta = {**source.meta, "val": source.meta["val"].clone(memory_format=order)}
    for user in users:
        user.replace_input_with(source, made)


def _takes_image(node: Any, inputs: set[str]) -> bool:
    """Whether `node` quantises an input of a program that only operators on images read."""
    if not is_quantize(node) or node.args[0].name not in inputs:
        return False
    return _is_image(node) and all(
        is_dequantize(user) and all(_works_on_image(user, row) for row in user.users) for user in node.users
    )


def _is_image(node: Any) -> bool:
    """Whether a node's value is an image whose order in memory matters, and that is large enough to gain by it."""
    shape = node.meta["val"].shape
    return len(shape) == _AXES and shape[_CHANNELS] > 1 and shape[_HEIGHT] * shape[_WIDTH] >= _LEAST_PIXELS


def _gives_image(node: Any) -> bool:
    """Whether `node` dequantises an output of a program that operators on images made, and nothing else."""
    if not is_dequantize(node) or not _is_image(node) or [user.op for user in node.users] != ["output"]:
        return False
    source = node.args[0]
    while is_quantize(source) or is_dequantize(source) or str(source.target) in _POINTWISE:
        source = source.args[0]
    return str(source.target) in _IMAGE_OPERATORS


def _works_on_image(source: Any, user: Any) -> bool:
    return str(user.target) in _IMAGE_OPERATORS and [
        row for row in user.all_input_nodes if row is source
    ] == [user.args[0]]


def crosses_border(node: Any) -> bool:
    """Whether `node`, of a program that is being lowered, is the one of two copies that the processor makes: the
    first one of an input, or the second one of an output."""
    if operator_name(node) != _COPY:
        return False
    if _is_first_copy(node):
        return bool(node.args[0].args[0].op == "placeholder")
    source = node.args[0]
    return (
        operator_name(source) == _COPY
        and _is_first_copy(source)
        and source.args[0].args[0].op != "placeholder"
        and all(operator_name(user).rpartition("::")[2] == _DEQUANTIZE for user in node.users)
    )


def _is_first_copy(node: Any) -> bool:
    return (
        operator_name(node) == _COPY
        and operator_name(node.args[0]).rpartition("::")[2] == _QUANTIZE
        and tuple(node.meta["val"].dim_order()) == _LAST
        and all(operator_name(user) == _COPY for user in node.users)
    )


def drop_idle_copies(programs: Sequence[Any]) -> None:
    """Remove both copies of an image from edge programs where the operators stayed on the CPU."""
    for program in programs:
        graph = program.graph
        for first in [node for node in graph.nodes if _is_first_copy(node) and node.users]:
            for second in list(first.users):
                second.replace_all_uses_with(first.args[0])
                graph.erase_node(second)
            graph.erase_node(first)
        program.graph_module.recompile()
