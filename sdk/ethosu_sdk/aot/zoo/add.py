"""``zoo:add``: x + x on int32, the smallest program that is one delegate and nothing else."""

from __future__ import annotations

from typing import Any


def build() -> tuple[Any, tuple[Any, ...], tuple[tuple[Any, ...], ...]]:
    """The module, its example input (int32 [5]) and no calibration samples."""
    import torch

    class Add(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + x

    return Add().eval(), (torch.tensor([1, 2, -3, 1000, -70000], dtype=torch.int32),), ()
