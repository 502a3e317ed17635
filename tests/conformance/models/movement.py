"""Operators that move values: transposes, slices, concatenations, padding, resizing, gathers and scatters."""

import itertools
from collections.abc import Mapping
from typing import Any

from tests.conformance.models.case import U85, Case, Integers, Shape, function, layers

_IMAGE: tuple[Shape, ...] = ((1, 8, 12, 10),)
_ODD: tuple[Shape, ...] = ((1, 19, 13, 11),)
_PAIR: tuple[Shape, ...] = ((1, 18, 7, 9), (1, 18, 7, 9))
_BATCH: tuple[Shape, ...] = ((2, 5, 6, 7),)


def permutations(_: Any, x: Any) -> tuple[Any, ...]:
    """Every order of the last three axes but their own."""
    orders = list(itertools.permutations((1, 2, 3)))[1:]
    return tuple(x.permute(0, *order) for order in orders)


def batch_permutations(_: Any, x: Any) -> tuple[Any, ...]:
    """Orders that move the first axis."""
    return tuple(x.permute(*order) for order in ((1, 0, 2, 3), (3, 0, 1, 2), (2, 3, 0, 1), (3, 2, 1, 0)))


def flips(torch: Any, x: Any) -> tuple[Any, ...]:
    """Every axis, and two at once."""
    return tuple(torch.flip(x, axes) for axes in ([1], [2], [3], [2, 3]))


def slices(_: Any, x: Any) -> tuple[Any, ...]:
    """Ranges and strides along each axis."""
    return x[:, 3:17, 1:9:2], x[:, ::3], x[:, :, 2:11:4, 1::2], x[:, 5], x[:, :, :, -3:], x[:, 1:2, ::5]


def paddings(torch: Any, x: Any) -> tuple[Any, ...]:
    """Along each axis, with zero and with another constant."""
    pad = torch.nn.functional.pad
    return pad(x, (1, 2, 0, 3)), pad(x, (0, 0, 2, 1), value=1.5), pad(x, (0, 0, 0, 0, 3, 1))


