"""Rewrites while the Arm backend of ExecuTorch 1.5.1 lowers a program: quantisations that it would drop or
misread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.compile.rewrite.graph_passes import stored_and_read
from ethosu_sdk.compile.tool_hooks import patched


def keep_activations(graph: Any) -> bool:
    """Give a layer before a ReLU or hardtanh(0, …) a quantised result of its own, where ExecuTorch would lose the
    activation.

    ExecuTorch removes it and notes the lower bound as `quant_min` of the quantisation that follows. No later pass
    reads that note: the RESCALE that ends the layer saturates at the limits of its integer type, which is right only
    where zero is stored as the smallest integer. Values do not change: saturating, then clamping on the same grid,
    is what the quantised model computes.
    """
    found = [node for node in graph.nodes if _would_be_lost(node)]
    for activation in found:
        layer, quantize = activation.args[0], next(iter(activation.users))
        with graph.inserting_before(activation):
            _, read = stored_and_read(layer, quantize.args[1:], quantize)
        activation.replace_input_with(layer, read)
    return bool(found)


def _would_be_lost(node: Any) -> bool:
    import torch
    from executorch.backends.arm._passes.fuse_quantized_activation_pass import FuseQuantizedActivationPass

    if node.op != "call_function" or not FuseQuantizedActivationPass._is_fuseable_quantized_activation(node):
        return False
    if not FuseQuantizedActivationPass._is_fuseable_input(node.args[0]):
        return False
    _, _, zero_point, _, _, dtype = next(iter(node.users)).args
    return bool(zero_point != torch.iinfo(dtype).min)


def rescale_negations(graph: Any) -> bool:
    """Give negations results of their input's scale, and then the scale that was asked for.

    The Arm quantiser gives the result of a negation a quantisation of its own, but a TOSA NEGATE knows zero points
    and no scales. The range of integers is mirrored, by which no value is lost, and a RESCALE behind it, of the
    quantise that was there, rounds once, as the quantised model does.
    """
    found = [node for node in graph.nodes if _is_misread(node)]
    for negation in found:
        _, scale, zero_point, smallest, largest, dtype = negation.args[0].args
        mirrored = (scale, smallest + largest - zero_point, smallest, largest, dtype)
        with graph.inserting_after(negation):
            written, read = stored_and_read(negation, mirrored, next(iter(negation.users)))
        negation.replace_all_uses_with(read, delete_user_cb=lambda user, kept=written: user is not kept)
    return bool(found)


def _is_misread(node: Any) -> bool:
    """Whether `node` is a quantised negation whose output has another quantisation than its input."""
    from executorch.exir.dialects._ops import ops

    decomposed = ops.edge.quantized_decomposed
    if node.op != "call_function" or node.target != ops.edge.aten.neg.default:
        return False
    if node.args[0].target != decomposed.dequantize_per_tensor.default:
        return False
    if any(user.target != decomposed.quantize_per_tensor.default for user in node.users):
        return False
    _, scale, _, smallest, largest, _ = node.args[0].args
    # Scales that two observers found for the same values differ in their last digits, which changes no integer.
    return any(abs(scale / user.args[1] - 1) * (largest - smallest) >= 1 / 2 for user in node.users)


def duplicates_kept() -> AbstractContextManager[None]:
    """While the block runs, equal operators with results of different quantisation are not merged in this process.

    ExecuTorch keeps one of several operators with the same target and arguments. At that point the quantisation of a
    result is a note on its operator: here the note counts among what makes two operators equal.
    """
    from executorch.backends.arm._passes import FuseDuplicateUsersPass

    inherited = FuseDuplicateUsersPass._build_user_signature

    def signature(self: Any, node: Any) -> tuple[Any, ...] | None:
        alike = inherited(self, node)
        return None if alike is None else (*alike, repr(node.meta.get("output_qparams")))

    return patched(FuseDuplicateUsersPass, _build_user_signature=signature)


def convolutions_kept_narrow() -> AbstractContextManager[None]:
    """While the block runs, results of int16 convolutions pass through 16 bits on Ethos-U55 and Ethos-U65, as the
    quantised model has them. Others read the 16 bits of such a convolution too: Vela refuses 32 there."""
    from executorch.backends.arm._passes import RewriteConvPass
    from executorch.backends.arm.tosa.specification import get_context_spec

    inherited = RewriteConvPass._insert_a16w8_output_branches

    def branches(self: Any, *arguments: Any) -> None:
        if not get_context_spec().is_U55_subset:
            inherited(self, *arguments)

    return patched(RewriteConvPass, _insert_a16w8_output_branches=branches)
