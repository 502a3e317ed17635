"""``zoo:softmax``: a float softmax, which the Ethos-U partitioner leaves on the CPU."""

from __future__ import annotations

from ethosu_sdk.aot.zoo.model import ZooModel

_SEED = 2


def build() -> ZooModel:
    """The module, its example input (float32 [4, 10]) and no calibration samples."""
    import torch

    generator = torch.Generator().manual_seed(_SEED)
    return ZooModel(torch.nn.Softmax(dim=-1).eval(), (torch.randn(4, 10, generator=generator),), ())
