"""Convolutions, pooling and padding that ExecuTorch 1.5.1 or Vela 5.1.0 cannot lower, by equivalent operators."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

# The quantiser of ExecuTorch 1.5.1 marks a convolution, and its decomposition then puts a `pad` or an `unsqueeze`
# that is not marked between it and its conversions: the convolution stays on the CPU. Vela has Conv3d for the
# Ethos-U85 alone, and the CPU's kernels do not have it. Pooling is separable: first height and width, then depth.

Function = Callable[..., Any]
Choice = Callable[[Any], Function | None]

_GROUPS = 6  # the argument of a transposed convolution
_MANY_WINDOWS = 16

# What Ethos-U55 and Ethos-U65 convolve: strides, taps along height, and elements of a kernel.
MOST_STRIDE = 3
MOST_TAPS = 64
MOST_ELEMENTS = 4096


def part(x: Any, axis: int, start: int, end: int, step: int = 1) -> Any:
    """A part of `x` along an axis, by an operator that ExecuTorch's quantiser knows: not `narrow`."""
    import torch

    is_whole = start == 0 and end == x.shape[axis] and step == 1
    return x if is_whole else torch.ops.aten.slice.Tensor(x, axis, start, end, step)


def pair(value: Any, axes: int, neutral: int) -> list[int]:
    """Numbers for height and width, of an operator over two axes or one; a map without a height gets the neutral
    number for it."""
    numbers = [value] if isinstance(value, int) else list(value)
    return [neutral, numbers[0]] if axes == 1 else [numbers[0], numbers[-1]]


