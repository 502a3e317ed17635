"""Known operators that cannot be compiled: the reason, and what to write instead.

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


_NO_KERNEL = "neither the NPU nor the CPU kernels support it"

ROWS = (
    Row(
        r"sort|argsort|msort",
        "no kernel returns the indices of sorted values",
        "use torch.topk(x, x.shape[dim], dim), which returns the indices too, or use only the sorted values",
    ),
    Row(
        r"median|kthvalue",
        "no kernel returns the index of that value",
        "use torch.topk(x, k, dim, largest=False), which returns the indices too, or use only the values",
    ),
    Row(
        r"convolution\.out",
        "no kernel supports transposed or grouped convolutions over three axes",
        "use a Conv3d without groups, or a ConvTranspose2d over the last two axes with the depth moved into the "
        "batch",
    ),
    Row(
        r"cummax|cummin",
        _NO_KERNEL,
        "unroll it: compute each step by torch.maximum of the previous step and the next slice, and join the steps "
        "by torch.stack",
    ),
    Row(
        r"as_strided_scatter|diagonal_scatter",
        _NO_KERNEL,
        "write diagonals with torch.where and a mask: self.register_buffer('m', torch.eye(n, dtype=torch.bool))",
    ),
    Row(r"eye", _NO_KERNEL, "create it in the module's __init__: self.register_buffer('m', torch.eye(n))"),
    Row(
        r"while_loop|scan",
        "ExecuTorch's Arm backend cannot quantise or lower this loop",
        "write it as a `for` with a fixed number of steps, which torch.export unrolls",
    ),
)


def refusal_of(operator: str) -> Row | None:
    """The row of an operator, in any of its spellings: ``aten.sort.default``, ``aten::sort.values``, ``scan``."""
    name = operator.replace("::", ".").removeprefix("aten.")
    return next((row for row in ROWS if re.fullmatch(rf"({row.pattern})(\..*)?", name)), None)
