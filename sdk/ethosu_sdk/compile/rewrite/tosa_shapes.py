"""Shapes in the graph that Vela gets: it would crash at slices, mix up tensors and lose batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.graph_passes import (
    bring_forward,
    first_transpose,
    tosa_operator,
    tosa_origin,
    unchanged_copy,
)

_MOST_AXES = 4
_EXTREMA = ("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN")
_CONVOLUTIONS = ("CONV2D", "DEPTHWISE_CONV2D")
_PADDING = 4  # the argument of a convolution
_REDUCTIONS = (*_EXTREMA, "REDUCE_PRODUCT", "REDUCE_SUM")

_MARK = "ethosu_sdk_in_shape"
_ACTIVATIONS = ("CLAMP", "TABLE")
_JOINED = ("CONV2D", "SLICE")
_FUSED = (*_ACTIVATIONS, "RESCALE")
_BATCH_REDUCTIONS = ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM")
_AXES = 3  # of one batch: height, width, channels


def flatten_slices(graph: Any) -> bool:
    """Take parts of tensors of many axes from the same values with three axes: those before the cut one, itself, and
    those behind.

    Vela 5.1.0 cuts an operation on several batches into one for each. Where it reads a part of a tensor of more than
    four axes, through a RESHAPE, the pieces are cut again without end, until the stack overflows. Windowed attention
    (a Swin transformer) asks for that: query, key and value are the parts of one tensor (3, windows, heads, …).
    """
    from executorch.exir.dialects._ops import ops

    slice_copy = ops.edge.aten.slice_copy.Tensor
    found = [row for row in graph.nodes if row.target == slice_copy and row.meta["val"].dim() > _MOST_AXES]
    for node in found:
        source, axis, shape = node.args[0], node.args[1], node.meta["val"].shape
        whole = source.meta["val"].shape
        axis %= len(whole)
        flat = [math.prod(whole[:axis]), whole[axis], math.prod(whole[axis + 1 :])]
        with graph.inserting_before(node):
            joined = graph.call_function(ops.edge.aten.view_copy.default, (source, flat))
        with graph.inserting_after(node):
            restored = graph.call_function(ops.edge.aten.view_copy.default, (node, list(shape)))
        joined.meta, restored.meta = dict(source.meta), dict(node.meta)
        node.replace_all_uses_with(restored, delete_user_cb=lambda user, kept=restored: user is not kept)
        node.args = (joined, 1, *node.args[2:])
    return bool(found)


def separate_shapes(graph: Any) -> bool:
    """Put an operator that changes nothing between those whose shapes Vela mixes up.

    Vela 5.1.0 saves copies where it can: the operation behind a SLICE reads the part where it lies, and the one
    before a CONCAT, PAD or RESHAPE writes where, and in which shape, the result shall lie. Some operations are given
    another shape on their way to the NPU, or are several there. Of these, without a word:

    - reductions, and on Ethos-U55 and Ethos-U65 the first operand of a MATMUL, read the whole tensor as if it were
      the part. Attention that splits one tensor into query, key and value is made of such products.
    - maxima and minima, of truth values too, write a part of a larger tensor as if it were all of it.
    - the subtractions that begin and end a REDUCE_MIN on Ethos-U55 and Ethos-U65 read their operand in the shape that
      another reader has, or that is behind a RESHAPE or TRANSPOSE; and Vela refuses one behind which the result is
      rescaled.
    - a convolution that takes over the zeros of a PAD before it reads in the shape before the PAD: where a RESHAPE
      lies between the two, the batches of sequences are rows to it.
    - a convolution with padding of several batches reads every batch from the first one's part.
    """
    from executorch.backends.arm.tosa.specification import get_context_spec

    u55 = get_context_spec().is_U55_subset
    found = dict.fromkeys(_mixed_up(graph, u55))
    # On those families, also the operands of REDUCE_MIN that others read too, perhaps in another shape.
    minima = [
        node
        for node in graph.nodes
        if u55 and tosa_operator(node) == "REDUCE_MIN" and _is_narrow(node) and len(node.args[0].users) > 1
    ]
    for node, reader in [*((node, None) for node in found), *((node.args[0], node) for node in minima)]:
        with graph.inserting_after(node):
            same = unchanged_copy(graph, node)
        node.replace_all_uses_with(
            same,
            delete_user_cb=lambda user, same=same, reader=reader: user is not same and reader in (None, user),
        )
    return bool(found or minima)


def _mixed_up(graph: Any, u55: bool) -> Iterator[Any]:
    """The affected tensors; Vela handles those of int32 correctly."""
    readers = (*_REDUCTIONS, "MATMUL") if u55 else _REDUCTIONS
    for node in graph.nodes:
        name = tosa_operator(node)
        if name in readers:
            source = tosa_origin(node.args[0])
            if tosa_operator(source) == "SLICE" and _is_narrow(source):
                yield source
        if name in _CONVOLUTIONS and any(node.args[_PADDING]) and node.meta["val"].shape[0] > 1:
            source = tosa_origin(node.args[0])
            source = tosa_origin(source.args[0]) if tosa_operator(source) == "TRANSPOSE" else source
            if tosa_operator(source) == "SLICE" and _is_narrow(source):
                yield source
        # The maximum of a softmax goes into a subtraction, and needs nothing.
        alone = name == "REDUCE_MAX" and all(tosa_operator(user) == "RESCALE" for user in node.users)
        if name in _EXTREMA and not alone and _is_narrow(node):
            yield node
        if name == "PAD" and not node.kwargs.get("value") and _is_read_otherwise(node, _four(node)):
            yield node


def _is_read_otherwise(node: Any, shape: Sequence[int]) -> bool:
    """Whether a convolution reads `node` in another shape than `shape`, perhaps through a RESHAPE."""
    return any(
        _is_read_otherwise(user, shape)
        if tosa_operator(user) in ("IDENTITY", "RESHAPE")
        else tosa_operator(user) in _CONVOLUTIONS and _four(node) != shape
        for user in node.users
    )


def _four(node: Any) -> list[int]:
    """The shape of a tensor with ones ahead, as Vela reads it."""
    shape = list(node.meta["val"].shape)
    return [1] * (4 - len(shape)) + shape


def _is_narrow(node: Any) -> bool:
    import torch

    return node.meta["val"].dtype in (torch.bool, torch.int8, torch.int16)


# Vela 5.1.0 takes an operation on several batches apart, or gives it another shape, without what is fused into it:
#
# - It makes one operation of a CONV2D with a kernel of one element and the CLAMP or TABLE behind it, also where the
#   activation has several batches: those that follow the first then get other values, on every family. Linear layers
#   of several rows, and convolutions of batches, are such.
# - It reduces the height or width of several batches in another shape than what is fused behind: windows then lie
#   beside their values. Maxima and sums are such, and with them softmax.
# - It reads a part of a tensor of more axes where it lies, and fuses an activation of several batches into the copy,
#   or into one of the operations that transpose it.
#
# So an activation gets its values as one batch, a part's before they are transposed. A reduction and what follows it
# have three axes: those before the reduced one, itself, and those behind. No value changes.


def hoist_over_batches(graph: Any) -> bool:
    """Move activations of several batches from behind the TRANSPOSE of a part to before it."""
    found = [
        (node, moved)
        for node in graph.nodes
        if tosa_operator(node) in _ACTIVATIONS and _batches(node) > 1
        if (moved := first_transpose(node.args[0])) is not None
        and tosa_operator(tosa_origin(moved.args[0])) == "SLICE"
    ]
    for node, moved in found:
        bring_forward(node, moved)
    return bool(found)


def make_joining_pass() -> Any:
    """The pass that gives operations another shape; its class is made here because its base is expensive to
    import."""
    from executorch.backends.arm._passes import ArmPass
    from executorch.exir.pass_base import PassResult

    class JoinBatchesPass(ArmPass):  # type: ignore[misc]
        """Gives operations another shape, in which they see one batch."""

        _passes_required_after: frozenset[type[Any]] = frozenset()

        def call(self, graph_module: Any) -> Any:
            found = dict(_shapes(graph_module.graph))
            for node, shape in found.items():
                node.meta[_MARK] = shape
            if found:
                graph_module = super().call(graph_module).graph_module
            return PassResult(graph_module, bool(found))

        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any, updated: Any = False) -> Any:
            if _MARK not in meta.data:
                return super().call_operator(op, args, kwargs, meta, updated)
            shape, axis = meta.data.pop(_MARK)
            before = list(args[0].data.shape)
            if axis is not None:
                before[kwargs["axis"]], kwargs = 1, {**kwargs, "axis": axis}
            given = self._reshaped(args[0], shape, meta), *args[1:]
            return self._reshaped(super().call_operator(op, given, kwargs, meta), before, meta)

        def _reshaped(self, value: Any, shape: list[int], meta: Any) -> Any:
            from executorch.exir.dialects._ops import ops

            tosa = ops.backend.tosa
            sizes = super().call_shape_operator(tosa.CONST_SHAPE.default, (shape,), {}, meta, True)
            return super().call_operator(tosa.RESHAPE.default, (value, sizes), {}, meta, True)

    return JoinBatchesPass()


def _shapes(graph: Any) -> Iterator[tuple[Any, tuple[list[int], int | None]]]:
    """The operations that need another shape: that of their input, and the axis that they reduce in it."""
    from executorch.backends.arm.tosa.specification import get_context_spec

    # Ethos-U55 and Ethos-U65 have no minimum: Vela subtracts around a maximum, and keeps the shape.
    reductions = [
        name for name in _BATCH_REDUCTIONS if name != "REDUCE_MIN" or not get_context_spec().is_U55_subset
    ]
    reduced: dict[Any, list[int]] = {}  # the results of reductions, and of what Vela may fuse into them
    for node in graph.nodes:
        name = tosa_operator(node)
        if name in reductions and _batches(node.args[0]) > 1:
            shape, axis = _around(node.args[0].meta["val"].shape, node.kwargs["axis"])
            reduced[node] = [size if at != axis else 1 for at, size in enumerate(shape)]
            yield node, (shape, axis)
        elif name in _FUSED and node.args[0] in reduced and not _widens(node):
            reduced[node] = reduced[node.args[0]]
            yield node, (reduced[node], None)
        elif (
            name in _ACTIVATIONS
            and _batches(node) > 1
            and tosa_operator(tosa_origin(node.args[0])) in _JOINED
        ):
            batches = list(node.meta["val"].shape)
            one = [1, math.prod(batches[:-_AXES]) * batches[-_AXES], *batches[1 - _AXES :]]
            yield node, (one, None)


def _widens(node: Any) -> bool:
    """Whether `node` reads stored values for an operation that computes with more bits, and is fused into that.

    Between two RESHAPEs of its own, Vela 5.1.0 reserves memory for those values by the shape in between, and what
    several operations read may need more: channels are stored in groups of 16.
    """
    return tosa_operator(node) == "RESCALE" and _is_narrow(node.args[0]) and not _is_narrow(node)


def _batches(node: Any) -> int:
    return math.prod(node.meta["val"].shape[:-_AXES])


def _around(shape: Sequence[int], axis: int) -> tuple[list[int], int]:
    """`shape` with three axes, and which of them is `axis`: the one in the middle, or the channels if it is the
    last."""
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return ([before, shape[axis], behind], 1) if axis + 1 < len(shape) else ([1, before, shape[axis]], 2)