def _explicit(
    convolution: str,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """A convolution whose padding is a word, with numbers; more behind than before becomes a `pad`."""
    from torch.nn import functional

    sizes = weight.shape[2:]
    steps = [dilation] * len(sizes) if isinstance(dilation, int) else list(dilation)
    steps *= len(sizes) // len(steps)
    total = [step * (size - 1) if padding == "same" else 0 for size, step in zip(sizes, steps, strict=True)]
    before = [count // 2 for count in total]
    if any(count % 2 for count in total):
        pads = [part for count in reversed(total) for part in (count // 2, count - count // 2)]
        x, before = functional.pad(x, pads), [0] * len(total)
    single = x.dim() == len(sizes) + 1
    call = _volume if convolution == "conv3d" else getattr(functional, convolution)
    result = call(x.unsqueeze(0) if single else x, weight, bias, stride, before, dilation, groups)
    return result.squeeze(0) if single else result


def _volume(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """A conv3d as one conv2d: the planes that its kernel sees at a depth become channels, and the depths a batch."""
    import torch
    from torch.nn import functional

    strides, paddings, dilations = (_three(row) for row in (stride, padding, dilation))
    kernels, planes, _, *kernel = weight.shape
    taps = weight.shape[2]
    x = functional.pad(x, (0, 0, 0, 0, paddings[0], paddings[0])) if paddings[0] else x
    depths = (x.shape[2] - dilations[0] * (taps - 1) - 1) // strides[0] + 1
    seen = [
        x[:, group : group + planes, first : first + strides[0] * (depths - 1) + 1 : strides[0]]
        for group in range(0, x.shape[1], planes)
        for first in range(0, taps * dilations[0], dilations[0])
    ]
    batch, channels, _, height, width = x.shape
    flat = torch.cat(seen, 1).transpose(1, 2).reshape(batch * depths, taps * channels, height, width)
    kernel2d = weight.transpose(1, 2).reshape(kernels, taps * planes, *kernel)
    result = functional.conv2d(flat, kernel2d, bias, strides[1:], paddings[1:], dilations[1:], groups)
    return result.reshape(batch, depths, kernels, *result.shape[2:]).transpose(1, 2)


def _three(value: Any) -> list[int]:
    return [value] * 3 if isinstance(value, int) else list(value) * (3 // len(value))


def is_grouped_volume(node: Any) -> bool:
    """Whether `node` is a conv3d with groups. As one conv2d of a batch, Vela computes other values."""
    if not str(node.target).startswith("aten.conv3d."):
        return False
    x, weight = node.args[0].meta["val"], node.args[1].meta["val"]
    return bool(x.shape[-4] != weight.shape[1])


def _unbatched(name: str, axes: int) -> Choice:
    """A choice for the function `name` of ``torch.nn.functional`` over `axes` axes: its input gets a batch of one."""

    def choose(node: Any) -> Function | None:
        return call if node.args[0].meta["val"].dim() == axes + 1 else None

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, name)(x.unsqueeze(0), *args, **kwargs).squeeze(0)

    return choose


def _transposed(name: str, axes: int) -> Choice:
    """A choice for the transposed convolution `name`: one without a batch axis gets one, and the bias of one with
    groups is added behind it. ExecuTorch 1.5.1 gives such a bias one scale for each channel of the input."""
    batched = _unbatched(name, axes)

    def choose(node: Any) -> Function | None:
        bias = node.args[2] if len(node.args) > 2 else None
        if bias is None or groups_of_transposed(node) == 1 or node.args[0].meta["val"].dim() < axes + 2:
            return batched(node)
        return call if node.args[0].meta["val"].shape[1] != bias.meta["val"].shape[0] else None

    def call(x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, name)(x, weight, None, *args, **kwargs) + bias.reshape(-1, *(1,) * axes)

    return choose


def groups_of_transposed(node: Any) -> int:
    """The groups of a transposed convolution; one for another node."""
    if not str(node.target).startswith("aten.conv_transpose"):
        return 1
    groups: int = node.args[_GROUPS] if len(node.args) > _GROUPS else node.kwargs.get("groups", 1)
    return groups


CONVOLUTION_CHOICES: dict[str, Choice] = {
    "aten.conv1d.padding": lambda node: functools.partial(_explicit, "conv1d"),
    "aten.conv2d.padding": lambda node: functools.partial(_explicit, "conv2d"),
    "aten.conv3d.padding": lambda node: functools.partial(_explicit, "conv3d"),
    "aten.conv1d.default": _unbatched("conv1d", 1),
    "aten.conv2d.default": _unbatched("conv2d", 2),
    "aten.conv3d.default": lambda node: _volume if node.args[0].meta["val"].dim() == 5 else None,
    "aten.conv_transpose1d.default": _transposed("conv_transpose1d", 1),
    "aten.conv_transpose2d.input": _transposed("conv_transpose2d", 2),
}


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
    divisor = node.args[6] if len(node.args) > 6 else None
    return _average if divisor is None else None


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
            parts = [getattr(part(x, axis, first, last), reduction)(axis, True) for first, last in windows]
            x = torch.cat(parts, axis)
        return x

    return call


def _choose_adaptive_average(node: Any) -> Function | None:
    """Windows that differ: ExecuTorch makes an operator for each of them."""
    value, sizes = node.args[0].meta["val"], node.args[1]
    if value.dim() == 3:
        return _unbatched("adaptive_avg_pool2d", 2)(node)
    uneven = any(size and whole % size for whole, size in zip(value.shape[2:], sizes, strict=True))
    return _adaptive("mean") if uneven and sizes[0] * sizes[1] > _MANY_WINDOWS else None


def _choose_adaptive_maximum(node: Any) -> Function | None:
    taken = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    maximum = _adaptive("amax")
    return (lambda x, size: (maximum(x, size), None)) if taken <= {0} else None


POOLING_CHOICES: dict[str, Choice] = {
    "aten.max_pool3d.default": lambda node: _maximum,
    "aten.avg_pool3d.default": _choose_average,
    "aten.avg_pool2d.default": _unbatched("avg_pool2d", 2),
    "aten.adaptive_avg_pool2d.default": _choose_adaptive_average,
    "aten.adaptive_max_pool1d.default": _choose_adaptive_maximum,
    "aten.adaptive_max_pool2d.default": _choose_adaptive_maximum,
    "aten.avg_pool1d.default": _unbatched("avg_pool1d", 1),
    "aten.adaptive_avg_pool1d.default": _unbatched("adaptive_avg_pool1d", 1),
}


def _cropped(x: Any, sizes: Sequence[int], *options: Any) -> Any:
    """Padding of which negative sizes crop, in any mode: a slice, and the padding that is left."""
    from torch.nn import functional

    for axis, (before, behind) in enumerate(zip(sizes[::2], sizes[1::2], strict=True), 1):
        gone = max(0, -before), max(0, -behind)
        if any(gone):
            x = x.narrow(-axis, gone[0], x.shape[-axis] - sum(gone))
    added = [max(0, size) for size in sizes]
    return functional.pad(x, added, *options) if any(added) else x


def _crops(node: Any) -> bool:
    return any(size < 0 for size in node.args[1])


PADDING_CHOICES: dict[str, Choice] = {
    "aten.pad.default": lambda node: _cropped if _crops(node) else None,
    "aten.constant_pad_nd.default": lambda node: (
        (lambda x, sizes, value=0: _cropped(x, sizes, "constant", value)) if _crops(node) else None
    ),
}
