"""Random weights with BatchNorm statistics measured on data, so that activations keep their size.

With the statistics of a fresh layer the activations of a deep random network shrink towards zero, and the
observed quantisation scales sit on the quantiser's lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def calibrate(module: Any, batches: Iterable[Any]) -> None:
    """Set every BatchNorm's mean and variance to the average over `batches`; leaves `module` in eval mode."""
    import torch

    kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)
    norms = [layer for layer in module.modules() if isinstance(layer, kinds)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average instead of a moving one
    module.train()
    with torch.no_grad():
        for batch in batches:
            module(batch)
    module.eval()
