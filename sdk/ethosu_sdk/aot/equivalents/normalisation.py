"""Rewrites normalisations that a later pass would lose.

Batch normalisation behind a layer with weights, into which torchao 0.18's ``_fuse_conv_bn_`` and
``_fuse_linear_bn_`` fold it:

- Others read the layer's result too, as in residual networks that normalise first: they would read normalised values.
- It follows another batch normalisation, as in dense blocks: once that is folded, the weights count as done, and the
  second is dropped.
- The layer is called several times, and what follows is not the same, as in heads that share their convolutions and
  normalise each level by itself: the later ones are dropped.
- The layer is a transposed convolution with groups: torchao takes its weights for those of one group, and fails.

A view between the two keeps them apart, and is removed when the program is lowered.

Instance normalisation, which ExecuTorch 1.5.1 leaves on the CPU: a group normalisation with one group per channel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ethosu_sdk.aot.equivalents.convolutions import groups_of_transposed

Function = Callable[..., Any]

_FOLDED_INTO = ("aten.conv1d.", "aten.conv2d.", "aten.conv_transpose", "aten.linear.")
_BATCH_NORM = "aten.batch_norm.default"
_USE_INPUT_STATS = 5  # the argument that asks for the mean and variance of the input


def _apart(x: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    return torch.ops.aten.batch_norm.default(x.view(x.shape), *args, **kwargs)


def is_folded_into(node: Any) -> bool:
    """Whether torchao folds a batch normalisation of what `node` gives into its weights."""
    return str(node.target).startswith(_FOLDED_INTO)


def _apart_from(node: Any) -> Function | None:
    source = node.args[0]
    wrong = _is_normalised(source) or (
        is_folded_into(source)
        and (len(source.users) > 1 or groups_of_transposed(source) > 1 or not _same_at_every_call(source))
    )
    return _apart if wrong else None


def _is_normalised(node: Any) -> bool:
    return str(node.target) == _BATCH_NORM


def _same_at_every_call(layer: Any) -> bool:
    """Whether each layer with the weights of `layer` has one reader, and all are normalised alike."""
    readers = [list(call.users) for call in layer.args[1].users]
    following = {tuple(row[0].args[1:]) if _is_normalised(row[0]) else None for row in readers if row}
    return len(following) == 1 and all(len(row) == 1 for row in readers)


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
    _BATCH_NORM: _apart_from,
    "aten.instance_norm.default": _of_input,
}
