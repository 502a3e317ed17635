"""Convolutions beyond the limits of the NPU, and those that Vela takes apart, as few that the NPU computes at once.

Each is exact in real numbers. None sums rounded results: what belongs together is laid side by side as channels, so
that one convolution adds it up. A tensor lies on the NPU as [batch, height, width, channels]. There it is no work to
see columns as channels, and rows that are `stride` apart are copied as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import (
    MOST_ELEMENTS,
    MOST_STRIDE,
    MOST_TAPS,
    pair,
    part,
)

_MOST_DENSE = 64  # channels, of which the kernel of each may have zeros for all others


# Taps of a transposed convolution, and how far from the result's own number the value is that each multiplies.
Phase = list[tuple[int, int]]


@dataclass(frozen=True)
class _Fold:
    """How an axis is folded: `stride` neighbours become channels, of which the kernel sees `taps`. `lead` zeros stand
    before the kernel. `padding` is before and behind the axis, negative where it is cut, and `folded` the same once
    it is folded."""

    stride: int
    taps: int
    lead: int
    padding: tuple[int, int]
    folded: tuple[int, int]


def _fold(size: int, kernel: int, stride: int, padding: int, outputs: int) -> _Fold:
    """Zeros are put in once the axis is folded, as whole columns, unless the kernel then had to see more columns."""
    taps = -(-kernel // stride)
    lead = -padding % stride
    if -(-(kernel + lead) // stride) == taps:
        whole = -(-size // stride)
        before, behind = (padding + lead) // stride, outputs - 1 + taps - whole - (padding + lead) // stride
        if behind >= 0:
            return _Fold(stride, taps, lead, (0, whole * stride - size), (before, behind))
    return _Fold(stride, taps, 0, (padding, stride * (outputs - 1 + taps) - size - padding), (0, 0))


def _padded(x: Any, height: Sequence[int], width: Sequence[int]) -> Any:
    """`x` with zeros around it, or cut where the counts are negative."""
    from torch.nn import functional

    for axis, (before, behind) in ((2, height), (3, width)):
        gone = max(0, -before), max(0, -behind)
        if any(gone):
            x = part(x, axis, gone[0], x.shape[axis] - gone[1])
    zeros = [max(0, count) for count in (*width, *height)]
    return functional.pad(x, zeros) if any(zeros) else x


def _dense(weight: Any, dilation: Sequence[int]) -> Any:
    """A kernel with zeros in place of its dilation."""
    from torch.nn import functional

    for axis, step in ((2, dilation[0]), (3, dilation[1])):
        if step > 1:
            taps = weight.shape[axis]
            spread = functional.pad(weight.unsqueeze(axis + 1), (0, 0) * (3 - axis) + (0, step - 1))
            weight = spread.flatten(axis, axis + 1).narrow(axis, 0, step * (taps - 1) + 1)
    return weight


def _strided(
    x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Any:
    """A convolution with large strides: what lies between two positions becomes channels."""
    import torch
    from torch.nn import functional

    weight = _dense(weight, dilation)
    rows, columns = (
        _fold(size, kernel, step, pad, (size + 2 * pad - kernel) // step + 1)
        for size, kernel, step, pad in zip(x.shape[2:], weight.shape[2:], stride, padding, strict=True)
    )
    x = _padded(x, rows.padding, columns.padding)
    batch, channels, height, width = x.shape
    height, width = height // rows.stride, width // columns.stride
    inner = columns.stride * channels
    # In the order of the NPU's memory, a view: the rows that become channels stand beside each other.
    wide = x.permute(0, 2, 3, 1).reshape(batch, height, rows.stride * width, inner).permute(0, 3, 1, 2)
    parts = [part(wide, 3, first * width, (first + 1) * width) for first in range(rows.stride)]
    seen = _padded(torch.cat(parts, 1) if len(parts) > 1 else wide, rows.folded, columns.folded)
    behind = [
        fold.taps * fold.stride - fold.lead - kernel
        for fold, kernel in zip((rows, columns), weight.shape[2:], strict=True)
    ]
    kernels = functional.pad(weight, (columns.lead, behind[1], rows.lead, behind[0]))
    kernels = kernels.reshape(-1, channels, rows.taps, rows.stride, columns.taps, columns.stride)
    kernels = kernels.permute(0, 3, 5, 1, 2, 4).reshape(-1, rows.stride * inner, rows.taps, columns.taps)
    return _plain(seen, kernels, bias)


def _one_group(weight: Any, groups: int) -> Any:
    """The kernels of a convolution with groups, with zeros for the channels of other groups."""
    import torch

    parts = weight.chunk(groups)
    none = torch.zeros_like(parts[0])
    return torch.cat(
        [torch.cat([none] * at + [own] + [none] * (groups - 1 - at), 1) for at, own in enumerate(parts)]
    )


def _side_by_side(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    parts: Sequence[int],
) -> Any:
    """A convolution whose kernel is cut into `parts` along height and width, each of which sees its own part of the
    input: these lie side by side as channels."""
    import torch
    from torch.nn import functional

    taps = [-(-kernel // count) for kernel, count in zip(weight.shape[2:], parts, strict=True)]
    missing = [
        count * each - kernel for kernel, count, each in zip(weight.shape[2:], parts, taps, strict=True)
    ]
    sizes = [
        (size + 2 * pad - step * (kernel - 1) - 1) // stride_ * stride_ + step * (each - 1) + 1
        for size, pad, step, kernel, stride_, each in zip(
            x.shape[2:], padding, dilation, weight.shape[2:], stride, taps, strict=True
        )
    ]
    x = _padded(
        x, *((pad, pad + step * more) for pad, step, more in zip(padding, dilation, missing, strict=True))
    )
    firsts = [
        range(0, step * each * count, step * each)
        for step, each, count in zip(dilation, taps, parts, strict=True)
    ]
    seen = torch.cat(
        [
            part(part(x, 2, row, row + sizes[0]), 3, column, column + sizes[1])
            for row, column in itertools.product(*firsts)
        ],
        1,
    )
    outputs, channels = weight.shape[:2]
    kernels = functional.pad(weight, (0, missing[1], 0, missing[0]))
    kernels = kernels.reshape(outputs, channels, parts[0], taps[0], parts[1], taps[1]).permute(
        0, 2, 4, 1, 3, 5
    )
    kernels = kernels.reshape(outputs, parts[0] * parts[1] * channels, *taps)
    return functional.conv2d(seen, kernels, bias, stride, 0, dilation)


def _phase(kernel: int, stride: int, padding: int, dilation: int, first: int) -> Phase:
    """The taps that count for the results `first`, `first` + `stride` … along an axis."""
    reach = ((tap, first + padding - tap * dilation) for tap in range(kernel))
    return [(tap, far // stride) for tap, far in reach if far % stride == 0]


def _transposed(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    more: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> Any:
    """A transposed convolution, without the zeros between its inputs: a convolution for each row of results between
    two rows of the input, whose channels are the columns in between."""
    import torch

    sizes = [
        (size - 1) * step - 2 * pad + wide * (kernel - 1) + extra + 1
        for size, step, pad, wide, kernel, extra in zip(
            x.shape[2:], stride, padding, dilation, weight.shape[2:], more, strict=True
        )
    ]
    height, width = (-(-size // step) for size, step in zip(sizes, stride, strict=True))
    rows, columns = (
        [_phase(kernel, step, pad, wide, first) for first in range(step)]
        for kernel, step, pad, wide in zip(weight.shape[2:], stride, padding, dilation, strict=True)
    )
    columns_at_once = [columns] if groups == 1 else [[column] for column in columns]
    joined = []
    for row in rows:
        made = [_of_phase(x, weight, bias, row, some, (height, width), groups) for some in columns_at_once]
        joined.append(torch.cat(made, 1) if len(made) > 1 else made[0])
    wide = torch.cat(joined, 3) if len(joined) > 1 else joined[0]
    result = wide.permute(0, 2, 3, 1).reshape(x.shape[0], height * stride[0], width * stride[1], -1)
    return result.permute(0, 3, 1, 2)[:, :, : sizes[0], : sizes[1]]


def _of_phase(
    x: Any,
    weight: Any,
    bias: Any,
    row: Phase,
    columns: Sequence[Phase],
    size: Sequence[int],
    groups: int,
) -> Any:
    """The results of one row between two of the input, of `columns` as channels one behind the other."""
    import torch
    from torch.nn import functional

    # As many zeros behind as before: a larger kernel costs less than a copy of the input.
    pads = [
        max(-low, count + high - whole, 0)
        for (low, high), count, whole in zip((_reach([row]), _reach(columns)), size, x.shape[2:], strict=True)
    ]
    heights, widths = (
        range(-pad, whole + pad - count + 1)
        for pad, count, whole in zip(pads, size, x.shape[2:], strict=True)
    )
    # [inputs, outputs of a group, …] → [outputs, inputs of a group, …]
    outputs, inputs = weight.shape[1] * groups, weight.shape[0] // groups
    kernels = weight.reshape(groups, inputs, -1, *weight.shape[2:]).transpose(1, 2)
    kernels = kernels.reshape(outputs, inputs, *weight.shape[2:])
    none = torch.zeros_like(kernels[:, :, 0, 0])
    found = []
    for column in columns:
        taps = {(far, wide): kernels[:, :, tap, across] for tap, far in row for across, wide in column}
        lines = [torch.stack([taps.get((far, wide), none) for wide in widths], -1) for far in heights]
        found.append(torch.stack(lines, 2))
    biases = None if bias is None else bias.repeat(len(columns))
    return functional.conv2d(x, torch.cat(found), biases, 1, pads, 1, groups)


def _reach(phases: Sequence[Phase]) -> tuple[int, int]:
    """From the first to the last value that the taps of `phases` see; the result's own where there is no tap."""
    seen = [far for taps in phases for _, far in taps] or [0]
    return min(seen), max(seen)


