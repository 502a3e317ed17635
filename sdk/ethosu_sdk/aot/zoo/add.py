"""``zoo:add``: x + x on int32, the smallest program that is one delegate and nothing else."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.zoo.model import ZooModel


def build() -> ZooModel:
    """The module, its example input (int32 [5]) and no calibration samples."""
    import torch

    class Add(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + x

    return ZooModel(Add().eval(), (torch.tensor([1, 2, -3, 1000, -70000], dtype=torch.int32),), ())
