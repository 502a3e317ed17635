"""Means over an image as depthwise convolutions: the NPU's sums over single axes take ten times as long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import MOST_ELEMENTS, MOST_TAPS


def _choose_mean(node: Any, goal: Goal) -> Function | None:
    del goal
    shape, axes = node.args[0].meta["val"].shape, node.args[1] if len(node.args) > 1 else None
    if len(shape) != 4 or axes is None or {axis % 4 for axis in axes} != {2, 3} or node.kwargs:
        return None
    return _convolution(shape, keeps=len(node.args) > 2 and bool(node.args[2]))


def _convolution(shape: Sequence[int], *, keeps: bool) -> Function | None:
    """A depthwise convolution whose kernel is as large as the image; None where that is too large."""
    import torch

    channels, window = shape[1], shape[2:]
    if window[0] > MOST_TAPS or math.prod(window) > MOST_ELEMENTS or math.prod(window) == 1:
        return None
    weight = torch.full((channels, 1, *window), 1 / math.prod(window))

    def mean(x: Any, *_: Any) -> Any:
        result = torch.nn.functional.conv2d(x, weight, groups=channels)
        return result if keeps else result.flatten(1)

    return mean


MEAN_CHOICES: dict[str, GoalChoice] = {"aten.mean.dim": _choose_mean}
