"""Replaces divisions of integers by a number with divisions by a tensor: the CPU kernels have only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def _by_number(node: Any) -> Function | None:
    """A choice for integers that are divided by a number."""
    import torch

    integer = not node.args[0].meta["val"].dtype.is_floating_point
    return _divided if integer and not isinstance(node.args[1], torch.fx.Node) else None


def _divided(x: Any, divisor: int, *, rounding_mode: str = "floor") -> Any:
    import torch

    return torch.div(x, torch.full((), divisor, dtype=x.dtype), rounding_mode=rounding_mode)


CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.floor_divide.default": _by_number,
    "aten.floor_divide.Scalar": _by_number,
    "aten.div.Tensor_mode": _by_number,
    "aten.div.Scalar_mode": _by_number,
}
