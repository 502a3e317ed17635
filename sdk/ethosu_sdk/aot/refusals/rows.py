"""What is known of operators that cannot be compiled: why, and what to write instead.

A row is of the operators whose name fits its pattern, in PyTorch's spelling without the overload. Each way out was
compiled and run (tests/integration/compile/forms).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Operators by pattern, the reason, and the way out."""

    pattern: str
    reason: str
    way_out: str


_NO_KERNEL = "neither the NPU nor the CPU's kernels have it"

ROWS = (
    Row(
        r"sort|argsort|msort",
        "no kernel tells the places of sorted values",
        "take torch.topk(x, x.shape[dim], dim), which has the places too, or use the sorted values alone",
    ),
    Row(
        r"median|kthvalue",
        "no kernel tells the place of that value",
        "take torch.topk(x, k, dim, largest=False), which has the places too, or use the values alone",
    ),
    Row(
        r"convolution\.out",
        "convolutions over three axes that are transposed or grouped have no kernel",
        "take a Conv3d without groups, or ConvTranspose2d over the last two axes with the depth in the batch",
    ),
    Row(
        r"cummax|cummin",
        _NO_KERNEL,
        "unroll it: torch.stack of torch.maximum of the step before and the next slice",
    ),
    Row(
        r"as_strided_scatter|diagonal_scatter",
        _NO_KERNEL,
        "write diagonals by torch.where with a mask: self.register_buffer('m', torch.eye(n, dtype=torch.bool))",
    ),
    Row(r"eye", _NO_KERNEL, "make it where the module is made: self.register_buffer('m', torch.eye(n))"),
    Row(
        r"while_loop|scan",
        "ExecuTorch's Arm backend cannot quantise or lower this loop",
        "write it as a `for` of a fixed number of steps, which torch.export unrolls",
    ),
)


def refusal_of(operator: str) -> Row | None:
    """The row of an operator, in any of its spellings: ``aten.sort.default``, ``aten::sort.values``, ``scan``."""
    name = operator.replace("::", ".").removeprefix("aten.")
    return next((row for row in ROWS if re.fullmatch(rf"({row.pattern})(\..*)?", name)), None)
