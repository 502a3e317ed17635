"""Passes for programs that are already quantised, so that the NPU gets every quantised operator.

ExecuTorch's partitioner was made for what Arm's quantiser leaves behind. Other quantisers, and what torchao does to
a trained model, leave float biases, layers without Arm's mark and dropout that does nothing. None of the steps here
changes a result by more than the rounding of a bias to the accumulator's own steps.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.compile.graphs.fx import (
    DEQUANTIZE,
    DEQUANTIZE_CHANNELS,
    QUANTIZE,
    is_dequantize,
    is_quantize,
    mark_key,
    operator_name,
)

# Operators of the form (input, weight, bias, …), and the axis of their weights that runs over the output's channels.
_OUTPUT_AXIS = {
    "aten::linear": 0,
    "aten::conv1d": 0,
    "aten::conv2d": 0,
    "aten::conv3d": 0,
    "aten::conv_transpose1d": 1,
    "aten::conv_transpose2d": 1,
}
_INT32_MAX = 2**31 - 1  # symmetric, as Arm's quantiser has it
_DEQUANTIZES = (DEQUANTIZE, DEQUANTIZE_CHANNELS)
_DROPOUTS = ("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout")
_ACTIVATIONS = ("aten::relu", "aten::hardtanh", "aten::clamp")


def complete_program(program: Any, inputs: tuple[Any, ...]) -> Any:
    """The quantised `program` with all that the partitioner needs; `program` itself when it lacks nothing."""
    import torch

    module = program.module(check_guards=False)
    changed = [
        _remove_dropout(module),
        replace_relu6(module),
        _quantize_biases(module),
        _mark_quantized(module),
        _unmark_differing(module),
    ]
    if not any(changed):
        return program
    module.graph.eliminate_dead_code()
    module.recompile()
    return torch.export.export(module, inputs)


def _name(node: Any) -> str:
    """The operator that a node calls, ``aten::relu`` for its in-place form too; empty for another node."""
    return operator_name(node).removesuffix("_")


def _remove_dropout(module: Any) -> bool:
    """Take out dropout that is switched off, and the quantisation that was put around it; True for a change.

    Nothing after this step is in training mode: that is refused earlier.
    """
    found = [node for node in module.graph.nodes if _name(node) in _DROPOUTS]
    for node in found:
        source = node.args[0]
        node.replace_all_uses_with(source)
        module.graph.erase_node(node)
        for user in list(source.users):
            kinds = str(user.target), str(source.target)
            if kinds == (QUANTIZE, DEQUANTIZE) and user.args[1:] == source.args[1:]:  # it undoes that
                user.replace_all_uses_with(source.args[0])
                module.graph.erase_node(user)
    return bool(found)


def replace_relu6(module: Any) -> bool:
    """Put hardtanh in place of relu6, which Arm's quantiser does not know; True for a change."""
    import torch

    found = [node for node in module.graph.nodes if _name(node) == "aten::relu6"]
    for node in found:
        node.target = torch.ops.aten.hardtanh.default
        node.args = (node.args[0], 0.0, 6.0)
        if _has_mark(module):
            _mark_if_quantized(node)
    return bool(found)


def _has_mark(module: Any) -> bool:
    return any(mark_key() in node.meta.get("custom", {}) for node in module.graph.nodes)


def _mark_quantized(module: Any) -> bool:
    """Mark what lies between quantised values, as Arm's quantiser would have; True for a change.

    A program with marks of that quantiser is left alone: what it did not mark is to stay on the CPU.
    """
    if _has_mark(module):
        return False
    return sum(_mark_if_quantized(node) for node in module.graph.nodes) > 0


def _mark_if_quantized(node: Any) -> bool:
    if node.op != "call_function" or getattr(node.target, "namespace", "") != "aten":
        return False
    if not (node.all_input_nodes and _takes_quantized(node) and _gives_quantized(node)) or _differs(node):
        return False
    _mark(node, quantized=True)
    return True


def _mark(node: Any, *, quantized: bool) -> None:
    node.meta["custom"] = {**node.meta.get("custom", {}), mark_key(): {"quantized": quantized}}


def _unmark_differing(module: Any) -> bool:
    """Take the mark off each operation that the NPU would compute with a scale that is not its own; True for a
    change."""
    found = [
        node for node in module.graph.nodes if mark_key() in node.meta.get("custom", {}) and _differs(node)
    ]
    for node in found:
        _mark(node, quantized=False)
    return bool(found)


