"""Resizing on the CPU: PyTorch code with the same order of operations as ExecuTorch's kernels.

Twice as large, a quantised image has values half-way between two codes all over: the last bit of a float32 sum
decides which code they get. PyTorch's own operators add in other orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def upsample_bilinear2d(
    planes: Any, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Any:
    """``aten::upsample_bilinear2d.vec``: between columns first, then between rows."""
    (top, bottom, down), (left, right, across) = (
        _sources(
            planes.shape[2 + axis],
            None if size is None else size[axis],
            None if factors is None else factors[axis],
            align_corners,
        )
        for axis in range(2)
    )
    rows = (1 - across) * planes[..., left] + across * planes[..., right]
    down = down[:, None]
    return (1 - down) * rows[..., top, :] + down * rows[..., bottom, :]


def _sources(
    length: int, size: int | None, factor: float | None, align_corners: bool
) -> tuple[Any, Any, Any]:
    """For each position along an axis of the result: two of the input and the weight of the second."""
    import torch

    if size is None:
        assert factor is not None
        size, step = int(length * factor), 1 / factor
    else:
        step = length / size
    at = torch.arange(size, dtype=torch.float32)
    if align_corners:
        place = at * torch.tensor((length - 1) / (size - 1) if size > 1 else 0.0)
    else:
        place = (torch.tensor(step) * (at + 0.5) - 0.5).clamp(min=0)
    first = place.long().clamp(max=length - 1)
    return first, (first + 1).clamp(max=length - 1), (place - first).clamp(0, 1)