def concatenations(torch: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """Along each axis."""
    return torch.cat([x, y], 1), torch.cat([x, 2 * y], 2), torch.cat([y, x, y], 3), torch.stack([x, y], 1)


def repetitions(torch: Any, x: Any) -> tuple[Any, ...]:
    """Tiles and broadcast copies."""
    return x.repeat(1, 2, 1, 3), x[:, :, :1].expand(1, 8, 12, 10) + x, torch.roll(x, 3, 2)


def shapes(_: Any, x: Any) -> tuple[Any, ...]:
    """The same values under other shapes."""
    return 2 * x.reshape(1, 16, 6, 10), x.reshape(1, 80, 12).permute(0, 2, 1), x.flatten(1) + 1.0


def channel_shuffle(_: Any, x: Any) -> Any:
    """ShuffleNet's: channels of two groups interleaved."""
    return x.reshape(1, 2, 4, 12, 10).transpose(1, 2).reshape(1, 8, 12, 10)


def resized(**options: Any) -> Any:
    """interpolate with these options."""
    return function(lambda torch, x: torch.nn.functional.interpolate(x, **options))


def bilinear(*, align_corners: bool = False, **options: Any) -> Any:
    """Bilinear interpolation."""
    return resized(mode="bilinear", align_corners=align_corners, **options)


MOVEMENT: Mapping[str, Case] = {
    "transpose": Case(function(lambda _, x: x.permute(0, 2, 3, 1)), _ODD),
    "transpose_wide": Case(function(lambda _, x: x.permute(1, 0)), ((40, 90),)),
    "permutations": Case(function(permutations), ((1, 5, 6, 7),)),
    "permutations_large": Case(function(permutations), ((1, 19, 20, 17),)),
    "permutations_int16": Case(function(permutations), ((1, 5, 6, 7),), "int16"),
    "permutations_batch": Case(function(batch_permutations), _BATCH),
    "flips": Case(function(flips), _ODD),
    "flips_int16": Case(function(flips), ((1, 6, 5, 7),), "int16"),
    "slices": Case(function(slices), _ODD),
    "slices_int16": Case(function(slices), _ODD, "int16"),
    "paddings": Case(function(paddings), _ODD),
    "paddings_int16": Case(function(paddings), ((1, 6, 5, 7),), "int16"),
    "concatenations": Case(function(concatenations), _PAIR),
    "concatenations_int16": Case(function(concatenations), _PAIR, "int16"),
    "concatenations_int32": Case(
        function(lambda torch, x, y: torch.cat([x, y], 2)),
        (Integers((1, 5, 6, 7)), Integers((1, 5, 3, 7))),
        "none",
    ),
    "repetitions": Case(function(repetitions), _IMAGE),
    "shapes": Case(function(shapes), _IMAGE),
    "channel_shuffle": Case(function(channel_shuffle), _IMAGE),
    "splits": Case(
        function(
            lambda torch, x: (*torch.split(x, [5, 14], 1), *torch.chunk(x, 2, 2), torch.unbind(x, 3)[4])
        ),
        _ODD,
    ),
    "pixel_shuffle": Case(layers(lambda nn: nn.PixelShuffle(2)), _IMAGE),
    "pixel_unshuffle": Case(layers(lambda nn: nn.PixelUnshuffle(2)), _IMAGE),
}

RESIZE: Mapping[str, Case] = {
    "nearest_x2": Case(layers(lambda nn: nn.UpsamplingNearest2d(scale_factor=2)), _IMAGE),
    "nearest_x4": Case(resized(scale_factor=4, mode="nearest"), ((1, 8, 5, 6),)),
    "nearest_x8": Case(resized(scale_factor=8, mode="nearest"), ((1, 4, 3, 4),)),
    "nearest_x2_int16": Case(resized(scale_factor=2, mode="nearest"), _IMAGE, "int16"),
    "nearest_x3": Case(resized(scale_factor=3, mode="nearest"), _IMAGE, profiles=U85),
    "bilinear_x2": Case(bilinear(scale_factor=2), _IMAGE, profiles=U85),
    "bilinear_x2_corners": Case(bilinear(scale_factor=2, align_corners=True), _IMAGE, profiles=U85),
    "bilinear_x3": Case(bilinear(scale_factor=3), _IMAGE, profiles=U85),
    "bilinear_x8": Case(bilinear(scale_factor=8), ((1, 5, 4, 3),), profiles=U85),
    "bilinear_half": Case(bilinear(scale_factor=0.5), _IMAGE, profiles=U85),
    "bilinear_corners_odd": Case(bilinear(size=(11, 13), align_corners=True), ((1, 5, 6, 7),), profiles=U85),
    "bilinear_int16": Case(bilinear(scale_factor=2), _IMAGE, "int16", profiles=U85),
    "bilinear_deep": Case(bilinear(scale_factor=2), ((1, 140, 4, 5),), profiles=U85),
}


def gathered(torch: Any, x: Any, rows: Any) -> Any:
    """Rows of the first axis by int32 indices."""
    return torch.index_select(x, 0, rows)


def put(torch: Any, x: Any, rows: Any, values: Any) -> Any:
    """x with rows replaced by values."""
    return torch.index_put(x, (rows,), values)


def embedding(torch: Any) -> Any:
    """A table of vectors, looked up."""

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(40, 24)

        def forward(self, indices: Any) -> Any:
            return self.table(indices)

    return Embedding()


INDEXED: Mapping[str, Case] = {
    "embedding": Case(embedding, (Integers((3, 9), 0, 39),), profiles=U85, int32_range=(0, 39)),
    "index_select": Case(
        function(gathered), ((20, 17), Integers((12,), 0, 19)), profiles=U85, int32_range=(0, 19)
    ),
    "index_put": Case(
        function(put), ((20, 16), Integers((1,), 0, 19), (1, 16)), profiles=U85, int32_range=(0, 19)
    ),
    "slice_scatter": Case(
        function(lambda torch, x, y: torch.slice_scatter(x, y, 1, 2, 8, 2)),
        ((4, 10, 6), (4, 3, 6)),
        profiles=U85,
    ),
    "select_scatter": Case(
        function(lambda torch, x, y: torch.select_scatter(x, y, 1, 3)), ((4, 10, 6), (4, 6)), profiles=U85
    ),
}
