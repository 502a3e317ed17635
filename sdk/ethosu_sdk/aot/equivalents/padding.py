"""Padding with negative sizes, which crops: a slice, and the padding that is left.

ExecuTorch 1.5.1 has no such `pad` for the CPU, and Vela 5.1.0 crops nothing where it replicates or reflects. In
PyTorch, every mode gives what the two operators give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Function = Callable[..., Any]


def _cropped(x: Any, sizes: Sequence[int], *options: Any) -> Any:
    from torch.nn import functional

    for axis, (before, behind) in enumerate(zip(sizes[::2], sizes[1::2], strict=True), 1):
        gone = max(0, -before), max(0, -behind)
        if any(gone):
            x = x.narrow(-axis, gone[0], x.shape[-axis] - sum(gone))
    added = [max(0, size) for size in sizes]
    return functional.pad(x, added, *options) if any(added) else x


def _crops(node: Any) -> bool:
    return any(size < 0 for size in node.args[1])


CHOICES: dict[str, Callable[[Any], Function | None]] = {
    "aten.pad.default": lambda node: _cropped if _crops(node) else None,
    "aten.constant_pad_nd.default": lambda node: (
        (lambda x, sizes, value=0: _cropped(x, sizes, "constant", value)) if _crops(node) else None
    ),
}
