"""Pooling and reductions."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.models.case import U85, Case, Integers, Shape, function, layers

_ODD: tuple[Shape, ...] = ((1, 19, 13, 11),)
_SMALL: tuple[Shape, ...] = ((1, 6, 7, 9),)
_BATCH: tuple[Shape, ...] = ((2, 5, 6, 7),)


def averages(torch: Any, x: Any) -> tuple[Any, ...]:
    """With and without borders that do not count."""
    pool = torch.nn.functional.avg_pool2d
    return pool(x, 3, stride=1), pool(x, 3, 2, padding=1, count_include_pad=False)


def averages_with_borders(torch: Any, x: Any) -> tuple[Any, ...]:
    """Borders that count, a last window that reaches over the edge, long windows."""
    pool = torch.nn.functional.avg_pool2d
    return (
        pool(x, (2, 3), 2, padding=1, count_include_pad=True),
        pool(x, 3, 2, ceil_mode=True, count_include_pad=False),
        pool(x, (1, 5), 1),
        pool(x, (5, 1), (2, 1)),
    )


def maxima(torch: Any, x: Any) -> tuple[Any, ...]:
    """Plain, padded, large and uneven windows."""
    pool = torch.nn.functional.max_pool2d
    return (
        pool(x, 2),
        pool(x, 3, stride=2, padding=1),
        pool(x, (9, 2), stride=(1, 3)),
        pool(x, 3, 2, ceil_mode=True),
    )


def means(_: Any, x: Any) -> tuple[Any, ...]:
    """Averages over one and over several axes."""
    return x.mean((2, 3)), x.mean(1, keepdim=True), x.mean(3), x.mean((1, 2, 3), keepdim=True)


def sums(_: Any, x: Any) -> tuple[Any, ...]:
    """Sums over one and over several axes."""
    return x.sum(1, keepdim=True), x.sum((2, 3)), x.sum(2), x.sum((1, 3), keepdim=True)


def arg_maxima(torch: Any, x: Any) -> tuple[Any, ...]:
    """The place of the maximum along each axis; ExecuTorch delegates it from int8 to int32 alone."""
    return tuple(x.argmax(axis).to(torch.int32) for axis in (1, 2, 3))


def extrema(_: Any, x: Any) -> tuple[Any, ...]:
    """Maxima and minima along each axis."""
    minima = (x.amin(axis, keepdim=True) for axis in (1, 2, 3))
    return x.amax(2), x.amax(1, keepdim=True), x.amax(3), *minima


POOLS: Mapping[str, Case] = {
    "max_pool": Case(function(maxima), _ODD),
    "max_pool_int16": Case(function(maxima), _ODD, "int16"),
    "max_pool_batch": Case(layers(lambda nn: nn.MaxPool2d(2)), _BATCH),
    "max_pool_1d": Case(
        layers(lambda nn: nn.MaxPool2d((1, 3), stride=(1, 2), padding=(0, 1))), ((1, 8, 1, 21),)
    ),
    "average_pool": Case(function(averages), _ODD),
    "average_pool_borders": Case(function(averages_with_borders), _ODD),
    "average_pool_batch": Case(layers(lambda nn: nn.AvgPool2d(2)), _BATCH, profiles=U85),
    "average_pool_global": Case(layers(lambda nn: nn.AdaptiveAvgPool2d(1)), ((1, 20, 7, 7),)),
    "average_pool_large": Case(layers(lambda nn: nn.AvgPool2d((8, 6), stride=2)), ((1, 4, 20, 18),)),
    "average_pool_adaptive": Case(layers(lambda nn: nn.AdaptiveAvgPool2d((3, 4))), ((1, 6, 9, 8),)),
    "average_pool_int16": Case(layers(lambda nn: nn.AvgPool2d(3)), _ODD, "int16"),
    "average_pool_borders_int16": Case(function(averages), _ODD, "int16"),
    "mean": Case(function(means), _SMALL),
    "mean_int16": Case(function(means), _SMALL, "int16"),
    "mean_batch": Case(function(lambda _, x: x.mean((0, 2))), ((3, 5, 8, 6),)),
    "sum": Case(function(sums), _SMALL),
    "sum_int16": Case(function(sums), _SMALL, "int16"),
    "sum_int32": Case(
        function(lambda torch, x: x.sum(1, dtype=torch.int32)), (Integers((1, 19, 7, 5)),), "none"
    ),
    "extrema": Case(function(extrema), _SMALL),
    "extrema_int16": Case(function(extrema), _SMALL, "int16"),
    "extrema_of_two_axes": Case(
        function(lambda _, x: (x.amin((2, 3), keepdim=True), x.amax((1, 3)))), _SMALL
    ),
    "minimum_reshaped": Case(function(lambda _, x: x.amin(2)), _SMALL),
    "variance": Case(function(lambda _, x: (x.var((2, 3)), x.std(1))), _SMALL),
    "arg_max": Case(function(arg_maxima), (Integers((1, 6, 7, 9), -128, 127, "int8"),), "none", U85),
    "arg_max_deep": Case(
        function(lambda torch, x: x.argmax(1).to(torch.int32)),
        (Integers((1, 300, 3, 5), -128, 127, "int8"),),
        "none",
        U85,
    ),
    "any_all": Case(
        function(lambda torch, x: ((x > 0.5).any(1), (x > -1).all(2), (x < 0).any(3))),
        _SMALL,
        profiles=U85,
    ),
}