def _differs(node: Any) -> bool:
    """Whether an operation that ExecuTorch lowers without a change of scale needs one: its quantised inputs and
    outputs have different scales, zero points or types. The NPU would take the one for the other, silently."""
    from executorch.backends.arm.quantizer.arm_quantizer_utils import SharedQspecQuantizer

    if node.target not in SharedQspecQuantizer.SHARED_QSPEC_OPS_DEFAULT:
        return False
    around = (*node.all_input_nodes, *node.users)
    return len({part.args[1:] for part in around if str(part.target) in (DEQUANTIZE, QUANTIZE)}) > 1


def _takes_quantized(node: Any) -> bool:
    """Whether all that a node computes with was dequantised for it, or comes from a layer that it is the activation
    of."""
    return all(
        str(source.target) in _DEQUANTIZES or (_is_fused(source, node) and _takes_quantized(source))
        for source in node.all_input_nodes
    )


def _gives_quantized(node: Any) -> bool:
    return bool(node.users) and all(
        is_quantize(user) or (_is_fused(node, user) and _gives_quantized(user)) for user in node.users
    )


def _is_fused(layer: Any, activation: Any) -> bool:
    """Whether a layer and its activation become one operation, with no rounding between them."""
    return _name(layer) in _OUTPUT_AXIS and _name(activation) in _ACTIVATIONS and len(layer.users) == 1


def _quantize_biases(module: Any) -> bool:
    """Give each float bias of a quantised convolution or linear layer as int32 values; True for a change.

    The NPU adds a bias to its accumulator, so the values' scale is that of the input times that of the weights. Such
    biases are left by torchao where it folds a batch normalisation into a convolution without a bias, and by
    quantisers that were not made for integer hardware.
    """
    layers = [node for node in module.graph.nodes if _quantized_layer(node)]
    biases = ((node, _attribute(module, _bias(node))) for node in layers)
    found = [node for node, value in biases if value is not None and value.is_floating_point()]
    return sum(_quantize_bias(module, node, f"_integer_bias_{index}") for index, node in enumerate(found)) > 0


def _quantized_layer(node: Any) -> bool:
    """Whether `node` is a layer with a bias, and both its input and its weights are quantised."""
    if _name(node) not in _OUTPUT_AXIS or _bias(node) is None:
        return False
    return is_dequantize(node.args[0]) and str(node.args[1].target) in _DEQUANTIZES


def _bias(node: Any) -> Any:
    return node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")


def _attribute(module: Any, node: Any) -> Any:
    """The tensor that a ``get_attr`` node names; None for another node."""
    if node.op != "get_attr":
        return None
    value = module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def _quantize_bias(module: Any, node: Any, name: str) -> bool:
    """Put int32 values and their dequantisation in place of a layer's float bias; False when they do not fit."""
    import torch

    bias = _attribute(module, _bias(node)).detach()
    weight_scale = _weight_scale(module, node.args[1], _OUTPUT_AXIS[_name(node)])
    if weight_scale is None or weight_scale.numel() not in (1, bias.numel()):
        return False
    scale = weight_scale.double() * node.args[0].args[1]
    values = torch.round(bias.double() / scale)
    if not bool((values.abs() <= _INT32_MAX).all()):
        return False
    operators = torch.ops.quantized_decomposed
    module.register_buffer(name, values.to(torch.int32))
    limits = (-_INT32_MAX, _INT32_MAX, torch.int32)
    with module.graph.inserting_before(node):
        constant = module.graph.get_attr(name)
        if scale.numel() == 1:
            made = module.graph.call_function(
                operators.dequantize_per_tensor.default, (constant, float(scale), 0, *limits)
            )
        else:
            module.register_buffer(f"{name}_scale", scale.to(torch.float32))
            module.register_buffer(f"{name}_zero_point", torch.zeros(scale.numel(), dtype=torch.int64))
            parts = (module.graph.get_attr(f"{name}_scale"), module.graph.get_attr(f"{name}_zero_point"))
            made = module.graph.call_function(
                operators.dequantize_per_channel.default, (constant, *parts, 0, *limits)
            )
    made.meta.update(
        {key: value for key, value in node.meta.items() if key in ("stack_trace", "nn_module_stack")}
    )
    node.replace_input_with(_bias(node), made)
    return True


def _weight_scale(module: Any, weight: Any, axis: int) -> Any:
    """The scales of dequantised weights, one for each output channel or one alone; None for those of another axis."""
    import torch

    if is_dequantize(weight):
        return torch.tensor([weight.args[1]], dtype=torch.float64)
    return _attribute(module, weight.args[1]) if weight.args[3] == axis else None
