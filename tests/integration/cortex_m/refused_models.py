"""The zoo's networks with an operator in the middle that Ethos-U55 refuses: an average pooling of 9 x 9 with padding.

A model's file imports :func:`with_refused`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ethosu_sdk.aot.zoo import ds_cnn, mlperf_tiny, mobilenet_v2
from ethosu_sdk.aot.zoo.model import ZooModel

# The layer behind which the operator comes, and height and width of the image that a vector is taken for.
ZOO: dict[str, tuple[Callable[[], ZooModel], str, tuple[int, int]]] = {
    "ds_cnn": (ds_cnn.build, "8", (0, 0)),
    "resnet8": (mlperf_tiny.resnet8, "stages.1", (0, 0)),
    "mobilenet_v1_025": (mlperf_tiny.mobilenet_v1_025, "features.5", (0, 0)),
    "deep_autoencoder": (mlperf_tiny.deep_autoencoder, "encoder_decoder.11", (8, 16)),
    "mobilenet_v2": (mobilenet_v2.build, "8", (0, 0)),
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
