"""Operations on several batches that Vela would give wrong values.

Vela 5.1.0 takes an operation on several batches apart, or gives it another shape, without what is fused into it:

- It makes one operation of a CONV2D with a kernel of one element and the CLAMP or TABLE behind it, also where the
  activation has several batches: those that follow the first then get other values, on every family. Linear layers
  of several rows, and convolutions of batches, are such.
- It reduces the height or width of several batches in another shape than what is fused behind: windows then lie
  beside their values. Maxima and sums are such, and with them softmax.
- It reads a part of a tensor of more axes where it lies, and fuses an activation of several batches into the copy, or
  into one of the operations that transpose it.

So an activation gets its values as one batch, a part's before they are transposed. A reduction and what follows it
have three axes: those before the reduced one, itself, and those behind. No value changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import bring_forward, first_transpose, operator, origin

_MARK = "ethosu_sdk_in_shape"
_ACTIVATIONS = ("CLAMP", "TABLE")
_JOINED = ("CONV2D", "SLICE")
_FUSED = (*_ACTIVATIONS, "RESCALE")
_REDUCTIONS = ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM")
_AXES = 3  # of one batch: height, width, channels


def hoist(graph: Any) -> bool:
    """Move activations of several batches from behind the TRANSPOSE of a part to before it."""
    found = [
        (node, moved)
        for node in graph.nodes
        if operator(node) in _ACTIVATIONS and _batches(node) > 1
        if (moved := first_transpose(node.args[0])) is not None and operator(origin(moved.args[0])) == "SLICE"
    ]
    for node, moved in found:
        bring_forward(node, moved)
    return bool(found)


def joining_pass() -> Any:
    """The pass, as an object; its class is made here because its base is expensive to import."""
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
        name for name in _REDUCTIONS if name != "REDUCE_MIN" or not get_context_spec().is_U55_subset
    ]
    reduced: dict[Any, list[int]] = {}  # the results of reductions, and of what Vela may fuse into them
    for node in graph.nodes:
        name = operator(node)
        if name in reductions and _batches(node.args[0]) > 1:
            shape, axis = _around(node.args[0].meta["val"].shape, node.kwargs["axis"])
            reduced[node] = [size if at != axis else 1 for at, size in enumerate(shape)]
            yield node, (shape, axis)
        elif name in _FUSED and node.args[0] in reduced:
            reduced[node] = reduced[node.args[0]]
            yield node, (reduced[node], None)
        elif name in _ACTIVATIONS and _batches(node) > 1 and operator(origin(node.args[0])) in _JOINED:
            batches = list(node.meta["val"].shape)
            one = [1, math.prod(batches[:-_AXES]) * batches[-_AXES], *batches[1 - _AXES :]]
            yield node, (one, None)


def _batches(node: Any) -> int:
    return math.prod(node.meta["val"].shape[:-_AXES])


def _around(shape: Sequence[int], axis: int) -> tuple[list[int], int]:
    """`shape` with three axes, and which of them is `axis`: the one in the middle, or the channels if it is the
    last."""
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return ([before, shape[axis], behind], 1) if axis + 1 < len(shape) else ([1, before, shape[axis]], 2)
