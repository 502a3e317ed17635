"""Kernels that give the same bits on every machine: conversions, and what only moves data. Floating-point arithmetic
is not among them: its last bits depend on the compiler and on the order of sums (docs/reference/kernels.md)."""

CONVERSIONS = "quantized_decomposed::"  # what their names begin with
MOVES = frozenset(
    f"aten::{name}"
    for name in (
        *("alias_copy", "cat", "clone", "copy", "expand_copy", "permute_copy", "select_copy", "slice_copy"),
        *("split_copy", "squeeze_copy", "stack", "t_copy", "transpose_copy", "unsqueeze_copy", "view_copy"),
    )
)
