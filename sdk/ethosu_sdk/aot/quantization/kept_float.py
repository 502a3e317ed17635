"""Leaves one operator in float, to try whether the model then compiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KEPT: list[str] = []


@contextmanager
def kept(operator: str) -> Iterator[None]:
    """While the block runs, quantisers of this process leave `operator`, such as ``aten.roll.default``, alone."""
    _KEPT.append(operator)
    try:
        yield
    finally:
        _KEPT.remove(operator)


def applied(quantizer: Any) -> Any:
    """Arm's `quantizer`, set to leave these operators in float."""
    import torch

    for name in _KEPT:
        target = torch.ops
        for part in name.split("."):
            target = getattr(target, part)
        quantizer.set_node_target(target, None)
    return quantizer
