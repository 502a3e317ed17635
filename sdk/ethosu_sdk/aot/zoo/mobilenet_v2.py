"""``zoo:mobilenet_v2``: MobileNetV2, width 1.0, 224x224, 1000 classes, random weights from a fixed seed.

The architecture is table 2 of Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks"
(2018). The example input is contiguous, so the program takes NCHW bytes and the NPU transposes them first.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel

_SEED = 4
_SIZE = 224
_CLASSES = 1000
_BATCHES, _BATCH = 2, 4
_CALIBRATION_SAMPLES = 4

# expansion, channels, repeats, stride of the first repeat
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_STEM_CHANNELS, _HEAD_CHANNELS = 32, 1280


def _conv(
    nn: Any, channels_in: int, channels_out: int, *, kernel: int = 1, stride: int = 1, groups: int = 1
) -> list[Any]:
    padding = (kernel - 1) // 2
    return [
        nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(channels_out),
    ]


def _block(nn: Any, channels_in: int, channels_out: int, expansion: int, stride: int) -> Any:
    hidden = channels_in * expansion
    layers: list[Any] = [] if expansion == 1 else [*_conv(nn, channels_in, hidden), nn.ReLU6()]
    layers += [*_conv(nn, hidden, hidden, kernel=3, stride=stride, groups=hidden), nn.ReLU6()]
    return nn.Sequential(*layers, *_conv(nn, hidden, channels_out))


def _network(nn: Any) -> Any:
    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, body: Any) -> None:
            super().__init__()
            self.body = body

        def forward(self, x: Any) -> Any:
            return x + self.body(x)

    layers = [*_conv(nn, 3, _STEM_CHANNELS, kernel=3, stride=2), nn.ReLU6()]
    channels = _STEM_CHANNELS
    for expansion, channels_out, repeats, first_stride in STAGES:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            body = _block(nn, channels, channels_out, expansion, stride)
            layers.append(Residual(body) if stride == 1 and channels == channels_out else body)
            channels = channels_out
    layers += [*_conv(nn, channels, _HEAD_CHANNELS), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(_HEAD_CHANNELS, _CLASSES))


def build() -> ZooModel:
    """The module, its example input (float32 [1, 3, 224, 224]) and the calibration samples."""
    import torch

    from ethosu_sdk.aot.zoo import batch_norm

    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        module = _network(torch.nn)
        batch_norm.calibrate(module, [torch.randn(_BATCH, 3, _SIZE, _SIZE) for _ in range(_BATCHES)])
        samples = torch.randn(_CALIBRATION_SAMPLES + 1, 1, 3, _SIZE, _SIZE)
    return ZooModel(module, (samples[0],), tuple((sample,) for sample in samples[1:]))
