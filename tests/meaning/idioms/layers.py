"""Ordinary layers, one or two at a time."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, uniform

_ROWS = (uniform(4, 8),)
_IMAGE = (uniform(1, 4, 8, 8),)
_SEQUENCE = (uniform(1, 6, 8),)
_SIGNAL = (uniform(1, 4, 16),)


def _layer(
    name: str,
    body: str,
    inputs: tuple[str, ...] = _ROWS,
    init: str = "pass",
    lost: str = "",
    **slots: tuple[str, ...],
) -> Idiom:
    return Idiom("layers", name, body, inputs, init, slots, lost=lost)


def _module(name: str, inputs: tuple[str, ...], *modules: str, body: str = "return self.f(x)") -> Idiom:
    return _layer(name, body, inputs, "self.f = nn.$module", module=modules)


IDIOMS = (
    _module(
        "convolution",
        _IMAGE,
        "Conv2d(4, 8, 3)",
        "Conv2d(4, 8, 3, padding=1)",
        "Conv2d(4, 8, 3, stride=2, padding=1)",
        "Conv2d(4, 4, 3, groups=4)",
        "Conv2d(4, 8, 3, groups=2)",
        "Conv2d(4, 8, 3, dilation=2)",
        "Conv2d(4, 8, (1, 3))",
        "Conv2d(4, 8, 1, bias=False)",
        "Conv2d(4, 8, 5, padding='same')",
        "Conv2d(4, 8, 3, padding=1, padding_mode='reflect')",
        "Conv2d(4, 8, 3, padding=1, padding_mode='circular')",
        "Conv2d(4, 8, 2)",
        "Conv2d(4, 8, 4, padding=(1, 2))",
    ),
    _module(
        "convolution, one axis",
        _SIGNAL,
        "Conv1d(4, 8, 3)",
        "Conv1d(4, 8, 5, padding=2)",
        "Conv1d(4, 8, 3, stride=2)",
        "Conv1d(4, 4, 3, groups=4)",
        "Conv1d(4, 8, 3, dilation=3)",
    ),
    _module(
        "convolution, three axes",
        (uniform(1, 2, 4, 6, 6),),
        "Conv3d(2, 4, 3)",
        "Conv3d(2, 4, (1, 3, 3))",
        "Conv3d(2, 4, 1)",
    ),
    _module(
        "transposed convolution",
        _IMAGE,
        "ConvTranspose2d(4, 3, 2, stride=2)",
        "ConvTranspose2d(4, 3, 3, padding=1)",
        "ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)",
    ),
    _module(
        "transposed convolution, one axis",
        _SIGNAL,
        "ConvTranspose1d(4, 3, 2, stride=2)",
        "ConvTranspose1d(4, 3, 4, stride=2, padding=1)",
    ),
    _module(
        "linear",
        _ROWS,
        "Linear(8, 4)",
        "Linear(8, 16, bias=False)",
        "Linear(8, 1)",
        "Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))",
    ),
    _layer(
        "bilinear", "return self.f(x, b)", (uniform(4, 8), uniform(4, 8)), "self.f = nn.Bilinear(8, 8, 4)"
    ),
    _module(
        "pooling",
        _IMAGE,
        "MaxPool2d(2)",
        "AvgPool2d(2)",
        "MaxPool2d(3, 1, 1)",
        "AvgPool2d(3, 2, 1)",
        "AvgPool2d(3, 1, 1, count_include_pad=False)",
        "AdaptiveAvgPool2d(1)",
        "AdaptiveAvgPool2d(4)",
        "AdaptiveAvgPool2d(3)",
        "AdaptiveMaxPool2d(2)",
        "MaxPool2d(3, 2, ceil_mode=True)",
        "LPPool2d(2, 2)",
        "MaxPool2d((2, 1))",
        "AvgPool2d((1, 4))",
    ),
    _module(
        "pooling, one axis",
        _SIGNAL,
        "MaxPool1d(2)",
        "AvgPool1d(2)",
        "AdaptiveAvgPool1d(4)",
        "AdaptiveMaxPool1d(2)",
        "MaxPool1d(3, 2, 1)",
    ),
    _layer("pooling with places", "return F.max_pool2d(x, 2, return_indices=True)", _IMAGE),
    _module(
        "normalisation of images",
        _IMAGE,
        "BatchNorm2d(4)",
        "GroupNorm(2, 4)",
        "InstanceNorm2d(4)",
        "InstanceNorm2d(4, affine=True)",
        "LayerNorm([8, 8])",
        "LocalResponseNorm(2)",
        "Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())",
        "Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1))",
    ),
    _module(
        "normalisation",
        _ROWS,
        "LayerNorm(8)",
        "BatchNorm1d(8)",
        "RMSNorm(8)",
        "LayerNorm(8, elementwise_affine=False)",
        "GroupNorm(2, 8)",
    ),
    _layer(
        "normalised vectors",
        "return $call",
        call=(
            "F.normalize(x, dim=1)",
            "x / x.norm(dim=1, keepdim=True)",
            "x / (x.abs().amax(1, keepdim=True) + 0.1)",
            "(x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)",
        ),
    ),
    _layer(
        "resizing",
        "return F.interpolate(x, $how)",
        _IMAGE,
        how=(
            "scale_factor=2",
            "scale_factor=2, mode='bilinear'",
            "scale_factor=2, mode='bilinear', align_corners=True",
            "size=(12, 12)",
            "scale_factor=0.5",
            "size=(5, 7), mode='bilinear'",
            "scale_factor=2, mode='bicubic'",
            "scale_factor=0.5, mode='bilinear', antialias=True",
            "scale_factor=0.5, mode='area'",
        ),
    ),
    _layer(
        "resizing, one axis",
        "return F.interpolate(x, $how)",
        _SIGNAL,
        how=("scale_factor=2", "scale_factor=2, mode='linear'"),
    ),
    _layer(
        "shuffled pixels",
        "return F.$call",
        _IMAGE,
        call=("pixel_shuffle(x, 2)", "pixel_unshuffle(x, 2)", "channel_shuffle(x, 2)"),
    ),
    _layer(
        "padding",
        "return F.pad(x, $how)",
        _IMAGE,
        how=(
            "(1, 1, 1, 1)",
            "(1, 2, 0, 1), value=0.5",
            "(1, 1, 1, 1), mode='reflect'",
            "(1, 1, 1, 1), mode='replicate'",
            "(0, 1, 2, 0), mode='circular'",
            "(-1, -1)",
            "(0, 0, 0, 0, 1, 1)",
        ),
    ),
    _layer(
        "sampled at points",
        "return F.grid_sample(x, b, align_corners=$corners, $how)",
        (uniform(1, 4, 8, 8), "(torch.rand(1, 4, 4, 2) * 2 - 1) * $reach"),
        corners=("False", "True"),
        how=("padding_mode='zeros'", "padding_mode='border'", "mode='nearest'"),
        reach=("0.9", "1.5"),
    ),
    _layer(
        "sampled by a transform",
        "return F.grid_sample(x, F.affine_grid(torch.tensor([[[0.8, 0.2, 0.1], [-0.2, 0.8, 0.0]]]), "
        "(1, 4, 8, 8), align_corners=False), align_corners=False)",
        _IMAGE,
    ),
    _layer(
        "random numbers",
        "return x + torch.$call",
        call=("rand_like(x)", "randn(4, 8)", "bernoulli(x.sigmoid())"),
    ),
    _layer("dropout that stays on", "return F.dropout(x, 0.5, True)"),
)
