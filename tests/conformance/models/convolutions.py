"""Convolutions, depthwise convolutions and linear layers in all their shapes."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance.models.case import U85, Case, Make, Shape, function, layers

_IMAGE: tuple[Shape, ...] = ((1, 8, 12, 10),)
_ODD: tuple[Shape, ...] = ((1, 19, 13, 11),)
_LINE: tuple[Shape, ...] = ((5, 37),)


def with_weights(part: Callable[[Any], Any], change: Callable[[Any, Any], Any]) -> Make:
    """A single layer whose weights are `change(torch, weights)`."""

    def make(torch: Any) -> Any:
        layer = part(torch.nn)
        layer.weight.data = change(torch, layer.weight.data)
        return torch.nn.Sequential(layer)

    return make


def two_of_four(torch: Any, weights: Any) -> Any:
    """Of every four input channels two weights are zero: Ethos-U85's 2:4 sparsity."""
    keep = torch.arange(weights.shape[1]) % 4
    return weights * ((keep == 0) | (keep == 3)).reshape(-1, *(1,) * (weights.ndim - 2))


def ternary(torch: Any, weights: Any) -> Any:
    """Weights of -1, 0 and 1 times one scale: the shortest palettes of the weight coder."""
    return torch.sign(torch.round(weights * 30)) / 10


def mostly_zero(torch: Any, weights: Any) -> Any:
    """Nine weights of ten are zero: long runs of zeros."""
    return weights * (torch.rand(weights.shape) > 0.9)


def heavy_tailed(torch: Any, weights: Any) -> Any:
    """Most weights small, some large: weights outside of the palette."""
    return torch.sign(weights) * (weights.abs() / weights.abs().max()) ** 4


