"""Operators without a kernel: sorting and its kin as `topk`, which the firmware and ExecuTorch have, and others.

The values are the same. The places of equal values are not: where a model uses those of a sort, it stays as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
_MOST_STEPS = 64  # of an operator that is unrolled


def _values_alone(function: Function) -> Callable[[Any], Function | None]:
    """A choice for operators that give (values, indices): `function` where nothing takes the indices."""

    def choose(node: Any) -> Function | None:
        taken = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
        return function if taken <= {0} and node.args[0].meta["val"].dim() else None

    return choose


def _sort(x: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    del stable
    return x.topk(x.shape[dim], dim, descending)


def _kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, indices = (part.narrow(dim, k - 1, 1) for part in x.topk(k, dim, False))
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _median_along(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return _kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def _extreme(reduction: str, place: str) -> Function:
    def call(x: Any, dim: int, keepdim: bool = False) -> Any:
        return getattr(x, reduction)(dim, keepdim), getattr(x, place)(dim, keepdim)

    return call


def _bucket(x: Any, boundaries: Any, right: bool = False) -> Any:
    """How many of the sorted `boundaries` lie before each value."""
    value = x.unsqueeze(-1)
    return ((boundaries <= value) if right else (boundaries < value)).sum(-1)


def _bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    import torch

    return _bucket(x, boundaries, right).to(torch.int32 if out_int32 else torch.int64)


def _searched(
    boundaries: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    del sorter
    return _bucketize(x, boundaries, out_int32=out_int32, right=right or side == "right")


def _one_row(node: Any) -> Function | None:
    """For boundaries that are the same for every value, and sorted."""
    return _searched if node.args[0].meta["val"].dim() == 1 and not node.kwargs.get("sorter") else None


def _cumulative_product(x: Any, dim: int, *, dtype: Any = None) -> Any:
    import torch

    parts = list((x if dtype is None else x.to(dtype)).unbind(dim))
    for index in range(1, len(parts)):
        parts[index] = parts[index - 1] * parts[index]
    return torch.stack(parts, dim)


def _short(function: Function) -> Callable[[Any], Function | None]:
    def choose(node: Any) -> Function | None:
        shape = node.args[0].meta["val"].shape
        return function if shape and shape[node.args[1]] <= _MOST_STEPS else None

    return choose


def _gathered(x: Any, indices: Any, dim: int | None = None) -> Any:
    return x.reshape(-1).gather(0, indices.reshape(-1)) if dim is None else x.gather(dim, indices)


def _same_size(node: Any) -> Function | None:
    x, indices = (argument.meta["val"] for argument in node.args[:2])
    dim = node.args[2] if len(node.args) > 2 else None
    if dim is None:
        return _gathered
    sizes = [
        (a, b)
        for axis, (a, b) in enumerate(zip(x.shape, indices.shape, strict=True))
        if axis != dim % x.dim()
    ]
    return _gathered if all(a == b for a, b in sizes) else None


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    shape = list(x.shape)
    shape[dim] = index.numel()
    return x.index_copy(dim, index, x.new_full(shape, value))


SORTING_CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.index_fill.int_Scalar": lambda node: _index_fill if node.args[0].meta["val"].dim() else None,
    "aten.sort.default": _values_alone(_sort),
    "aten.sort.stable": _values_alone(
        lambda x, *, stable=False, dim=-1, descending=False: _sort(x, dim, descending)
    ),
    "aten.kthvalue.default": _values_alone(_kth),
    "aten.median.dim": _values_alone(_median_along),
    "aten.median.default": lambda node: lambda x: _median_along(x.reshape(-1))[0],
    "aten.max.dim": lambda node: _extreme("amax", "argmax"),
    "aten.bucketize.Tensor": lambda node: _bucketize,
    "aten.searchsorted.Tensor": _one_row,
    "aten.cumprod.default": _short(_cumulative_product),
    "aten.take_along_dim.default": _same_size,
    "aten.take.default": lambda node: (
        lambda x, indices: x.reshape(-1).index_select(0, indices.reshape(-1)).reshape(indices.shape)
    ),
    "aten.min.dim": lambda node: _extreme("amin", "argmin"),
}
