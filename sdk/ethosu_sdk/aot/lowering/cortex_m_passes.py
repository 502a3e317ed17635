"""The passes of ExecuTorch's Cortex-M backend with explicit layouts, and ours in the place of some.

The backend's own (ExecuTorch 1.5.1) take every convolution and pooling for a quantised one, and refuse a program with
another. They fuse an activation only if the calibrated range ends at its bounds, and keep some activations whole that
no kernel computes in floating point.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from ethosu_sdk.aot.repairs import passes

_PACKAGE = "executorch.backends.cortex_m.passes"
_HARDTANH = (-1.0, 1.0)  # its bounds where a call has none
_KEYS = ("input_qparams", "output_qparams")  # under which the backend has a node's quantisation


def listed() -> list[Any]:
    """The classes of the passes, in order."""
    manager = importlib.import_module(f"{_PACKAGE}.cortex_m_pass_manager").CortexMPassManager
    own = {
        "ActivationFusionPass": _fusion,
        "ConvertConv1dToConv2dPass": _images,
        "ValidateCortexMExplicitLayoutPass": _validation,
    }
    found = manager.explicit_layout_pass_list
    return [
        _portable_activations(),
        _explicit_bounds(),
        *(own[row.__name__](row) if row.__name__ in own else row for row in found),
    ]


def mark_key() -> str:
    """Under which of a node's custom notes a quantiser leaves whether it marked the node."""
    from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo

    return str(ArmAnnotationInfo.CUSTOM_META_KEY)


def is_marked(meta: Mapping[str, Any]) -> bool:
    """Whether these are the notes of a node that a quantiser marked."""
    return bool(getattr(meta.get("custom", {}).get(mark_key()), "quantized", False))


def _is_quantised(node: Any) -> bool:
    return any(node.meta.get(key) for key in _KEYS)


def _fusion(base: Any) -> Any:
    """An activation's bounds that lie within the calibrated range narrow the values that the operator before it may
    give. A hard sigmoid changes the scale too: it keeps the backend's conditions."""
    from executorch.exir.dialects._ops import ops

    class Fusion(base):  # type: ignore[misc]
        def _get_validated_qparams(self, node: Any, input_node: Any) -> Any:
            rescales = node.target == ops.edge.aten.hardsigmoid.default
            self.MAX_POOL_OPS = base.MAX_POOL_OPS if rescales else base.FUSE_OPS
            return super()._get_validated_qparams(node, input_node)

    return Fusion


def _images(base: Any) -> Any:
    """A convolution in floating point keeps its axes."""

    class Images(base):  # type: ignore[misc]
        def _conv1d_weight_node(self, node: Any) -> Any:
            return super()._conv1d_weight_node(node) if _is_quantised(node) else None

    return Images


def _validation(base: Any) -> Any:
    """Only a quantised operator must have its layout changed."""
    import torch
    from executorch.backends.transforms.channels_last_layout import LAYOUT_PERMUTE_COPY

    targets = importlib.import_module(base.__module__)._EXPLICIT_LAYOUT_OP_MAP

    def check(graph: Any) -> bool:
        for node in graph.nodes:
            if node.target in targets and _is_quantised(node):
                raise RuntimeError("the backend has no kernel for this variant of the operator")
            if node.target == LAYOUT_PERMUTE_COPY and node.args[0].meta["val"].dtype != torch.int8:
                raise RuntimeError("the values of an image are not int8")
        return False

    return passes.class_of_edge("LayoutValidationPass", check)


def _explicit_bounds() -> Any:
    """The backend reads both bounds of a hardtanh from its arguments."""
    from executorch.exir.dialects._ops import ops

    target = ops.edge.aten.hardtanh.default

    def complete(_graph: Any, node: Any) -> None:
        named = [
            node.kwargs.get(name, value)
            for name, value in zip(("min_val", "max_val"), _HARDTANH, strict=True)
        ]
        node.args = (*node.args, *named[len(node.args) - 1 :])
        node.kwargs = {}

    is_short = lambda node: node.target == target and len(node.args) < 1 + len(_HARDTANH)  # noqa: E731
    return passes.class_of_edge("ExplicitBoundsPass", passes.of_each(is_short, complete))


def _portable_activations() -> Any:
    """Activations that are left in floating point, by operators that have a kernel."""
    from executorch.exir.dialects._ops import ops
    from executorch.exir.pass_base import ExportPass

    aten = ops.edge.aten

    class PortableActivations(ExportPass):  # type: ignore[misc]
        def call_operator(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any) -> Any:
            def call(target: Any, *values: Any) -> Any:
                return super(PortableActivations, self).call_operator(target, values, {}, meta)

            def gate(x: Any) -> Any:
                return call(
                    aten.mul.Scalar,
                    call(aten.hardtanh.default, call(aten.add.Scalar, x, 3.0), 0.0, 6.0),
                    1 / 6,
                )

            replacements: Mapping[Any, Callable[[Any], Any]] = {
                aten.silu.default: lambda x: call(aten.mul.Tensor, x, call(aten.sigmoid.default, x)),
                aten.hardsigmoid.default: gate,
                aten.hardswish.default: lambda x: call(aten.mul.Tensor, x, gate(x)),
            }
            if op in replacements and not is_marked(meta.data):
                return replacements[op](args[0])
            return super().call_operator(op, args, kwargs, meta)

    return PortableActivations
