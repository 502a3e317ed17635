"""Rewrites normalisations that a later pass would lose.

Batch normalisation of a convolution's result that others read too, as in residual networks that normalise first:
torchao 0.18's ``_fuse_conv_bn_`` and ``_fuse_linear_bn_`` fold it into the weights without a look at the other users
of the convolution, which then read normalised values. A view between the two keeps them apart, and is removed when
the program is lowered.

Instance normalisation, which ExecuTorch 1.5.1 leaves on the CPU: a group normalisation with one group per channel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

_FOLDED_INTO = ("aten.conv1d.", "aten.conv2d.", "aten.conv_transpose", "aten.linear.")
_USE_INPUT_STATS = 5  # the argument that asks for the mean and variance of the input


def _apart(x: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    return torch.ops.aten.batch_norm.default(x.view(x.shape), *args, **kwargs)


def is_folded_into(node: Any) -> bool:
    """Whether torchao folds a batch normalisation of what `node` gives into its weights."""
    return str(node.target).startswith(_FOLDED_INTO)


def _shared(node: Any) -> Function | None:
    source = node.args[0]
    return _apart if is_folded_into(source) and len(source.users) > 1 else None


def _by_group(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    from torch.nn import functional

    del running_mean, running_var, use_input_stats, momentum, cudnn_enabled
    return functional.group_norm(x, x.shape[1], weight, bias, eps)


def _of_input(node: Any) -> Function | None:
    return _by_group if node.args[_USE_INPUT_STATS] else None


CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.batch_norm.default": _shared,
    "aten.instance_norm.default": _of_input,
}
