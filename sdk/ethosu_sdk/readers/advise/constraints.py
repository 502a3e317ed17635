"""What the NPU takes of an operator: the constraints of ExecuTorch 1.5.1's partitioner and of Vela 5.1.0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_U55_U65 = ("ethos-u55", "ethos-u65")


@dataclass(frozen=True)
class Constraint:
    """What of the operators (names without overload) is delegated to these NPUs, what to use instead of the rest, and
    what becomes of the results; `source` is the file that says so."""

    operators: tuple[str, ...]
    npus: tuple[str, ...]
    text: str
    instead: str
    results: str
    source: str


_SUPPORT = "executorch/backends/arm/operator_support"
CONSTRAINTS: Sequence[Constraint] = (
    Constraint(
        ("aten::upsample_bilinear2d",),
        _U55_U65,
        "nearest resizing alone, by 2, 4 or 8 in both axes, with batch 1; Ethos-U85 takes bilinear",
        "to twice the size: nearest resizing and two average poolings; else nearest resizing",
        "the same in floating point for twice the size; else they differ, and training goes on with it",
        f"{_SUPPORT}/ethos_u55_support.py",
    ),
    Constraint(
        ("aten::upsample_nearest2d",),
        _U55_U65,
        "factors of 2, 4 or 8, the same in both axes, with batch 1",
        "several resizings by 2, 4 or 8, or another size of the feature map",
        "the same where the factors multiply to the same",
        f"{_SUPPORT}/ethos_u55_support.py",
    ),
    Constraint(
        ("aten::avg_pool2d", "aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d"),
        _U55_U65,
        "strides up to 3, a kernel height up to 256, height by width up to 65,536, batch 1; kernels up to 8 with "
        "padding",
        "a mean over both axes where one value is left of a channel, else several poolings with strides of 2 and 3",
        "the same in floating point",
        f"{_SUPPORT}/pool_2d_support.py",
    ),
    Constraint(
        ("aten::max_pool2d", "aten::max_pool2d_with_indices"),
        _U55_U65,
        "strides up to 3, a kernel height up to 256, height by width up to 65,536, batch 1",
        "several poolings with strides of 2 and 3",
        "the same",
        f"{_SUPPORT}/pool_2d_support.py",
    ),
    Constraint(
        ("aten::convolution",),
        _U55_U65,
        "kernels up to 64 high and 4,096 elements, strides up to 3; transposed ones with strides of 1 or 2 and no "
        "dilation; two axes",
        "several convolutions with smaller strides and kernels",
        "they differ: training goes on with it",
        f"{_SUPPORT}/convolution_support.py",
    ),
    Constraint(
        (
            *(
                "aten::eq",
                "aten::ne",
                "aten::ge",
                "aten::gt",
                "aten::le",
                "aten::lt",
                "aten::where",
                "aten::any",
            ),
            *("aten::logical_and", "aten::logical_or", "aten::logical_xor", "aten::logical_not"),
            *("aten::bitwise_and", "aten::bitwise_or", "aten::bitwise_xor", "aten::bitwise_not"),
        ),
        _U55_U65,
        "no comparisons, selections or operators on truth values; Ethos-U85 takes them",
        "arithmetic, such as a product with a mask that is an input or a constant, or a clamp",
        "the same where the arithmetic is",
        f"{_SUPPORT}/ethos_u55_support.py",
    ),
    Constraint(
        (
            *("aten::gather", "aten::index", "aten::index_select", "aten::index_put", "aten::embedding"),
            *("aten::scatter", "aten::select_scatter", "aten::grid_sampler_2d"),
        ),
        _U55_U65,
        "no gather or scatter; Ethos-U85 takes them",
        "slices with constant bounds, or the look-up outside of the model: its result becomes the input",
        "the same",
        f"{_SUPPORT}/ethos_u55_support.py",
    ),
)


# Operators of the Cortex-M backend, and those that they are made from.
_MADE_FROM = {
    f"cortex_m::quantized_{name}{form}": f"aten::{origin}"
    for name, origin in (
        ("avg_pool2d", "avg_pool2d"),
        ("max_pool2d", "max_pool2d"),
        ("conv2d", "convolution"),
        ("depthwise_conv2d", "convolution"),
        ("transpose_conv2d", "convolution"),
    )
    for form in ("", "_nhwc")
}


def constraint(operator: str, npu: str) -> Constraint | None:
    """The constraint that is about a CPU operator (``aten::avg_pool2d.out``) on `npu`; None where none is known."""
    called = operator.partition(".")[0]
    name = _MADE_FROM.get(called, called)
    return next((row for row in CONSTRAINTS if name in row.operators and npu in row.npus), None)
