"""Poolings beyond the limits of the NPU, as operators that it takes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function, Goal, GoalChoice
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import MOST_STRIDE, pair, part
from ethosu_sdk.compile.rewrite.separable import product

_MAPS = 4  # the axes of a batch of feature maps
_LARGEST_PADDED_KERNEL = 8  # of averages
_WIDEST_KERNEL = 256
_LARGEST_KERNEL = 65536


def _mean(x: Any, kernel_size: Any, *_: Any) -> Any:
    """One value of each channel: the mean of what the only window sees."""
    height, width = pair(kernel_size, 2, 1)
    return x[:, :, :height, :width].mean((2, 3), keepdim=True)


def _choose_mean(node: Any, goal: Goal) -> Function | None:
    del goal
    made, padding = node.meta["val"], node.args[3] if len(node.args) > 3 else (0,)
    is_plain = not any(padding) and not any(node.args[4:5]) and (len(node.args) < 7 or node.args[6] is None)
    return _mean if is_plain and tuple(made.shape[2:]) == (1, 1) else None


MEAN_CHOICES: dict[str, GoalChoice] = {"aten.avg_pool2d.default": _choose_mean}


@dataclass(frozen=True)
class _Windows:
    """The windows of a pooling: numbers for each axis."""

    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    ceil_mode: bool

    @classmethod
    def of(cls, node: Any, *, dilated: bool) -> _Windows:
        """The windows of a node over height and width, or over width alone."""
        args: list[Any] = [*node.args[1:], *(None,) * 6]
        axes = 1 if "1d" in str(node.target) else 2
        return cls(
            pair(args[0], axes, 1),
            pair(args[1] or args[0], axes, 1),
            pair(args[2] or 0, axes, 0),
            pair((dilated and args[3]) or 1, axes, 1),
            bool(args[4 if dilated else 3]),
        )

    @property
    def fit(self) -> bool:
        """Whether kernel and strides are what an Ethos-U55 pools with."""
        height, width = self.kernel
        kernel_fits = width <= _WIDEST_KERNEL and height * width <= _LARGEST_KERNEL
        return kernel_fits and max(self.stride) <= MOST_STRIDE

    @property
    def overlap(self) -> bool:
        """Whether values are seen by several of them."""
        return any(kernel > stride for kernel, stride in zip(self.kernel, self.stride, strict=True))


def _choose_average(node: Any, goal: Goal) -> Function | None:
    """Averages that the NPU has not, or that Vela takes apart: on Ethos-U85, larger strides are an operation for each
    element of the kernel. Windows that do not overlap are the cheapest that way. Ethos-U55 has none of several
    samples."""
    from torch.nn import functional

    windows = _Windows.of(node, dilated=False)
    counted = bool(node.args[5]) if len(node.args) > 5 else True
    divisor: int | None = node.args[6] if len(node.args) > 6 else None
    padded = any(windows.padding) and not counted and divisor is None
    one = node.args[0].meta["val"].shape[0] == 1
    too_large = padded and max(windows.kernel) > _LARGEST_PADDED_KERNEL
    fits = windows.fit and one and not windows.ceil_mode and not too_large
    apart = not any(windows.padding) and (not windows.overlap or _is_one(node))
    if (windows.fit or apart) if goal.is_ethos_u85 else fits:

        def average(x: Any) -> Any:
            return functional.avg_pool2d(
                x, windows.kernel, windows.stride, windows.padding, windows.ceil_mode, counted
            )

        return _like(node, average) if "1d" in str(node.target) else None
    return product(node, _average_matrices(node, windows, counted, divisor))


def _average_matrices(node: Any, windows: _Windows, counted: bool, divisor: int | None) -> list[Any]:
    """The weights with which an average takes what its windows see, along each axis."""
    import torch
    from torch.nn import functional

    shape = node.args[0].meta["val"].shape[2:]
    found = []
    for axis, size in enumerate(shape, -len(shape)):
        window = (windows.kernel[axis], 1), (windows.stride[axis], 1), (windows.padding[axis], 0)
        units = torch.eye(size).reshape(size, 1, size, 1)
        seen = functional.avg_pool2d(units, *window, windows.ceil_mode, counted, 1 if divisor else None)
        found.append(seen.reshape(size, -1).t())
    return found if divisor is None else [found[0] / divisor, *found[1:]]


def _choose_adaptive_average(node: Any, goal: Goal) -> Function | None:
    import torch
    from torch.nn import functional

    x, made = node.args[0].meta["val"].shape, node.meta["val"].shape
    if set(made[2:]) == {1}:
        several = x[0] > 1 or len(made) < _MAPS
        return (lambda x, size: x.mean(tuple(range(2, len(made))), True)) if several else None
    steps = [before // behind for before, behind in zip(x[2:], made[2:], strict=True)]
    uniform = not any(before % behind for before, behind in zip(x[2:], made[2:], strict=True))
    if len(steps) == 2 and uniform and (goal.is_ethos_u85 or (x[0] == 1 and max(steps) <= MOST_STRIDE)):
        return lambda x, size: functional.avg_pool2d(x, steps)
    matrices = [
        functional.adaptive_avg_pool1d(torch.eye(before)[None], behind)[0].t()
        for before, behind in zip(x[2:], made[2:], strict=True)
    ]
    return product(node, matrices)


AVERAGE_CHOICES: dict[str, GoalChoice] = {
    "aten.avg_pool1d.default": _choose_average,
    "aten.avg_pool2d.default": _choose_average,
}


def _choose_maximum(node: Any, goal: Goal) -> Function | None:
    """Maxima that the NPU has not: large strides, of which Vela takes those for an Ethos-U85 apart, and strides with
    dilation."""
    from torch.nn import functional

    if _returns_indices(node):
        return None
    windows = _Windows.of(node, dilated=True)
    dilated = max(windows.dilation) > 1 and max(windows.stride) > 1
    plain = goal.is_ethos_u85 and not any(windows.padding) and _is_one(node)
    if not dilated and (windows.fit or plain):

        def maximum(x: Any) -> Any:
            return functional.max_pool2d(
                x, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.ceil_mode
            )

        return _like(node, maximum) if "1d" in str(node.target) else None
    results, size = _sizes(node)
    if not dilated:
        return _like(node, functools.partial(_largest, windows, results))
    last = [(count - 1) * stride for count, stride in zip(results, windows.stride, strict=True)]
    spans = zip(windows.kernel, windows.padding, windows.dilation, strict=True)
    dense = [
        whole + 2 * before - step * (kernel - 1)
        for whole, (kernel, before, step) in zip(size, spans, strict=True)
    ]
    inside = all(index < count for index, count in zip(last, dense, strict=True))
    return _like(node, functools.partial(_every, windows, results)) if inside else None


def _every(windows: _Windows, results: Sequence[int], x: Any) -> Any:
    """Dilated maxima at every place, of which the strides take some."""
    from torch.nn import functional

    dense = functional.max_pool2d(x, windows.kernel, 1, windows.padding, windows.dilation)
    return _largest(_Windows((1, 1), windows.stride, (0, 0), (1, 1), False), results, dense)


def _largest(windows: _Windows, results: Sequence[int], x: Any) -> Any:
    """The largest value of each window. In memory, a row of [height, width, channels] is that of windows side by
    side: their values become an axis of its own by their shape alone."""
    x = x.permute(0, 2, 3, 1)
    more = [max(kernel - stride, 0) for kernel, stride in zip(windows.kernel, windows.stride, strict=True)]
    for axis, (count, stride, over, padding) in enumerate(
        zip(results, windows.stride, more, windows.padding, strict=True), 1
    ):
        x = _repeat_edges(x, axis, padding, count * stride + over - padding - x.shape[axis])
    x = _dense_maximum(x, [over + 1 for over in more])
    (height, width), (down, across), (tall, wide) = results, windows.stride, windows.kernel
    batch, rows, _, channels = x.shape
    x = _dense_maximum(x.reshape(batch, rows * width, across, channels)[:, :, :wide], (1, min(across, wide)))
    x = x.reshape(batch, height, down, width * channels)[:, :, :tall]
    x = _dense_maximum(x, (1, min(down, tall)))
    return x.reshape(batch, height, width, channels).permute(0, 3, 1, 2)


def _repeat_edges(x: Any, axis: int, before: int, behind: int) -> Any:
    """`x` with its first and last values repeated: what a window over the edge sees of them changes no maximum, for
    it sees the edge too. A negative number of values behind is cut off."""
    import torch

    size = x.shape[axis]
    if behind < 0:
        x, behind = part(x, axis, 0, size + behind), 0
    if not before + behind:
        return x
    first, last = part(x, axis, 0, 1), part(x, axis, size - 1, size)
    return torch.cat([first] * before + [x] + [last] * behind, axis)


def _dense_maximum(x: Any, kernel: Sequence[int]) -> Any:
    """The largest of each `kernel` values of [batch, height, width, channels], without strides."""
    from torch.nn import functional

    left = list(kernel)
    while max(left) > 1:
        step = [min(size, _WIDEST_KERNEL) for size in left]
        x = functional.max_pool2d(x.permute(0, 3, 1, 2), step, 1).permute(0, 2, 3, 1)
        left = [size - taken + 1 for size, taken in zip(left, step, strict=True)]
    return x


def _choose_adaptive_maximum(node: Any, goal: Goal) -> Function | None:
    from torch.nn import functional

    if _returns_indices(node):
        return None
    made, shape = _sizes(node)
    steps = [before // behind for before, behind in zip(shape, made, strict=True)]
    if any(before % behind for before, behind in zip(shape, made, strict=True)):
        return _like(node, functools.partial(_uneven_maximum, made))
    if max(steps) <= MOST_STRIDE:
        return _like(node, lambda x: functional.max_pool2d(x, steps))
    return _like(node, functools.partial(_largest, _Windows(steps, steps, (0, 0), (1, 1), False), made))


def _uneven_maximum(results: Sequence[int], x: Any) -> Any:
    """Adaptive maxima, one axis after the other."""
    import torch

    x = x.permute(0, 2, 3, 1)
    for axis, count in enumerate(results, 1):
        size, parts = x.shape[axis], []
        for first in range(count):
            start, end = first * size // count, -(-(first + 1) * size // count)
            kernel = [end - start if place == axis else 1 for place in (1, 2)]
            parts.append(_dense_maximum(part(x, axis, start, end), kernel))
        x = torch.cat(parts, axis)
    return x.permute(0, 3, 1, 2)


def _sizes(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Height and width of what a node gives and of its input."""
    made, given = _value(node).shape, node.args[0].meta["val"].shape
    if "1d" in str(node.target):
        return (1, made[-1]), (1, given[-1])
    return (made[-2], made[-1]), (given[-2], given[-1])


