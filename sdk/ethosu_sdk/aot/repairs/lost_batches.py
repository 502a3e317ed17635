"""Batches after which Vela would lose an activation.

Vela 5.1.0 makes one operation of a CONV2D with a kernel of one element and the CLAMP or TABLE behind it, also where
the activation has several batches: those that follow the first then get other values, on every family. Linear layers
of several rows, and convolutions of batches, are such.

So the activation gets its values as one batch.
"""

from __future__ import annotations

import math
from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import operator, origin

_MARK = "ethosu_sdk_one_batch"
_ACTIVATIONS = ("CLAMP", "TABLE")
_AXES = 3  # of one batch: height, width, channels


def joining_pass() -> Any:
    """The pass, as an object; its class is made here because its base is expensive to import."""
    from executorch.backends.arm._passes import ArmPass
    from executorch.exir.pass_base import PassResult

    class JoinBatchesPass(ArmPass):  # type: ignore[misc]
        """Lets activations behind convolutions see one batch."""

        _passes_required_after: frozenset[type[Any]] = frozenset()

        def call(self, graph_module: Any) -> Any:
            found = [node for node in graph_module.graph.nodes if _is_fused(node)]
            for node in found:
                node.meta[_MARK] = True
            if found:
                graph_module = super().call(graph_module).graph_module
            return PassResult(graph_module, bool(found))

        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any, updated: Any = False) -> Any:
            if _MARK not in meta.data:
                return super().call_operator(op, args, kwargs, meta, updated)
            del meta.data[_MARK]
            shape = list(args[0].data.shape)
            one = [1, math.prod(shape[:-_AXES]) * shape[-_AXES], *shape[1 - _AXES :]]
            result = super().call_operator(op, (self._reshaped(args[0], one, meta), *args[1:]), kwargs, meta)
            return self._reshaped(result, shape, meta)

        def _reshaped(self, value: Any, shape: list[int], meta: Any) -> Any:
            from executorch.exir.dialects._ops import ops

            tosa = ops.backend.tosa
            sizes = super().call_shape_operator(tosa.CONST_SHAPE.default, (shape,), {}, meta, True)
            return super().call_operator(tosa.RESHAPE.default, (value, sizes), {}, meta, True)

    return JoinBatchesPass()


def _is_fused(node: Any) -> bool:
    """Whether Vela would make one operation of the activation `node` and a convolution, for several batches."""
    if operator(node) not in _ACTIVATIONS or math.prod(node.meta["val"].shape[:-_AXES]) == 1:
        return False
    return operator(origin(node.args[0])) == "CONV2D"
