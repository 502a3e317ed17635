"""A lowered program by the references in Python that ExecuTorch registers beside its ``cortex_m::`` operators.

They say which bits a program gives, as long as the rest of it only moves values or is the NPU's: delegates run on the
SDK's NPU model.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

from ethosu_sdk import npu

Tensors = tuple[Any, ...]

_CORTEX_M = "cortex_m::"
_DELEGATE = "executorch_call_delegate"
_MOVES = frozenset(
    f"aten::{name}"
    for name in (
        *("view_copy", "permute_copy", "cat", "slice_copy", "select_copy", "squeeze_copy", "unsqueeze_copy"),
        *("expand_copy", "split_copy", "split_with_sizes_copy", "repeat", "clone", "alias_copy"),
    )
) | {"dim_order_ops::_clone_dim_order", "dim_order_ops::_to_dim_order_copy"}


def decides(operators: Sequence[str]) -> bool:
    """Whether the references decide the results of a program that calls these `operators` (without overload) on the
    CPU: ``cortex_m::`` ones, and others that only move values."""
    known = {name for name in operators if name.startswith(_CORTEX_M) or name in _MOVES}
    return known == set(operators) and any(name.startswith(_CORTEX_M) for name in known)


def module(edge: Any) -> Callable[..., Any]:
    """What computes the outputs of `edge`, a program manager, from inputs; its state goes on from call to call."""
    import torch

    from ethosu_sdk.aot.graph.tensors import as_numpy

    graph = edge.exported_program().module(check_guards=False)

    shapes = {
        node.name: [tuple(value.shape) for value in node.meta["val"]]
        for node in edge.exported_program().graph.nodes
        if _DELEGATE in str(node.target)
    }

    class References(torch.fx.Interpreter):  # type: ignore[misc]
        """Runs delegates on the NPU model, and everything else as PyTorch does."""

        def run_node(self, node: Any) -> Any:
            if node.name not in shapes:
                return super().run_node(node)
            (lowered, *inputs), _ = self.fetch_args_kwargs_from_env(node)
            given = npu.run(bytes(lowered.processed_bytes), [as_numpy(row) for row in inputs]).outputs
            pairs = zip(given, shapes[node.name], strict=True)
            return [torch.from_numpy(row.copy()).reshape(shape) for row, shape in pairs]

    def run(*inputs: Any) -> Any:
        with _wide_sums():
            return References(graph).run(*inputs)

    return run


class _Functional:
    """``torch.nn.functional``, whose convolutions of integers are computed in float64, which is exact: PyTorch itself
    has few of them for integers."""

    def __getattr__(self, name: str) -> Any:
        import torch
        from torch.nn import functional

        function = getattr(functional, name)
        if not name.startswith("conv"):
            return function

        def wide(x: Any, *args: Any, **kwargs: Any) -> Any:
            def doubled(value: Any) -> Any:
                return value.double() if isinstance(value, torch.Tensor) else value

            named = {key: doubled(value) for key, value in kwargs.items()}
            return function(x.double(), *map(doubled, args), **named).to(x.dtype)

        return wide


def _wide_sums() -> contextlib.AbstractContextManager[Any]:
    """A context in which the references compute with :class:`_Functional`."""
    operators = importlib.import_module("executorch.backends.cortex_m.ops.operators")
    return mock.patch.object(operators, "F", _Functional())
