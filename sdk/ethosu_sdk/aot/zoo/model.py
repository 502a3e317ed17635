"""What building a zoo model gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ZooModel:
    """A built zoo model: an ``nn.Module`` in eval mode, its example inputs (a tuple of tensors) and the
    calibration samples (each such a tuple)."""

    module: Any
    example_inputs: tuple[Any, ...]
    calibration: tuple[tuple[Any, ...], ...]