def _is_one(node: Any) -> bool:
    """Whether there is one window alone."""
    return set(_sizes(node)[0]) == {1}


def _returns_indices(node: Any) -> bool:
    """Whether the program uses more of a maximum than its value."""
    if not _gives_several(node):
        return False
    return any(user.target is not operator.getitem or (user.args[1] and user.users) for user in node.users)


def _gives_several(node: Any) -> bool:
    return isinstance(node.meta["val"], (tuple, list))


def _value(node: Any) -> Any:
    value = node.meta["val"]
    return value[0] if _gives_several(node) else value


def _like(node: Any, pool: Any) -> Function:
    """A function of the node's arguments that gives what the node gives: `pool` of a batch of maps of height and
    width, of which the node's input may lack the batch and the height."""
    shape = _value(node).shape

    def call(x: Any, *_: Any) -> Any:
        if "1d" in str(node.target):
            x = x.unsqueeze(-2)
        result = pool(x if x.dim() == _MAPS else x.unsqueeze(0)).reshape(shape)
        return (result, None) if _gives_several(node) else result

    return call


MAXIMUM_CHOICES: dict[str, GoalChoice] = {
    "aten.max_pool1d.default": _choose_maximum,
    "aten.max_pool2d.default": _choose_maximum,
}
ADAPTIVE_CHOICES: dict[str, GoalChoice] = {
    "aten.adaptive_avg_pool1d.default": _choose_adaptive_average,
    "aten.adaptive_avg_pool2d.default": _choose_adaptive_average,
    "aten.adaptive_max_pool1d.default": _choose_adaptive_maximum,
    "aten.adaptive_max_pool2d.default": _choose_adaptive_maximum,
}
