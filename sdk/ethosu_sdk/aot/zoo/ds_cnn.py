"""``zoo:ds_cnn``: the depthwise-separable keyword-spotting network of MLPerf Tiny, with random weights.

Ten MFCCs over 49 frames in, 12 classes out. The 24x5 average pool is beyond what Ethos-U55 pools at once, so
ExecuTorch's partitioner leaves it to the CPU, between two delegates; Ethos-U85 takes it.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel

_SEED = 3
_CHANNELS = 64
_CLASSES = 12
_SEPARABLE_LAYERS = 4
_FRAMES, _COEFFICIENTS = 49, 10
_CALIBRATION_SAMPLES = 16


def _separable(nn: Any) -> list[Any]:
    return [
        nn.Conv2d(_CHANNELS, _CHANNELS, 3, padding=1, groups=_CHANNELS, bias=False),
        nn.BatchNorm2d(_CHANNELS),
        nn.ReLU(),
        nn.Conv2d(_CHANNELS, _CHANNELS, 1, bias=False),
        nn.BatchNorm2d(_CHANNELS),
        nn.ReLU(),
    ]


def build() -> ZooModel:
    """The module, its example input (float32 [1, 1, 49, 10]) and the calibration samples."""
    import torch

    from ethosu_sdk.aot.zoo import batch_norm

    nn = torch.nn
    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        layers = [
            nn.Conv2d(1, _CHANNELS, (10, 4), stride=2, padding=(5, 1), bias=False),
            nn.BatchNorm2d(_CHANNELS),
            nn.ReLU(),
        ]
        for _ in range(_SEPARABLE_LAYERS):
            layers += _separable(nn)
        layers += [nn.AvgPool2d((24, 5)), nn.Flatten(), nn.Linear(_CHANNELS, _CLASSES)]
        module = nn.Sequential(*layers)
        samples = torch.randn(_CALIBRATION_SAMPLES + 1, 1, 1, _FRAMES, _COEFFICIENTS)
        batch_norm.calibrate(module, [samples[1:].flatten(0, 1)])
    return ZooModel(module, (samples[0],), tuple((sample,) for sample in samples[1:]))
