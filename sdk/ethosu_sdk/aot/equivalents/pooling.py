"""Pooling without a batch axis, and over three axes.

The quantiser of ExecuTorch 1.5.1 fails at pooling of a tensor of three axes (channels, height, width), and neither
the NPU nor the CPU has pooling over depth. Pooling is separable: first height and width, then depth.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ethosu_sdk.aot.equivalents.convolutions import unbatched

Function = Callable[..., Any]
_MANY_WINDOWS = 16


def _separate(function: Any, x: Any, window: Sequence[Sequence[int]], *options: Any) -> Any:
    """`function`, of two axes, over height and width and then over depth; `window` has a row for kernel, stride …,
    each for depth, height and width."""
    single = x.dim() == 4
    batch, channels, depth, height, width = (1, *x.shape) if single else x.shape
    plane = function(
        x.reshape(batch, channels * depth, height, width), *(row[1:] for row in window), *options
    )
    rows, columns = plane.shape[2:]
    neutral = (1, 1, 0, 1)  # kernel, stride, padding and dilation of an axis that is left as it is
    along = [[row[0], rest] for row, rest in zip(window, neutral, strict=False)]
    result = function(plane.reshape(batch, channels, depth, rows * columns), *along, *options)
    result = result.reshape(batch, channels, -1, rows, columns)
    return result.squeeze(0) if single else result


def _three(value: Any) -> list[int]:
    return [value] * 3 if isinstance(value, int) else list(value) * (3 // len(value))


def _maximum(
    x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    from torch.nn import functional

    window = [_three(row) for row in (kernel_size, stride or kernel_size, padding, dilation)]
    return _separate(functional.max_pool2d, x, window, ceil_mode)


def _average(
    x: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    from torch.nn import functional

    del divisor_override
    window = [_three(row) for row in (kernel_size, stride or kernel_size, padding)]
    return _separate(functional.avg_pool2d, x, window, ceil_mode, count_include_pad)


def _choose_average(node: Any) -> Function | None:
    given = dict(
        zip(
            ("x", "kernel_size", "stride", "padding", "ceil_mode", "count", "divisor"),
            node.args,
            strict=False,
        )
    )
    return None if given.get("divisor") is not None else _average


def _adaptive(reduction: str) -> Function:
    """Adaptive pooling by `reduction`, one axis after the other."""

    def call(x: Any, output_size: Any) -> Any:
        import torch

        sizes = [output_size] * 2 if isinstance(output_size, int) else output_size
        for axis, size in enumerate(sizes, -len(sizes)):
            whole = x.shape[axis]
            windows = [
                (index * whole // size, -(-(index + 1) * whole // size)) for index in range(size or whole)
            ]
            parts = [
                getattr(x.narrow(axis, first, last - first), reduction)(axis, True) for first, last in windows
            ]
            x = torch.cat(parts, axis)
        return x

    return call


def _choose_adaptive_average(node: Any) -> Function | None:
    """Windows that differ: ExecuTorch makes an operator for each of them."""
    value, sizes = node.args[0].meta["val"], node.args[1]
    if value.dim() == 3:
        return _single_average(node)
    uneven = any(size and whole % size for whole, size in zip(value.shape[2:], sizes, strict=True))
    return _adaptive("mean") if uneven and sizes[0] * sizes[1] > _MANY_WINDOWS else None


def _choose_adaptive_maximum(node: Any) -> Function | None:
    taken = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    maximum = _adaptive("amax")
    return (lambda x, size: (maximum(x, size), None)) if taken <= {0} else None


_single_average = unbatched("adaptive_avg_pool2d", 2)
CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.max_pool3d.default": lambda node: _maximum,
    "aten.avg_pool3d.default": _choose_average,
    "aten.avg_pool2d.default": unbatched("avg_pool2d", 2),
    "aten.adaptive_avg_pool2d.default": _choose_adaptive_average,
    "aten.adaptive_max_pool1d.default": _choose_adaptive_maximum,
    "aten.adaptive_max_pool2d.default": _choose_adaptive_maximum,
    "aten.avg_pool1d.default": unbatched("avg_pool1d", 1),
    "aten.adaptive_avg_pool1d.default": unbatched("adaptive_avg_pool1d", 1),
}
