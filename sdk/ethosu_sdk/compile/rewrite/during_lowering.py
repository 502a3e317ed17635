"""Rewrites while the Arm backend lowers a program: quantisations that it would drop; all are installed here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from ethosu_sdk.compile.rewrite import graph_passes, integers, partitioning, tosa_shapes, tosa_transposes
from ethosu_sdk.compile.tool_hooks import patched

# ---- aot.repairs.dropped_relu
# ReLUs that ExecuTorch would drop while it lowers a quantised program.
#
# The Arm backend of ExecuTorch 1.5.1 removes a ReLU or hardtanh(0, …) behind a convolution or linear layer and
# notes
# the lower bound as `quant_min` of the quantisation that follows. No later pass reads that note: the RESCALE that
# ends the layer saturates at the limits of its integer type. So the removal is right only where zero is stored as
# the
# smallest integer. It is not when the activation shares its quantisation with a tensor that goes below zero, such
# as
# the other input of a concatenation: then negative values come through.
#
# A pair of quantise and dequantise between the two, with the activation's own quantisation, makes the layer's
# result
# a tensor of its own, and the activation stays. Values do not change: saturating, then clamping on the same grid,
# is what the quantised model computes.


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


def _separate_activation(graph: Any, activation: Any) -> None:
    layer, quantize = activation.args[0], next(iter(activation.users))
    with graph.inserting_before(activation):
        _, read = graph_passes.stored_and_read(layer, quantize.args[1:], quantize)
    activation.replace_input_with(layer, read)


# Gives a layer before an activation that must stay a quantised result of its own.
keep_activations = graph_passes.rewrite_each(_must_stay, _separate_activation)


# ---- aot.repairs.unscaled_negations
# Negations whose result has a different scale than their input.
#
# The Arm quantiser of ExecuTorch 1.5.1 gives the result of a negation a quantisation of its own, and the lowering
# writes a TOSA NEGATE, which knows zero points and no scales: the stored numbers are those of the input's scale,
# and
# are read by that of the output. The two differ wherever less is stored than the input could tell, such as behind
# a ReLU that shares its quantisation with values below zero, and the result is wrong by that factor.
#
# So such a negation gets the scale of its input, with the range of integers mirrored, by which no value is lost; a
# RESCALE behind it, of the quantise that was there, rounds once, as the quantised model does.


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
        written, read = graph_passes.stored_and_read(negation, mirrored, next(iter(negation.users)))
    negation.replace_all_uses_with(read, delete_user_cb=lambda user: user is not written)


# Gives negations results of their input's scale, and then the scale that was asked for.
rescale_negations = graph_passes.rewrite_each(_is_misread, _rescale)


# ---- aot.repairs.merged_duplicates
# Equal operators whose results are stored differently: ExecuTorch would keep only one of them.
#
# The Arm backend of ExecuTorch 1.5.1 keeps one of several operators with the same target and arguments. At that
# point
# the quantisation of a result is a note on its operator, at which nobody looks: where two differ, what reads the
# dropped result goes on to take the stored numbers by the dropped operator's scale and zero point. That is so in
# `torch.cat([torch.sigmoid(x), x])` beside another `torch.sigmoid(x)`: the first is stored in the range of x.
#
# So the note counts among what makes two operators equal.


def duplicates_kept() -> AbstractContextManager[None]:
    """While the block runs, operators with results of different quantisation are not merged in this process."""
    from executorch.backends.arm._passes import FuseDuplicateUsersPass

    inherited = FuseDuplicateUsersPass._build_user_signature

    def signature(self: Any, node: Any) -> tuple[Any, ...] | None:
        alike = inherited(self, node)
        return None if alike is None else (*alike, repr(node.meta.get("output_qparams")))

    return patched(FuseDuplicateUsersPass, _build_user_signature=signature)


# ---- aot.repairs.widened_convolutions
# Convolutions of 16 bits whose results arithmetic of 32 bits reads, on Ethos-U55 and Ethos-U65.
#
# ExecuTorch 1.5.1 hands them on as 32 bits that were never 16 bits wide. Vela 5.1.0 refuses such a convolution
# where
# others read its 16 bits too, with no word of the operator; alone, it gives other values. So they pass through 16
# bits,
# as the quantised model has them.


def convolutions_kept_narrow() -> AbstractContextManager[None]:
    """While the block runs, results of convolutions of 16 bits are that wide, where there is no other way."""
    from executorch.backends.arm._passes import RewriteConvPass
    from executorch.backends.arm.tosa.specification import get_context_spec

    inherited = RewriteConvPass._insert_a16w8_output_branches

    def branches(self: Any, *arguments: Any) -> None:
        if not get_context_spec().is_U55_subset:
            inherited(self, *arguments)

    return patched(RewriteConvPass, _insert_a16w8_output_branches=branches)


# ---- aot.repairs.installed
# Works around faults of ExecuTorch 1.5.1 and Vela 5.1.0 that crash or silently give wrong values.
#
# Most repairs are passes that run before one of the Arm backend's own, and change a graph only where it would
# come out wrong. ExecuTorch keeps such additions in a table of the process; it is left as it was found.


@contextlib.contextmanager
def rewrites_installed(spec: Any = None) -> Iterator[None]:
    """While the block runs, programs that are lowered for Ethos-U in this process keep every activation that counts,
    every output, all weights, batches, the scales of negations, the quantisation of each result, the shapes of all
    parts and the types at a delegate's border, and Vela does not crash at slices of many axes. For the target of
    `spec`, ExecuTorch's description of it, they keep their look-up tables as well."""
    from executorch.backends.arm._passes import (
        EnsureUniqueOutputNodesPass,
        FuseQuantizedActivationPass,
        RewriteSlicePass,
        arm_pass_manager as manager,
    )

    small = spec is not None and spec.target in tosa_transposes.TARGETS_WITHOUT_TABLE_BANKS
    transposes_pool = spec is not None and not spec.target.startswith("ethos-u85")
    registered = manager._registered_pass_insertions
    before = {
        kind: replace(added, before_passes=list(added.before_passes), after_passes=list(added.after_passes))
        for kind, added in registered.items()
    }
    manager.register_pass_insertions_before(
        FuseQuantizedActivationPass,
        [
            graph_passes.edge_pass("SeparateActivationPass", keep_activations),
            graph_passes.edge_pass("RescaleNegationsPass", rescale_negations),
        ],
    )
    manager.register_pass_insertions_before(
        RewriteSlicePass, [graph_passes.tosa_pass("FlattenSlicesPass", tosa_shapes.flatten_slices)]
    )
    manager.register_pass_insertions_before(
        EnsureUniqueOutputNodesPass,
        [
            graph_passes.tosa_pass("RerootTransposesPass", tosa_transposes.separate_outputs),
            graph_passes.tosa_pass("HoistActivationsPass", tosa_transposes.hoist_activations),
            *(
                [graph_passes.tosa_pass("HoistTablesPass", tosa_transposes.hoist_tables)]
                if transposes_pool
                else []
            ),
            *([graph_passes.tosa_pass("KeepTablesPass", tosa_transposes.reload_tables)] if small else []),
            graph_passes.tosa_pass("SeparateShapesPass", tosa_shapes.separate_shapes),
            graph_passes.tosa_pass("HoistBatchesPass", tosa_shapes.hoist_over_batches),
            tosa_shapes.make_joining_pass(),
        ],
    )
    try:
        with (
            duplicates_kept(),
            integers.integer_divisions_kept(),
            partitioning.integer_borders_kept(),
            convolutions_kept_narrow(),
        ):
            yield
    finally:
        registered.clear()
        registered.update(before)
