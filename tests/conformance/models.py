"""Small PyTorch models that between them reach every kind of NPU operation, in groups that compile together.

Lowering costs a second or two per model and ten per group, so related operators share a model with many outputs.

Nothing here imports torch: the child process that lowers the models (lower.py) hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
Make = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A model: `make(torch)` builds it, `shapes` are its inputs', `quantize` as in ethosu_sdk.aot.lowering."""

    make: Make
    shapes: tuple[Shape, ...]
    quantize: str = "int8"


def function(forward: Callable[..., Any]) -> Make:
    """A model without parameters; `forward(torch, *inputs)` computes it."""

    def make(torch: Any) -> Any:
        class Function(torch.nn.Module):
            def forward(self, *inputs: Any) -> Any:
                return forward(torch, *inputs)

        return Function()

    return make


def layers(*parts: Callable[[Any], Any]) -> Make:
    """A chain of layers, each made by `part(torch.nn)`."""
    return lambda torch: torch.nn.Sequential(*(part(torch.nn) for part in parts))


def inverted_residual(torch: Any) -> Any:
    """A MobileNetV2 block: expand, depthwise, project, add."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.path = nn.Sequential(
                nn.Conv2d(16, 48, 1, bias=False),
                nn.BatchNorm2d(48),
                nn.ReLU6(),
                nn.Conv2d(48, 48, 3, padding=1, groups=48, bias=False),
                nn.BatchNorm2d(48),
                nn.ReLU6(),
                nn.Conv2d(48, 16, 1, bias=False),
                nn.BatchNorm2d(16),
            )

        def forward(self, x: Any) -> Any:
            return x + self.path(x)

    return Block()


def attention(torch: Any) -> Any:
    """Self-attention of one head."""

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (torch.nn.Linear(16, 16) for _ in range(3))

        def forward(self, x: Any) -> Any:
            scores = self.query(x) @ self.key(x).transpose(1, 2)
            return torch.softmax(scores / 4, -1) @ self.value(x)

    return Attention()


def squeeze_excite(torch: Any) -> Any:
    """Channel attention: global average, two 1x1 convolutions, sigmoid, broadcast multiply."""
    nn = torch.nn

    class Squeeze(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 6, 1), nn.ReLU(), nn.Conv2d(6, 24, 1), nn.Sigmoid()
            )

        def forward(self, x: Any) -> Any:
            return x * self.gate(x)

    return Squeeze()


_IMAGE: tuple[Shape, ...] = ((1, 8, 12, 10),)
_ODD: tuple[Shape, ...] = ((1, 19, 13, 11),)
_LINE: tuple[Shape, ...] = ((5, 37),)
_PAIR: tuple[Shape, ...] = ((1, 18, 7, 9), (1, 18, 7, 9))


def tables(torch: Any, x: Any) -> tuple[Any, ...]:
    """Activations that become look-up tables or clamps."""
    f = torch.nn.functional
    return (
        f.relu(x),
        f.hardswish(x),
        torch.sigmoid(x),
        torch.tanh(x),
        f.silu(x),
        f.gelu(x),
        f.leaky_relu(x, 0.2),
    )


CONVOLUTIONS: Mapping[str, Case] = {
    "conv_1x1": Case(layers(lambda nn: nn.Conv2d(19, 37, 1)), _ODD),
    "conv_3x3_same": Case(layers(lambda nn: nn.Conv2d(19, 24, 3, padding=1), lambda nn: nn.ReLU()), _ODD),
    "conv_5x3_stride_2": Case(layers(lambda nn: nn.Conv2d(8, 16, (5, 3), stride=2)), _IMAGE),
    "conv_stride_3": Case(layers(lambda nn: nn.Conv2d(8, 9, 3, stride=3, padding=1)), _IMAGE),
    "conv_dilated": Case(layers(lambda nn: nn.Conv2d(8, 16, 3, dilation=2, padding=2)), _IMAGE),
    "conv_10x11": Case(layers(lambda nn: nn.Conv2d(3, 5, (10, 11), padding=2)), ((1, 3, 14, 15),)),
    "conv_one_channel": Case(layers(lambda nn: nn.Conv2d(1, 64, (10, 4), stride=2)), ((1, 1, 49, 10),)),
    "conv_grouped": Case(layers(lambda nn: nn.Conv2d(8, 12, 3, groups=2)), _IMAGE),
    "conv_1d": Case(layers(lambda nn: nn.Conv1d(6, 12, 5, padding=2)), ((1, 6, 40),)),
    "conv_deep": Case(layers(lambda nn: nn.Conv2d(130, 70, 3, padding=1)), ((1, 130, 5, 6),)),
    "conv_transposed": Case(layers(lambda nn: nn.ConvTranspose2d(8, 6, 2, stride=2)), _IMAGE),
    "conv_int16": Case(layers(lambda nn: nn.Conv2d(8, 12, 3, padding=1)), _IMAGE, "int16"),
    "depthwise_3x3": Case(layers(lambda nn: nn.Conv2d(19, 19, 3, padding=1, groups=19)), _ODD),
    "depthwise_stride_2": Case(layers(lambda nn: nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8)), _IMAGE),
    "depthwise_multiplier": Case(layers(lambda nn: nn.Conv2d(8, 24, 3, groups=8)), _IMAGE),
    "depthwise_one_channel": Case(layers(lambda nn: nn.Conv2d(1, 12, 3)), ((1, 1, 9, 9),)),
    "depthwise_int16": Case(layers(lambda nn: nn.Conv2d(8, 8, 3, groups=8)), _IMAGE, "int16"),
    "linear": Case(layers(lambda nn: nn.Linear(37, 21)), _LINE),
    "linear_int16": Case(layers(lambda nn: nn.Linear(37, 21)), _LINE, "int16"),
}

POOLS: Mapping[str, Case] = {
    "max_pool": Case(
        function(
            lambda torch, x: (
                torch.nn.functional.max_pool2d(x, 2),
                torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1),
            )
        ),
        _ODD,
    ),
    "average_pool": Case(
        function(
            lambda torch, x: (
                torch.nn.functional.avg_pool2d(x, 3, stride=1),
                torch.nn.functional.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False),
            )
        ),
        _ODD,
    ),
    "average_pool_global": Case(layers(lambda nn: nn.AdaptiveAvgPool2d(1)), ((1, 20, 7, 7),)),
    "average_pool_large": Case(layers(lambda nn: nn.AvgPool2d((8, 6), stride=2)), ((1, 4, 20, 18),)),
    "average_pool_int16": Case(layers(lambda nn: nn.AvgPool2d(3)), _ODD, "int16"),
    "reductions": Case(
        function(lambda _, x: (x.mean((2, 3)), x.sum(1, keepdim=True), x.amax(2))),
        _ODD,
    ),
    "transpose": Case(function(lambda _, x: x.permute(0, 2, 3, 1)), _ODD),
    "transpose_wide": Case(function(lambda _, x: x.permute(1, 0)), ((40, 90),)),
    "movement": Case(
        function(
            lambda torch, x: (
                torch.nn.functional.pad(x, (1, 2, 0, 3)),
                x[:, 3:17, 1:9:2],
                torch.flip(x, [2]),
            )
        ),
        _ODD,
    ),
    "concatenate": Case(function(lambda torch, x, y: torch.cat([x, y], 1)), _PAIR),
    "upsample": Case(layers(lambda nn: nn.UpsamplingNearest2d(scale_factor=2)), _IMAGE),
}

ELEMENTWISE: Mapping[str, Case] = {
    "arithmetic_int32": Case(function(lambda _, x, y: (x + y, x - y, x * y)), _PAIR, "none"),
    "arithmetic": Case(function(lambda _, x, y: (x + 3 * y, x - y, x * y)), _PAIR),
    "arithmetic_int16": Case(function(lambda _, x, y: (x + 3 * y, x * y)), _PAIR, "int16"),
    "broadcast": Case(
        function(lambda _, x, y, z: (x + y, z - x, x * z)), ((1, 18, 7, 9), (1, 18, 1, 1), (1, 1, 1, 9))
    ),
    "constants": Case(function(lambda torch, x: (x + 1.5, torch.abs(x))), _IMAGE),
    "minimum_maximum": Case(
        function(lambda torch, x, y: (torch.minimum(x, y), torch.maximum(x, 2 * y))), _PAIR
    ),
    "tables": Case(function(tables), _IMAGE),
    "tanh_int16": Case(layers(lambda nn: nn.Tanh()), _IMAGE, "int16"),
}

NETWORKS: Mapping[str, Case] = {
    "softmax": Case(layers(lambda nn: nn.Softmax(-1)), ((3, 20),)),
    "layer_norm": Case(layers(lambda nn: nn.LayerNorm(24)), ((1, 5, 24),)),
    "digits_cnn": Case(
        layers(
            lambda nn: nn.Conv2d(1, 8, 3, padding=1),
            lambda nn: nn.ReLU(),
            lambda nn: nn.MaxPool2d(2),
            lambda nn: nn.Conv2d(8, 16, 3, padding=1),
            lambda nn: nn.ReLU(),
            lambda nn: nn.Flatten(),
            lambda nn: nn.Linear(256, 10),
        ),
        ((1, 1, 8, 8),),
    ),
    "inverted_residual": Case(inverted_residual, ((1, 16, 14, 14),)),
    "attention": Case(attention, ((1, 12, 16),)),
    "squeeze_excite": Case(squeeze_excite, ((1, 24, 8, 8),)),
    "mlp": Case(
        layers(
            lambda nn: nn.Linear(64, 300),
            lambda nn: nn.ReLU(),
            lambda nn: nn.Linear(300, 40),
            lambda nn: nn.Softmax(-1),
        ),
        ((1, 64),),
    ),
}

GROUPS: Mapping[str, Mapping[str, Case]] = {
    "convolutions": CONVOLUTIONS,
    "networks": {**NETWORKS, **ELEMENTWISE, **POOLS},
}
