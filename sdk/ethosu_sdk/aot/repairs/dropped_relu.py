"""ReLUs that ExecuTorch would drop while it lowers a quantised program.

The Arm backend of ExecuTorch 1.5.1 removes a ReLU or hardtanh(0, …) behind a convolution or linear layer and notes
the lower bound as `quant_min` of the quantisation that follows. No later pass reads that note: the RESCALE that
ends the layer saturates at the limits of its integer type. So the removal is right only where zero is stored as the
smallest integer. It is not when the activation shares its quantisation with a tensor that goes below zero, such as
the other input of a concatenation: then negative values come through.

A pair of quantise and dequantise between the two, with the activation's own quantisation, makes the layer's result
a tensor of its own, and the activation stays. Values do not change: saturating, then clamping on the same grid,
is what the quantised model computes.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.repairs import passes


def _must_stay(node: Any) -> bool:
    """Whether ExecuTorch would drop the activation `node` although integers below zero's can be stored."""
    import torch
    from executorch.backends.arm._passes.fuse_quantized_activation_pass import FuseQuantizedActivationPass

    if node.op != "call_function" or not FuseQuantizedActivationPass._is_fuseable_quantized_activation(node):
        return False
    if not FuseQuantizedActivationPass._is_fuseable_input(node.args[0]):
        return False
    _, _, zero_point, _, _, dtype = next(iter(node.users)).args
    return bool(zero_point != torch.iinfo(dtype).min)


def _separate(graph: Any, activation: Any) -> None:
    layer, quantize = activation.args[0], next(iter(activation.users))
    with graph.inserting_before(activation):
        _, read = passes.stored(layer, quantize.args[1:], quantize)
    activation.replace_input_with(layer, read)


# Gives a layer before an activation that must stay a quantised result of its own.
repair = passes.of_each(_must_stay, _separate)
