"""The zoo's networks with an operator in the middle that Ethos-U55 refuses: an average pooling of 9 x 9 with padding.

A model's file imports :func:`with_refused`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ethosu_sdk.compile.zoo import random_weights
from ethosu_sdk.compile.zoo.packages import ZooModel

# The layer behind which the operator comes, and height and width of the image that a vector is taken for.
ZOO: dict[str, tuple[Callable[[], ZooModel], str, tuple[int, int]]] = {
    "ds_cnn": (random_weights.ds_cnn, "8", (0, 0)),
    "resnet8": (random_weights.resnet8, "stages.1", (0, 0)),
    "mobilenet_v1_025": (random_weights.mobilenet_v1_025, "features.5", (0, 0)),
    "deep_autoencoder": (random_weights.deep_autoencoder, "encoder_decoder.11", (8, 16)),
    "mobilenet_v2": (random_weights.mobilenet_v2, "8", (0, 0)),
}


class Refused(nn.Module):
    """The pooling, of the same size before and behind; the padding does not count."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.pool = nn.AvgPool2d(9, 1, 4, count_include_pad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same shape as `x`."""
        image: torch.Tensor = self.pool(x.reshape(1, 1, *self.size) if x.dim() == 2 else x)
        return image.reshape(x.shape)


def with_refused(name: str) -> dict[str, Any]:
    """The members of a model's file: the network `name`, its example inputs and its calibration samples."""
    build, layer, size = ZOO[name]
    made = build()
    model = made.module
    parent, _, last = layer.rpartition(".")
    holder = model.get_submodule(parent)
    holder._modules[last] = nn.Sequential(holder.get_submodule(last), Refused(size))
    return {"model": model.eval(), "example_inputs": made.example_inputs, "calibration": made.calibration[:8]}


# Operators of all kinds that the Cortex-M backend has, and two with scales that it refuses.
MANY = """
import torch
from torch import nn


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = nn.functional.pad(self.a(x), (1, 1, 1, 1))
        y = self.depthwise(x)
        x = x + y
        x = x * torch.sigmoid(y)
        x = nn.functional.max_pool2d(x, 2)
        y = torch.tanh(self.up(x))
        y = nn.functional.avg_pool2d(y, 2)
        x = torch.minimum(x, y) - torch.maximum(x, y)
        x = nn.functional.avg_pool2d(x, x.shape[2])
        return self.fc(x.flatten(1))


torch.manual_seed(3)
model = Many().eval()
samples = torch.randn(5, 1, 4, 14, 14)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
