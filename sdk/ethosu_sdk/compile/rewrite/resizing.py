"""Resizing that the NPU has not, by any factors, as products with constant matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice
from ethosu_sdk.compile.rewrite.separable import product

_SCALES = -1  # the last argument of each: a factor for each axis, or None
_NATIVE_FACTORS = (2, 4, 8)


def _choose(node: Any, goal: Goal) -> Function | None:
    if _is_native(node, goal):
        return None
    return _double if _doubles(node) and not goal.is_ethos_u85 else product(node, _matrices(node))


def _doubles(node: Any) -> bool:
    """Whether one sample is resized bilinearly to twice its size."""
    x, corners, scales = node.args[0].meta["val"], node.args[2], node.args[_SCALES]
    made = [2 * size for size in x.shape[2:]] == list(node.meta["val"].shape[2:])
    name = str(node.target)
    is_plain = name == "aten.upsample_bilinear2d.vec" and not corners and set(scales or (2.0,)) == {2.0}
    return is_plain and made and x.shape[0] == 1


def _double(x: Any, *_: Any) -> Any:
    """Copies of the nearest, then means of neighbours that are weighted 1 : 2 : 1: on Ethos-U55 a third of the cycles
    of products."""
    from torch.nn import functional

    x = functional.interpolate(x, scale_factor=2, mode="nearest")
    return functional.avg_pool2d(functional.avg_pool2d(x, 2, 1, 1, count_include_pad=False), 2, 1)


def _is_native(node: Any, goal: Goal) -> bool:
    """Whether the NPU resizes that way. An Ethos-U85 takes nearest and bilinear; ExecuTorch 1.5.1 gives the latter
    the factor that follows from the sizes, not the one that the model gives."""
    shape, made = node.args[0].meta["val"].shape, node.meta["val"].shape
    name = str(node.target)
    if goal.is_ethos_u85:
        exact = all(
            size * factor == result
            for size, factor, result in zip(shape[2:], node.args[_SCALES] or (), made[2:], strict=False)
        )
        return name == "aten.upsample_nearest2d.vec" or (name == "aten.upsample_bilinear2d.vec" and exact)
    grown = any(
        all(result == size * factor for size, result in zip(shape[2:], made[2:], strict=True))
        for factor in _NATIVE_FACTORS
    )
    return name == "aten.upsample_nearest2d.vec" and grown and shape[0] == 1


def _matrices(node: Any) -> list[Any]:
    """What resizing is along each axis, read off from unit vectors. The other axis has two equal values: of one,
    torch 2.13 resizes nothing with ``antialias``."""
    import torch

    shape, made = node.args[0].meta["val"].shape[2:], node.meta["val"].shape[2:]
    found = []
    for axis, (size, result) in enumerate(zip(shape, made, strict=True)):
        others = [place != axis for place in range(len(shape))]
        units = torch.eye(size).reshape(size, 1, *(1 if other else size for other in others))
        units = units.expand(-1, -1, *(2 if other else -1 for other in others)).contiguous()
        args = list(node.args[1:])
        args[0] = args[0] and [2 if other else result for other in others]
        scales = args[_SCALES]
        args[_SCALES] = scales and [1.0 if other else scales[axis] for other in others]
        resized = node.target(units, *args).movedim(2 + axis, -1)
        found.append(resized.reshape(size, -1, result)[:, 0].t())
    return found


# Not bicubic: with weights of both signs, int8 loses more than a decibel between the two axes.
_RESIZED: Sequence[str] = (
    "aten.upsample_nearest1d.vec",
    "aten.upsample_nearest2d.vec",
    "aten._upsample_nearest_exact1d.vec",
    "aten._upsample_nearest_exact2d.vec",
    "aten.upsample_linear1d.vec",
    "aten.upsample_bilinear2d.vec",
    "aten._upsample_bilinear2d_aa.vec",
)
RESIZE_CHOICES: dict[str, GoalChoice] = dict.fromkeys(_RESIZED, _choose)
