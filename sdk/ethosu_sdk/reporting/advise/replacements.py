"""What the NPU takes of an operator, and what to write in place of modules that stay on the CPU."""

from __future__ import annotations

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


# By the class of the module.
REPLACEMENTS: Mapping[str, Replacement] = {
    "LogSigmoid": Replacement("its formula (LogSigmoid)", _by_formula(f"x - torch.relu(x) - {_SMALL}")),
    "Mish": Replacement("its formula (Mish)", _by_formula(f"x * torch.tanh({_SOFTPLUS})")),
    "Softplus": Replacement("its formula (Softplus)", _by_formula(_SOFTPLUS, "old.beta == 1")),
    "Softshrink": Replacement(
        "its formula (Softshrink)", _by_formula("x - x.clamp(-0.5, 0.5)", "old.lambd == 0.5")
    ),
}


@dataclass(frozen=True)
class OperatorChange:
    """Lines that change what every call of a CPU operator computes, on these NPUs; what becomes of the results."""

    name: str
    words: str
    lines: tuple[str, ...]
    results: str
    npus: tuple[str, ...]


_RESIZE = (
    "resize = nn.functional.interpolate",
    'def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, **more):',
)
_SIZE = "    size = size or [int(n * scale_factor) for n in x.shape[2:]]"

# By the name of the operator. Modules call the functions of nn.functional too; a model's file writes the same there.
OPERATOR_CHANGES: Mapping[str, tuple[OperatorChange, ...]] = {
    "aten::upsample_bilinear2d.vec_out": (
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
        ),
    ),
}
