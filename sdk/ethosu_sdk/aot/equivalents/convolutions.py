"""Convolutions with uneven padding, without a batch axis, over three axes, and transposed with groups.

The quantiser of ExecuTorch 1.5.1 marks the operator, and its decomposition then puts a `pad` or an `unsqueeze` that
is not marked between it and its conversions: the convolution stays on the CPU. Vela has Conv3d for the Ethos-U85
alone, and the CPU's kernels do not have it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

_GROUPS = 6  # the argument of a transposed convolution


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
    call = volume if convolution == "conv3d" else getattr(functional, convolution)
    result = call(x.unsqueeze(0) if single else x, weight, bias, stride, before, dilation, groups)
    return result.squeeze(0) if single else result


def volume(
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


def _volume(node: Any) -> Function | None:
    return volume if node.args[0].meta["val"].dim() == 5 else None


def is_grouped_volume(node: Any) -> bool:
    """Whether `node` is a conv3d with groups. As one conv2d of a batch, Vela computes other values."""
    if not str(node.target).startswith("aten.conv3d."):
        return False
    x, weight = node.args[0].meta["val"], node.args[1].meta["val"]
    return bool(x.shape[-4] != weight.shape[1])


def unbatched(name: str, axes: int) -> Callable[[Any], Function | None]:
    """A choice for the function `name` of ``torch.nn.functional`` over `axes` axes: its input gets a batch of one."""

    def choose(node: Any) -> Function | None:
        return call if node.args[0].meta["val"].dim() == axes + 1 else None

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, name)(x.unsqueeze(0), *args, **kwargs).squeeze(0)

    return choose


def _transposed(name: str, axes: int) -> Callable[[Any], Function | None]:
    """A choice for the transposed convolution `name`: one without a batch axis gets one, and the bias of one with
    groups is added behind it. ExecuTorch 1.5.1 gives such a bias one scale for each channel of the input."""
    batched = unbatched(name, axes)

    def choose(node: Any) -> Function | None:
        bias = node.args[2] if len(node.args) > 2 else None
        if bias is None or groups_of_transposed(node) == 1 or node.args[0].meta["val"].dim() < axes + 2:
            return batched(node)
        return call if node.args[0].meta["val"].shape[1] != bias.meta["val"].shape[0] else None

    def call(x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, name)(x, weight, None, *args, **kwargs) + bias.reshape(-1, *(1,) * axes)

    return choose


def _padded(convolution: str) -> Callable[[Any], Function]:
    return lambda node: functools.partial(_explicit, convolution)


def groups_of_transposed(node: Any) -> int:
    """The groups of a transposed convolution; one for another node."""
    if not str(node.target).startswith("aten.conv_transpose"):
        return 1
    groups: int = node.args[_GROUPS] if len(node.args) > _GROUPS else node.kwargs.get("groups", 1)
    return groups


CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.conv1d.padding": _padded("conv1d"),
    "aten.conv2d.padding": _padded("conv2d"),
    "aten.conv3d.padding": _padded("conv3d"),
    "aten.conv1d.default": unbatched("conv1d", 1),
    "aten.conv2d.default": unbatched("conv2d", 2),
    "aten.conv3d.default": _volume,
    "aten.conv_transpose1d.default": _transposed("conv_transpose1d", 1),
    "aten.conv_transpose2d.input": _transposed("conv_transpose2d", 2),
}