def _parts(kernel: Sequence[int]) -> list[int]:
    """Into how many parts a kernel is cut along height and width."""
    return [-(-taps // MOST_TAPS) for taps in kernel]


def _plain(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
) -> Any:
    """A convolution with strides that the NPU has, its kernel cut where that is too large."""
    from torch.nn import functional

    parts = _parts(weight.shape[2:])
    if parts == [1, 1]:
        return functional.conv2d(x, weight, bias, stride, padding, dilation)
    return _side_by_side(x, weight, bias, stride, padding, dilation, parts)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """A convolution over an axis or two in a form that the NPU takes."""
    axes = x.dim() - 2
    if axes == 1:
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
    options = pair(stride, axes, 1), pair(padding, axes, 0), pair(dilation, axes, 1)
    made = _planes(x, weight, bias, *options, groups)
    return made.squeeze(2) if axes == 1 else made


def _planes(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """A convolution over height and width."""
    import torch

    if groups > 1 and weight.shape[1] == 1:
        weight, groups = _one_group(weight, groups), 1
    form = _strided if max(stride) > MOST_STRIDE else _plain
    if groups == 1:
        return form(x, weight, bias, stride, padding, dilation)
    biases = [None] * groups if bias is None else bias.chunk(groups)
    parts = zip(x.chunk(groups, 1), weight.chunk(groups), biases, strict=True)
    return torch.cat([form(*group, stride, padding, dilation) for group in parts], 1)


def _transposed_convolution(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    axes = x.dim() - 2
    if axes == 1:
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
    steps, spread = pair(stride, axes, 1), pair(dilation, axes, 1)
    pads, more = pair(padding, axes, 0), pair(output_padding, axes, 0)
    made = _transposed(x, weight, bias, steps, pads, more, groups, spread)
    return made.squeeze(2) if axes == 1 else made


def _choose(node: Any, goal: Goal) -> Function | None:
    stride, groups = node.args[3] if len(node.args) > 3 else 1, node.args[6:7] or [1]
    x, weight = (row.meta["val"] for row in node.args[:2])
    axes = x.dim() - 2
    if max(pair(stride, axes, 1)) > MOST_STRIDE:  # Vela 5.1.0 makes an operation for each position
        return _convolution
    if axes == 1:
        return _convolution if not goal.is_ethos_u85 and weight.shape[2] > MOST_ELEMENTS else None
    if groups[0] > 1 and weight.shape[1] == 1 and weight.shape[0] > groups[0] <= _MOST_DENSE:
        return _convolution
    return _convolution if not goal.is_ethos_u85 and max(weight.shape[2:]) > MOST_TAPS else None


def _choose_transposed(node: Any, goal: Goal) -> Function | None:
    x, options = node.args[0].meta["val"], [*node.args[3:], *(1, 0, 0, 1, 1)[len(node.args[3:]) :]]
    stride, groups, dilation = options[0], options[3], options[4]
    native = x.dim() == 4 and groups == 1 and max(pair(dilation, 2, 1)) == 1
    if native and (goal.is_ethos_u85 or (max(pair(stride, 2, 1)) == 1 and goal.quantize == "int8")):
        return None
    return _transposed_convolution


CONVOLUTION_CHOICES: dict[str, GoalChoice] = {
    "aten.conv1d.default": _choose,
    "aten.conv2d.default": _choose,
}
TRANSPOSED_CHOICES: dict[str, GoalChoice] = {
    "aten.conv_transpose1d.default": _choose_transposed,
    "aten.conv_transpose2d.input": _choose_transposed,
}
