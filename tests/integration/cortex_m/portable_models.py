"""Small models with operators that the Cortex-M backend has no kernel for, in each variation of their arguments.

Each is a function of this file, for ``FILE.py:NAME``.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

Shape = tuple[int, ...]
Layers = Callable[[], nn.Module]
SAMPLES = 8


class Calls(nn.Module):
    """What a function computes from its input and the layers that it is given."""

    def __init__(self, function: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: Tensor) -> Tensor:
        """The function's result."""
        return self.function(*self.layers, *inputs)


class Words(nn.Module):
    """Tokens to vectors, which lie along an axis behind the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        """One vector a token."""
        found: Tensor = self.table(tokens)
        return found.transpose(1, 2)


class Attention(nn.Module):
    """Attention of several heads, by matrix products."""

    def __init__(self, *, masked: bool = False, batched: bool = False) -> None:
        super().__init__()
        self.project = nn.Linear(16, 48)
        self.masked, self.batched = masked, batched

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as `x`."""
        q, k, v = (part.unflatten(-1, (4, 4)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        if self.batched:
            q, k, v = (part.flatten(0, 1) for part in (q, k, v))
            weights = torch.bmm(q, k.transpose(1, 2)) / 2
            return torch.bmm(weights.softmax(-1), v).unflatten(0, (-1, 4)).transpose(1, 2).flatten(2)
        weights = q @ k.transpose(-1, -2) / 2
        if self.masked:
            weights = weights + torch.full(weights.shape[-2:], -8.0).triu(1)
        return (weights.softmax(-1) @ v).transpose(1, 2).flatten(2)


IMAGE, WAVE, VOLUME, ROWS = (1, 4, 12, 12), (1, 4, 32), (1, 2, 6, 6, 6), (1, 6, 16)


def _behind(layer: Layers, *, axes: int = 2) -> Layers:
    """`layer`, for six channels, behind a convolution and an activation."""
    first = {1: nn.Conv1d, 2: nn.Conv2d}[axes]
    return lambda: nn.Sequential(first(4, 6, 3, padding=1), nn.ReLU(), layer())


def _all_behind(layers: dict[str, Layers], *, axes: int = 2) -> dict[str, tuple[Layers, Shape]]:
    shape = IMAGE if axes == 2 else WAVE
    return {name: (_behind(layer, axes=axes), shape) for name, layer in layers.items()}


# Name: the model, and the shape of its input.
FLOATS: dict[str, tuple[Layers, Shape]] = {
    # Convolutions with a dilation.
    "dilated": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3, dilation=2), nn.ReLU()), IMAGE),
    "dilated_depthwise": (lambda: nn.Conv2d(4, 4, 3, dilation=(2, 1), padding=2, groups=4), IMAGE),
    "dilated_groups": (lambda: nn.Sequential(nn.Conv2d(4, 8, 3, dilation=2, groups=2), nn.ReLU6()), IMAGE),
    "dilated_stride": (lambda: nn.Conv2d(4, 6, 3, dilation=3, stride=2, padding=3, bias=False), IMAGE),
    "dilated_1d": (
        lambda: nn.Sequential(nn.Conv1d(4, 6, 3, dilation=4), nn.ReLU(), nn.Conv1d(6, 4, 1)),
        WAVE,
    ),
    "causal": (
        lambda: Calls(lambda a, x: torch.tanh(a(functional.pad(x, (4, 0)))), nn.Conv1d(4, 6, 3, dilation=2)),
        WAVE,
    ),
    # Poolings.
    **_all_behind(
        {
            "max_pool_1d": lambda: nn.MaxPool1d(2),
            "max_pool_1d_ceil": lambda: nn.MaxPool1d(3, 2, ceil_mode=True),
            "max_pool_1d_dilation": lambda: nn.MaxPool1d(3, 2, padding=1, dilation=2),
            "avg_pool_1d": lambda: nn.AvgPool1d(2),
            "avg_pool_1d_ceil": lambda: nn.AvgPool1d(3, 2, padding=1, ceil_mode=True),
            "adaptive_avg_1d": lambda: nn.AdaptiveAvgPool1d(4),
            "adaptive_max_1d": lambda: nn.AdaptiveMaxPool1d(4),
            "up_1d": lambda: nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, output_padding=1),
            "up_1d_groups": lambda: nn.Sequential(nn.ConvTranspose1d(6, 6, 4, stride=2, groups=3), nn.ReLU()),
            "up_1d_dilation": lambda: nn.ConvTranspose1d(6, 3, 3, dilation=2, bias=False),
            "norm_1d": lambda: nn.GroupNorm(2, 6),
        },
        axes=1,
    ),
    **_all_behind(
        {
            "max_pool_ceil": lambda: nn.MaxPool2d(3, 2, ceil_mode=True),
            "max_pool_dilation": lambda: nn.Sequential(nn.MaxPool2d(2, 2, dilation=2), nn.Conv2d(6, 4, 1)),
            "max_pool_ceil_relu": lambda: nn.Sequential(
                nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.ReLU()
            ),
            "max_pool_dilation_add": lambda: Calls(
                lambda p, x: p(x) + p(x + x), nn.MaxPool2d(3, 1, 1, dilation=1, ceil_mode=True)
            ),
            "avg_pool_ceil": lambda: nn.AvgPool2d(3, 2, ceil_mode=True),
            "avg_pool_ceil_padding": lambda: nn.AvgPool2d(3, 2, padding=1, ceil_mode=True),
            "avg_pool_ceil_inner": lambda: nn.AvgPool2d(
                3, 2, padding=1, ceil_mode=True, count_include_pad=False
            ),
            "avg_pool_divisor": lambda: nn.AvgPool2d(2, divisor_override=3),
            "adaptive_avg": lambda: nn.AdaptiveAvgPool2d((3, 5)),
            "adaptive_max": lambda: nn.AdaptiveMaxPool2d(5),
            "lp_pool": lambda: nn.LPPool2d(2, 2),
            # Transposed convolutions.
            "up_padding": lambda: nn.ConvTranspose2d(6, 6, 3, stride=2, padding=1, output_padding=1),
            "up_padding_relu": lambda: nn.Sequential(
                nn.ConvTranspose2d(6, 4, 3, stride=2, output_padding=1), nn.ReLU()
            ),
            "up_dilation": lambda: nn.ConvTranspose2d(6, 4, 3, dilation=2),
            "up_groups": lambda: nn.Sequential(
                nn.ConvTranspose2d(6, 6, 2, stride=2, groups=2), nn.Hardtanh()
            ),
            "up_depthwise": lambda: nn.ConvTranspose2d(6, 6, 4, stride=2, padding=1, groups=6, bias=False),
            "up_norm": lambda: nn.Sequential(
                nn.ConvTranspose2d(6, 4, 2, stride=2), nn.BatchNorm2d(4), nn.ReLU()
            ),
            "hardtanh": nn.Hardtanh,
            "instance_norm": lambda: nn.InstanceNorm2d(6),
            "upsample": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
            "pixels": lambda: nn.PixelShuffle(1),
        }
    ),
    # Volumes.
    "volume": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3), nn.ReLU()), VOLUME),
    "volume_stride": (lambda: nn.Conv3d(2, 4, 3, stride=2, padding=1, bias=False), VOLUME),
    "volume_groups": (lambda: nn.Conv3d(2, 4, 3, groups=2, padding=1), VOLUME),
    "volume_dilation": (lambda: nn.Sequential(nn.Conv3d(2, 4, 2, dilation=2), nn.ReLU()), VOLUME),
    "volume_pool": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3), nn.MaxPool3d(2)), VOLUME),
    "volume_avg": (lambda: nn.Sequential(nn.AvgPool3d(2), nn.Conv3d(2, 3, 2)), VOLUME),
    # Activations with bounds of their own.
    "hardtanh_default": (lambda: nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.Hardtanh(-1, 1)), IMAGE),
    "hardtanh_wide": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.Hardtanh(-9.0, 9.0)), IMAGE),
    "hardtanh_linear": (lambda: nn.Sequential(nn.Linear(16, 8), nn.Hardtanh(), nn.Linear(8, 4)), ROWS),
    "hardtanh_alone": (nn.Hardtanh, ROWS),
    "hardtanh_sum": (lambda: Calls(lambda x: functional.hardtanh(x + x) * x), ROWS),
    "clamp_away": (lambda: Calls(lambda a, x: a(x).clamp(0.1, 0.4), nn.Conv2d(4, 6, 3)), IMAGE),
    "clamp_one_side": (lambda: Calls(lambda a, x: a(x).clamp(max=0.2), nn.Linear(16, 8)), ROWS),
    "hardswish": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.Hardswish()), IMAGE),
    "hardswish_alone": (nn.Hardswish, ROWS),
    "hardswish_sum": (lambda: Calls(lambda a, x: functional.hardswish(a(x) + 1.5), nn.Linear(16, 8)), ROWS),
    "hardswish_dilated": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3, dilation=2), nn.Hardswish()), IMAGE),
    "hardsigmoid_alone": (lambda: nn.Sequential(nn.Softplus(), nn.Hardsigmoid()), ROWS),
    "hardsigmoid_up": (lambda: nn.Sequential(nn.ConvTranspose2d(4, 4, 3, groups=2), nn.Hardsigmoid()), IMAGE),
    "silu": (lambda: nn.Sequential(nn.Linear(16, 8), nn.SiLU(), nn.LayerNorm(8)), ROWS),
    "elu": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.ELU(), nn.LeakyReLU()), IMAGE),
    "prelu": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.PReLU(), nn.Mish()), IMAGE),
    # Attention.
    "attention": (Attention, ROWS),
    "attention_masked": (lambda: Attention(masked=True), ROWS),
    "attention_batched": (lambda: Attention(batched=True), (2, 6, 16)),
    "attention_layer": (
        lambda: Calls(lambda a, x: a(x, x, x)[0], nn.MultiheadAttention(16, 2, batch_first=True)),
        ROWS,
    ),
    "products": (lambda: Calls(lambda x: torch.bmm(x, x.transpose(1, 2))), ROWS),
    "products_2d": (lambda: Calls(lambda a, x: a(x)[0] @ x[0].t(), nn.Linear(16, 16)), ROWS),
    "softmax_channels": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3), nn.Softmax(1)), IMAGE),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu"), ROWS),
    # Weights and layouts that only the program knows.
    "computed_weights": (
        lambda: Calls(
            lambda a, x: functional.conv2d(x, a.weight * a.weight.abs().mean()), nn.Conv2d(4, 6, 3)
        ),
        IMAGE,
    ),
    "normed_weights": (lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), WAVE),
    "gate": (lambda: Calls(lambda a, x: functional.glu(a(x), 1), nn.Conv1d(4, 8, 3)), WAVE),
    "squeeze": (
        lambda: Calls(
            lambda a, b, x: a(x) * torch.sigmoid(b(a(x).mean((2, 3), keepdim=True))),
            nn.Conv2d(4, 6, 3),
            nn.Conv2d(6, 6, 1),
        ),
        IMAGE,
    ),
    "split": (
        lambda: Calls(
            lambda a, x: torch.cat([a(row) for row in x.chunk(2, 1)], 1), nn.Conv2d(2, 3, 3, dilation=2)
        ),
        IMAGE,
    ),
    "extremes": (
        lambda: Calls(lambda a, x: a(x).amax((2, 3)) - a(x).amin((2, 3)), nn.Conv2d(4, 6, 3)),
        IMAGE,
    ),
    "threshold": (
        lambda: Calls(lambda a, x: torch.where(a(x) > 0.1, a(x), x[:, :1, 1:-1, 1:-1]), nn.Conv2d(4, 6, 3)),
        IMAGE,
    ),
    "channels_last": (
        lambda: Calls(
            lambda a, x: a(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), nn.Conv2d(4, 6, 3, dilation=2)
        ),
        (1, 12, 12, 4),
    ),
    "recurrent": (lambda: Calls(lambda a, x: a(x)[0], nn.GRU(16, 8, batch_first=True)), ROWS),
    "broadcast": (lambda: Calls(lambda a, x: a(x) + x.mean(-1, keepdim=True), nn.Linear(16, 16)), ROWS),
    "crop": (lambda: Calls(lambda a, x: functional.pad(a(x), (-1, 2, 1, -2)), nn.Conv2d(4, 6, 3)), IMAGE),
    "reflect": (
        lambda: Calls(lambda a, x: a(functional.pad(x, (1, 1, 1, 1), mode="reflect")), nn.Conv2d(4, 6, 3)),
        IMAGE,
    ),
    "scaled_sum": (
        lambda: Calls(lambda a, x: torch.add(a(x), a(x + 1), alpha=0.5), nn.Conv2d(4, 6, 3)),
        IMAGE,
    ),
    "two_batches": (
        lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.MaxPool2d(2, ceil_mode=True)),
        (2, 4, 11, 11),
    ),
}
TOKENS: dict[str, tuple[Layers, Shape]] = {
    "words": (
        lambda: nn.Sequential(Words(), nn.Conv1d(6, 8, 3), nn.ReLU(), nn.AdaptiveMaxPool1d(1)),
        (1, 12),
    ),
    "words_dilated": (lambda: nn.Sequential(Words(), nn.Conv1d(6, 8, 3, dilation=2), nn.Tanh()), (1, 12)),
    "words_pooled": (lambda: nn.Sequential(Words(), nn.MaxPool1d(2), nn.Conv1d(6, 8, 3)), (1, 12)),
}


def _model(build: Layers, draw: Callable[[], Tensor]) -> nn.Module:
    """A new model, which has its example inputs and calibration samples."""
    torch.manual_seed(1)
    made: Any = build().eval()
    made.calibration_inputs = [(draw(),) for _ in range(SAMPLES)]
    made.example_inputs = made.calibration_inputs[0]
    return cast(nn.Module, made)


def _floats(build: Layers, shape: Shape) -> Layers:
    return lambda: _model(build, lambda: torch.randn(shape))


def _tokens(build: Layers, shape: Shape) -> Layers:
    return lambda: _model(build, lambda: torch.randint(0, 16, shape))


MODELS: dict[str, Layers] = {
    **{name: _floats(*row) for name, row in FLOATS.items()},
    **{name: _tokens(*row) for name, row in TOKENS.items()},
}
globals().update(MODELS)  # as FILE.py:NAME
