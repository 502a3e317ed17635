"""What the NPU takes of an operator, and what to write in place of modules that stay on the CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ethosu_sdk.records.profile import Operation

_U55_U65 = ("ethos-u55", "ethos-u65")


class Constraint(NamedTuple):
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
        "constant weights, over one axis or two; large strides and kernels and all transposed ones too, but where "
        "--as-written keeps them",
        "compile without --as-written; a Conv2d for each depth in place of a Conv3d",
        "the same in floating point",
        f"{_SUPPORT}/convolution_support.py",
    ),
    Constraint(
        (
            *("aten::eq", "aten::ne", "aten::ge", "aten::gt", "aten::le", "aten::lt"),
            *("aten::where", "aten::any"),
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


def constraint_of(operator: str, npu: str) -> Constraint | None:
    """The constraint that is about a CPU operator (``aten::avg_pool2d.out``) on `npu`; None where none is known."""
    called = operator.partition(".")[0]
    name = _MADE_FROM.get(called, called)
    return next((row for row in CONSTRAINTS if name in row.operators and npu in row.npus), None)


_STRIDE = re.compile(r"stride <= 3, got \[(\d{1,6}), (\d{1,6})\]")
# log(1 + exp(x)), whose intermediate values are small, so that eight bits hold them.
_SMALL = "torch.log(1 + torch.exp(-torch.abs(x)))"
_SOFTPLUS = f"torch.relu(x) + {_SMALL}"

# Lines that put another module in the place of the module of that name; None where there is none. They are given the
# rows of its calls on the CPU.
Lines = Callable[[str, Sequence[Operation]], tuple[str, ...] | None]


@dataclass(frozen=True)
class Replacement:
    """What computes the same on the NPU, in words, and the lines of code that put it in."""

    words: str
    lines: Lines


def _by_formula(formula: str, check: str = "") -> Lines:
    """A module without parameters that computes `formula` of x; `check` is what has to hold of the `old` one."""

    def lines(name: str, _: Sequence[Operation]) -> tuple[str, ...]:
        return (
            *_old(name, check),
            "class Replacement(nn.Module):",
            "    def forward(self, x):",
            f"        return {formula}",
            f"model.set_submodule({name!r}, Replacement())",
        )

    return lines


def _old(name: str, check: str) -> tuple[str, ...]:
    return (f"old = model.get_submodule({name!r})", f"assert {check}") if check else ()


def _average_pool(name: str, rows: Sequence[Operation]) -> tuple[str, ...] | None:
    """A mean where one value is left of each channel, else several poolings with strides of 2 and 3."""
    found = next((match for row in rows if (match := _STRIDE.search(row.reason or ""))), None)
    shapes = [row.ofm for row in rows]
    if found is None or not shapes or any(len(shape) != 4 for shape in shapes):
        return None
    strides = (int(found[1]), int(found[2]))
    check = "old.padding in (0, (0, 0)) and not old.ceil_mode and old.kernel_size == old.stride"
    if all(shape[2] * shape[3] == 1 for shape in shapes):
        mean = f"x[:, :, :{strides[0]}, :{strides[1]}].mean((2, 3), keepdim=True)"
        return _by_formula(mean, check)(name, rows)
    steps = _steps(strides)
    if steps is None:
        return None
    pools = ", ".join(f"nn.AvgPool2d(({height}, {width}))" for height, width in steps)
    return (*_old(name, check), f"model.set_submodule({name!r}, nn.Sequential({pools}))")


def _steps(strides: tuple[int, int]) -> list[tuple[int, int]] | None:
    """Strides of at most 3 whose products are `strides`; None where that cannot be."""
    factors = []
    for stride in strides:
        parts, rest = [], max(stride, 1)
        for prime in (3, 2):
            while rest % prime == 0:
                parts.append(prime)
                rest //= prime
        if rest != 1:
            return None
        factors.append(parts)
    length = max(map(len, factors))
    heights, widths = (parts + [1] * (length - len(parts)) for parts in factors)
    steps = list(zip(heights, widths, strict=True))
    assert math.prod(height for height, _ in steps) == strides[0]
    return steps


# By the class of the module.
REPLACEMENTS: Mapping[str, Replacement] = {
    "AvgPool2d": Replacement("a mean, or poolings with strides of 2 and 3 (AvgPool2d)", _average_pool),
    "LogSigmoid": Replacement("its formula (LogSigmoid)", _by_formula(f"x - torch.relu(x) - {_SMALL}")),
    "Mish": Replacement("its formula (Mish)", _by_formula(f"x * torch.tanh({_SOFTPLUS})")),
    "Softplus": Replacement("its formula (Softplus)", _by_formula(_SOFTPLUS, "old.beta == 1")),
    "Softshrink": Replacement(
        "its formula (Softshrink)", _by_formula("x - x.clamp(-0.5, 0.5)", "old.lambd == 0.5")
    ),
}


@dataclass(frozen=True)
class OperatorChange:
    """Lines that change how every call of a CPU operator is computed, on these NPUs; what becomes of the results."""

    name: str
    words: str
    lines: tuple[str, ...]
    results: str
    npus: tuple[str, ...]
    keeps_results: bool = True


_RESIZE = (
    "resize = nn.functional.interpolate",
    'def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, **more):',
)
_SIZE = "    size = size or [int(n * scale_factor) for n in x.shape[2:]]"

# By the name of the operator. Modules call the functions of nn.functional too; a model's file writes the same there.
OPERATOR_CHANGES: Mapping[str, tuple[OperatorChange, ...]] = {
    "aten::avg_pool2d.out": (
        OperatorChange(
            "pooling-as-mean",
            "average pooling to one value of a channel as a mean",
            (
                "pool = nn.functional.avg_pool2d",
                "def avg_pool2d(x, kernel_size, stride=None, padding=0, *more):",
                "    size = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size, kernel_size)",
                "    is_one = [n // k for n, k in zip(x.shape[2:], size)] == [1, 1]",
                "    is_whole = stride in (None, kernel_size) and padding in (0, (0, 0)) and not any(more[:1])",
                "    if not is_one or not is_whole:",
                "        return pool(x, kernel_size, stride, padding, *more)",
                "    return x[:, :, :size[0], :size[1]].mean((2, 3), keepdim=True)",
                "nn.functional.avg_pool2d = avg_pool2d",
            ),
            "the values are the same in floating point",
            _U55_U65,
        ),
    ),
    "aten::upsample_bilinear2d.vec_out": (
        OperatorChange(
            "bilinear-as-pooling",
            "bilinear resizing to twice the size as nearest resizing and two average poolings",
            (
                *_RESIZE,
                _SIZE,
                '    if mode != "bilinear" or align_corners or list(size) != [2 * n for n in x.shape[2:]]:',
                "        return resize(x, size, None, mode, align_corners)",
                '    x, pool = resize(x, scale_factor=2, mode="nearest"), nn.functional.avg_pool2d',
                "    return pool(pool(x, 2, 1, 1, count_include_pad=False), 2, 1)",
                "nn.functional.interpolate = interpolate",
            ),
            "the values are the same in floating point: a mean of neighbours, weighted 1 : 2 : 1 after the copy",
            _U55_U65,
        ),
        OperatorChange(
            "nearest-resizing",
            "nearest resizing in place of bilinear",
            (
                *_RESIZE,
                _SIZE,
                '    return resize(x, size, None, "nearest")',
                "nn.functional.interpolate = interpolate",
            ),
            "the values change: train the model with it",
            _U55_U65,
            keeps_results=False,
        ),
    ),
}
