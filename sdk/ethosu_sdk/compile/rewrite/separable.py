"""Products with a constant matrix along each axis of a feature map, as convolutions that Vela has weights for.

A convolution of one channel whose kernel is as high as the map contracts the outermost axis of a tensor in memory and
puts the result innermost: of [H, W·C], it makes [W·C, H']. A second one makes [C, H', W'], the layout that a program
returns, and one with the identity for a matrix [H', W', C], the layout of the next layer. So nothing is transposed,
which costs an Ethos-U55 or U65 several times as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal

_BLOCK = 16  # results of one convolution: as many as the NPU computes side by side
_TALLEST_KERNEL = 64
_LONGEST_AXIS = 65536
_STEPS = 127  # of a weight of int8 to both sides of zero

# Columns of a matrix, from the first to behind the last, and weights for them.
Block = tuple[tuple[int, int], Any]


def product(node: Any, matrices: Sequence[Any], goal: Goal) -> Function | None:
    """The input of `node`, [batch, channels, …], times a matrix along each axis behind the channels, a row of it for
    each result; None where that is beyond the limits of the NPU, and for several samples, of which Vela 5.1.0 gave
    other values beside further readers of the same tensor."""
    import torch

    shape, made = tuple(node.args[0].meta["val"].shape), tuple(node.meta["val"].shape)
    if made[0] > 1:
        return None
    factors = list(matrices)
    returned = all(user.op == "output" for user in node.users)
    if not returned and not goal.is_ethos_u85 and math.prod(made[2:]) <= _LONGEST_AXIS:
        factors.append(torch.eye(made[1]))
    is_channels_first = len(factors) < len(made) - 1
    blocks = [_blocks(factor) for factor in factors]
    heights = [weight.shape[2] for row in blocks for _, weight in row]
    rest = math.prod(shape[1:]) // shape[2]
    for before, behind in zip(shape[2:], made[2:], strict=True):
        heights.append(0 if rest <= _LONGEST_AXIS else rest)
        rest = rest * behind // before
    if max(heights) > _TALLEST_KERNEL:
        return None
    sizes = [factor.shape[1] for factor in factors]

    def multiply(x: Any, *_: Any) -> Any:
        x = x.movedim(1, -1)
        for size, row in zip(sizes, blocks, strict=True):
            x = _contract(x.reshape(made[0], 1, size, -1), row).permute(0, 2, 3, 1)
        return x.reshape(made) if is_channels_first else x.reshape(made[0], *made[2:], made[1]).movedim(-1, 1)

    return multiply


def _contract(x: Any, blocks: Sequence[Block]) -> Any:
    """[batch, 1, values, rest] as [batch, results, 1, rest]."""
    import torch
    from torch.nn import functional

    parts = []
    for (first, last), weight in blocks:
        # Weights for a row more than there is: the first sees the padding, and the stride leaves no second result.
        more = weight.shape[2] - (last - first)
        parts.append(functional.conv2d(x[:, :, first:last], weight, None, (1 + more, 1), (more, 0)))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _blocks(matrix: Any) -> list[Block]:
    """Rows of `matrix` in groups, as weights, each with the columns in which it is not zero, and with one more where
    the weights are more exact as integers with that."""
    import torch

    columns = [row.nonzero().flatten().tolist() or [0] for row in matrix]
    groups: list[list[int]] = []
    for index, used in enumerate(columns):
        start = columns[groups[-1][0]][0] if groups else 0
        if not groups or len(groups[-1]) == _BLOCK or used[-1] - start >= _TALLEST_KERNEL - 1:
            groups.append([])
        groups[-1].append(index)
    found = []
    for group in groups:
        first, last = (
            min(columns[index][0] for index in group),
            max(columns[index][-1] for index in group) + 1,
        )
        weights = matrix[group, first:last]
        largest = torch.stack([_largest_weight(row) for row in weights])
        if bool((largest > weights.abs().amax(1)).any()):
            weights = torch.cat([largest[:, None], weights], 1)
        found.append(((first, last), weights.reshape(len(group), 1, -1, 1).contiguous()))
    return found


def _largest_weight(row: Any) -> Any:
    """The weight that stands for 127 when those of `row` are least in error as integers. The quantiser makes 127 of
    the largest: of 3/4 and 1/4, 127 and 42, whose sum is 169.3."""
    import torch

    largest = row.abs().max()
    if not largest:
        return largest
    steps = torch.arange(_STEPS // 2 * 8, _STEPS * 8 + 1, dtype=torch.float64).flip(0) / 8 / largest
    scaled = row.double() * steps[:, None]
    errors = (scaled.round() - scaled) / steps[:, None]
    # All in one direction, they change the sum, which smooth feature maps are multiplied by.
    cost = errors.square().sum(1) + errors.sum(1).square() * len(row)
    return (_STEPS / steps[cost.argmin()]).to(row.dtype)