CONVOLUTIONS: Mapping[str, Case] = {
    "conv_1x1": Case(layers(lambda nn: nn.Conv2d(19, 37, 1)), _ODD),
    "conv_3x3_same": Case(layers(lambda nn: nn.Conv2d(19, 24, 3, padding=1), lambda nn: nn.ReLU()), _ODD),
    "conv_5x3_stride_2": Case(layers(lambda nn: nn.Conv2d(8, 16, (5, 3), stride=2)), _IMAGE),
    "conv_stride_3": Case(layers(lambda nn: nn.Conv2d(8, 9, 3, stride=3, padding=1)), _IMAGE),
    "conv_stride_uneven": Case(
        layers(
            lambda nn: nn.Conv2d(8, 9, 3, stride=(1, 2), padding=(0, 1)),
            lambda nn: nn.Conv2d(9, 5, 3, stride=(3, 1)),
        ),
        _IMAGE,
    ),
    # Vela takes strides above 3 apart, into parts whose sums stay in the accumulators up to the last.
    "conv_stride_4": Case(
        layers(lambda nn: nn.Conv2d(8, 24, 7, stride=4, padding=3)), ((1, 8, 19, 21),), profiles=U85
    ),
    "conv_stride_5x2": Case(
        layers(lambda nn: nn.Conv2d(6, 9, (5, 3), stride=(5, 2)), lambda nn: nn.ReLU()),
        ((1, 6, 16, 13),),
        profiles=U85,
    ),
    "conv_1d_stride_8": Case(layers(lambda nn: nn.Conv1d(1, 16, 16, stride=8)), ((1, 1, 160),), profiles=U85),
    "conv_int16_stride_4": Case(
        layers(lambda nn: nn.Conv2d(6, 10, 5, stride=4, padding=2)), ((1, 6, 17, 14),), "int16", profiles=U85
    ),
    "depthwise_stride_4": Case(
        layers(lambda nn: nn.Conv2d(12, 12, 5, stride=4, padding=2, groups=12)),
        ((1, 12, 17, 14),),
        profiles=U85,
    ),
    "conv_dilated": Case(layers(lambda nn: nn.Conv2d(8, 16, 3, dilation=2, padding=2)), _IMAGE),
    "conv_dilated_uneven": Case(
        layers(lambda nn: nn.Conv2d(20, 16, (3, 5), dilation=(1, 2))), ((1, 20, 9, 12),)
    ),
    "conv_10x11": Case(layers(lambda nn: nn.Conv2d(3, 5, (10, 11), padding=2)), ((1, 3, 14, 15),)),
    "conv_tall": Case(
        layers(lambda nn: nn.Conv2d(4, 6, (19, 1)), lambda nn: nn.Conv2d(6, 5, (1, 17))), ((1, 4, 22, 20),)
    ),
    "conv_one_channel": Case(layers(lambda nn: nn.Conv2d(1, 64, (10, 4), stride=2)), ((1, 1, 49, 10),)),
    "conv_grouped": Case(layers(lambda nn: nn.Conv2d(8, 12, 3, groups=2)), _IMAGE),
    "conv_grouped_wide": Case(layers(lambda nn: nn.Conv2d(64, 64, 1, groups=4)), ((1, 64, 5, 7),)),
    "conv_batch": Case(layers(lambda nn: nn.Conv2d(8, 12, 3, padding=1)), ((3, 8, 7, 9),)),
    "conv_1d": Case(layers(lambda nn: nn.Conv1d(6, 12, 5, padding=2)), ((1, 6, 40),)),
    "conv_deep": Case(layers(lambda nn: nn.Conv2d(130, 70, 3, padding=1)), ((1, 130, 5, 6),)),
    "conv_many_outputs": Case(layers(lambda nn: nn.Conv2d(24, 300, 3)), ((1, 24, 6, 5),)),
    "conv_transposed": Case(layers(lambda nn: nn.ConvTranspose2d(8, 6, 2, stride=2)), _IMAGE),
    "conv_transposed_3x3": Case(
        layers(lambda nn: nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)), _IMAGE
    ),
    "conv_asymmetric_padding": Case(
        layers(lambda nn: nn.ZeroPad2d((2, 1, 0, 3)), lambda nn: nn.Conv2d(8, 6, 4)), _IMAGE
    ),
    "conv_int16": Case(layers(lambda nn: nn.Conv2d(8, 12, 3, padding=1)), _IMAGE, "int16"),
    "conv_int16_deep": Case(
        layers(lambda nn: nn.Conv2d(70, 40, (3, 5), stride=2)), ((1, 70, 9, 11),), "int16"
    ),
    "conv_int16_1x1": Case(layers(lambda nn: nn.Conv2d(19, 37, 1)), _ODD, "int16"),
    "depthwise_3x3": Case(layers(lambda nn: nn.Conv2d(19, 19, 3, padding=1, groups=19)), _ODD),
    "depthwise_stride_2": Case(layers(lambda nn: nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8)), _IMAGE),
    "depthwise_dilated": Case(
        layers(lambda nn: nn.Conv2d(19, 19, 3, dilation=2, padding=2, groups=19)), _ODD
    ),
    "depthwise_large": Case(
        layers(lambda nn: nn.Conv2d(12, 12, (9, 11), padding=4, groups=12)), ((1, 12, 12, 13),)
    ),
    "depthwise_deep": Case(
        layers(lambda nn: nn.Conv2d(150, 150, 3, padding=1, groups=150)), ((1, 150, 5, 6),)
    ),
    "depthwise_1d": Case(layers(lambda nn: nn.Conv1d(10, 10, 7, padding=3, groups=10)), ((1, 10, 30),)),
    "depthwise_multiplier": Case(layers(lambda nn: nn.Conv2d(8, 24, 3, groups=8)), _IMAGE),
    "depthwise_one_channel": Case(layers(lambda nn: nn.Conv2d(1, 12, 3)), ((1, 1, 9, 9),)),
    "depthwise_int16": Case(layers(lambda nn: nn.Conv2d(8, 8, 3, groups=8)), _IMAGE, "int16"),
    "depthwise_int16_stride_2": Case(
        layers(lambda nn: nn.Conv2d(40, 40, 5, stride=2, padding=2, groups=40)), ((1, 40, 9, 11),), "int16"
    ),
    "linear": Case(layers(lambda nn: nn.Linear(37, 21)), _LINE),
    "linear_wide": Case(layers(lambda nn: nn.Linear(1100, 20)), ((1, 1100),)),
    "linear_rank_3": Case(layers(lambda nn: nn.Linear(24, 50, bias=False)), ((2, 6, 24),)),
    "linear_int16": Case(layers(lambda nn: nn.Linear(37, 21)), _LINE, "int16"),
    "linear_int16_wide": Case(layers(lambda nn: nn.Linear(600, 40)), ((1, 600),), "int16"),
    "bilinear_form": Case(function(lambda torch, x, y: x @ y.transpose(1, 2)), ((2, 9, 20), (2, 13, 20))),
    "conv_3d": Case(layers(lambda nn: nn.Conv3d(4, 6, 3, padding=1)), ((1, 4, 5, 6, 7),), profiles=U85),
    "conv_3d_stride": Case(
        layers(lambda nn: nn.Conv3d(3, 5, (2, 3, 3), stride=(1, 2, 2))), ((1, 3, 4, 9, 7),), profiles=U85
    ),
}

WEIGHTS: Mapping[str, Case] = {
    "sparse_conv": Case(
        with_weights(lambda nn: nn.Conv2d(64, 48, 3, padding=1), two_of_four), ((1, 64, 6, 7),)
    ),
    "sparse_1x1": Case(with_weights(lambda nn: nn.Conv2d(160, 40, 1), two_of_four), ((1, 160, 5, 6),)),
    "sparse_linear": Case(with_weights(lambda nn: nn.Linear(256, 64), two_of_four), ((1, 256),)),
    "sparse_int16": Case(
        with_weights(lambda nn: nn.Conv2d(64, 48, 1), two_of_four), ((1, 64, 6, 7),), "int16"
    ),
    "ternary": Case(with_weights(lambda nn: nn.Conv2d(32, 40, 3, padding=1), ternary), ((1, 32, 7, 6),)),
    "ternary_depthwise": Case(
        with_weights(lambda nn: nn.Conv2d(48, 48, 3, padding=1, groups=48), ternary), ((1, 48, 7, 6),)
    ),
    "mostly_zero": Case(
        with_weights(lambda nn: nn.Conv2d(48, 64, 3, padding=1), mostly_zero), ((1, 48, 7, 6),)
    ),
    "mostly_zero_linear": Case(with_weights(lambda nn: nn.Linear(500, 70), mostly_zero), ((2, 500),)),
    "heavy_tailed": Case(
        with_weights(lambda nn: nn.Conv2d(48, 64, 3, padding=1), heavy_tailed), ((1, 48, 7, 6),)
    ),
}
