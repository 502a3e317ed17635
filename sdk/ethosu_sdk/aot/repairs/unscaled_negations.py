"""Negations whose result has a different scale than their input.

The Arm quantiser of ExecuTorch 1.5.1 gives the result of a negation a quantisation of its own, and the lowering
writes a TOSA NEGATE, which knows zero points and no scales: the stored numbers are those of the input's scale, and
are read by that of the output. The two differ wherever less is stored than the input could tell, such as behind
a ReLU that shares its quantisation with values below zero, and the result is wrong by that factor.

So such a negation gets the scale of its input, with the range of integers mirrored, by which no value is lost; a
RESCALE behind it, of the quantise that was there, rounds once, as the quantised model does.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.repairs import passes


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


def _rescale(graph: Any, negation: Any) -> None:
    _, scale, zero_point, smallest, largest, dtype = negation.args[0].args
    mirrored = (scale, smallest + largest - zero_point, smallest, largest, dtype)
    with graph.inserting_after(negation):
        written, read = passes.stored(negation, mirrored, next(iter(negation.users)))
    negation.replace_all_uses_with(read, delete_user_cb=lambda user: user is not written)


# Gives negations results of their input's scale, and then the scale that was asked for.
repair = passes.of_each(_is_misread, _rescale)
