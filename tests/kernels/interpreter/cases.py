"""The cases of the kernels' tests: every operator of kernels.toml over shapes, dtypes and special values."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tests.kernels.interpreter.models import Array, Case, functional, method

INTEGERS = ("uint8", "int8", "int16", "int32")
# Zeros, denormals, what float cannot count, ties of rounding, and the edges of int8 and int64.
SPECIAL = numpy.array(
    [
        *(0.0, -0.0, 1e-40, -1e-40, numpy.inf, -numpy.inf, numpy.nan, 3e38, -3e38, 1e30),
        *(0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, -3.5, 126.5, 127.5, 128.5, -127.5, -128.5, -129.5),
        *(16777216.0, 2147483520.0, 9.3e18, -9.3e18),
    ],
    numpy.float32,
)


def floats(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Normally distributed float32 numbers."""
    return (numpy.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(numpy.float32)


def integers(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Numbers from the whole range of `dtype`."""
    limits = numpy.iinfo(dtype)
    random = numpy.random.default_rng([seed, *shape])
    return random.integers(limits.min, limits.max, shape, endpoint=True, dtype=numpy.dtype(dtype))


def nonzero(array: Array) -> Array:
    """The same with 1 for 0."""
    return numpy.where(array == 0, numpy.ones_like(array), array)


def special_floats(count: int, scale: float = 1.0, seed: int = 0) -> Array:
    """SPECIAL, plain and scaled, then random numbers up to `count`."""
    head = numpy.concatenate([SPECIAL, SPECIAL * numpy.float32(scale)])
    with numpy.errstate(over="ignore"):
        return numpy.concatenate([head, floats(count - head.size, seed=seed, scale=100 * scale)])


def softmax_cases() -> dict[str, Case]:
    """aten::_softmax along every dimension, with NaN and infinities in each place."""
    shapes = [
        ((4, 10), -1),
        ((7, 3, 5), 0),
        ((2, 3, 4, 5), 1),
        ((1, 1), 1),
        ((3, 1000), 1),
        ((17, 33), -1),
        ((5,), 0),
    ]
    cases = {
        f"softmax_{'x'.join(map(str, shape))}_{dim % len(shape)}": Case(
            method("softmax", dim), (floats(*shape, scale=5),)
        )
        for shape, dim in shapes
    }
    nan, inf = numpy.nan, numpy.inf
    rows = [[1, nan, 2], [nan, 1, 2], [1, 2, nan], [inf, 1, 2], [-inf, -inf, -inf], [-inf, 0, 100]]
    cases["softmax_special"] = Case(method("softmax", -1), (numpy.array(rows, numpy.float32),))
    cases["softmax_float64"] = Case(method("softmax", 1), (floats(3, 17).astype(numpy.float64) * 1.1,))
    return cases


QUANTIZATIONS = ((1.0, 0), (0.05, 3), (0.0123, 7), (1 / 3, 0), (2.0**-16, 100))


# Scales whose inverse, or whose products, a core that flushes denormal numbers would get wrong; zero points beyond
# the dtype; scale, zero point, dtype.
FAR_QUANTIZATIONS = (
    (2.0**-130, 0, "int8"), (2.0**-126, 1, "int8"), (2.0**-124, -3, "uint8"), (2.0**127, 5, "int8"),
    (1e39, 7, "int16"), (-0.05, 3, "int8"), (0.05, -31990, "int8"), (0.05, 32010, "uint8"), (0.01, 70000, "int16"),
    (0.05, -128, "int8"), (0.05, 255, "uint8"), (1e-3, -32768, "int16"),
)  # fmt: skip


def finite_floats(count: int, scale: float) -> Array:
    """Numbers that fit int32 after the division by `scale`: ties, denormals, both ends of saturation."""
    ties = (numpy.arange(-300, 300) + 0.5) * scale
    near = numpy.concatenate([numpy.nextafter(ties, numpy.inf), numpy.nextafter(ties, -numpy.inf)])
    far = numpy.array([2.0**31 - 2**7, -(2.0**31), 40000, -40000, 2.0**24 + 2, 1e-40 / scale, -0.0]) * scale
    with numpy.errstate(over="ignore"):
        head = numpy.concatenate([ties, near, far]).astype(numpy.float32)
    head = numpy.nan_to_num(head, posinf=1, neginf=-1)
    return numpy.concatenate([head, floats(count - head.size, scale=90) * numpy.float32(min(scale, 1e30))])


def quantize_cases() -> dict[str, Case]:
    """quantized_decomposed::{quantize,dequantize}_per_tensor of four dtypes; ties, NaN and far values among them."""
    cases = {}
    for dtype in INTEGERS:
        for number, (scale, zero_point) in enumerate(QUANTIZATIONS):
            quantize = _quantize("quantize_per_tensor", scale, zero_point, dtype)
            dequantize = _quantize("dequantize_per_tensor", scale, zero_point, dtype)
            cases[f"quantize_{dtype}_{number}"] = Case(quantize, (special_floats(600, scale),))
            cases[f"quantize_{dtype}_{number}_finite"] = Case(quantize, (finite_floats(4107, scale),))
            cases[f"dequantize_{dtype}_{number}"] = Case(dequantize, (integers(dtype, 500),))
    for dtype in ("uint8", "int8"):
        dequantize = _quantize("dequantize_per_tensor", 0.0123, 7, dtype)
        cases[f"dequantize_{dtype}_long"] = Case(dequantize, (integers(dtype, 4107),))
    for number, (scale, zero_point, dtype) in enumerate(FAR_QUANTIZATIONS):
        quantize = _quantize("quantize_per_tensor", scale, zero_point, dtype)
        dequantize = _quantize("dequantize_per_tensor", scale, zero_point, dtype)
        cases[f"quantize_far_{number}"] = Case(quantize, (finite_floats(2055, scale),))
        cases[f"dequantize_far_{number}"] = Case(dequantize, (integers(dtype, 523),))
    narrow = _quantize("quantize_per_tensor", 0.05, 3, "int8", (-127, 100))
    cases["quantize_narrow"] = Case(narrow, (finite_floats(2055, 0.05),))
    # NaN after the first block: earlier elements are converted in vectors, those of its block one by one.
    late = finite_floats(9000, 0.05)
    late[6000] = numpy.nan
    cases["quantize_late_nan"] = Case(_quantize("quantize_per_tensor", 0.05, 3, "int8"), (late,))
    return cases


def _quantize(
    name: str, scale: float, zero_point: int, dtype: str, limits: tuple[int, int] | None = None
) -> Callable[..., Any]:
    low, high = limits or (int(numpy.iinfo(dtype).min), int(numpy.iinfo(dtype).max))

    def function(torch: Any, x: Any) -> Any:
        operator = getattr(torch.ops.quantized_decomposed, name)
        # A product first: `run` takes no NaN and no infinity for an input that is quantised.
        x = x * 1.0 if x.is_floating_point() else x
        return operator(x, scale, zero_point, low, high, getattr(torch, dtype))

    return function


def pooling_cases() -> dict[str, Case]:
    """aten::avg_pool2d and max_pool2d_with_indices over all of their parameters."""
    average: Sequence[tuple[Any, ...]] = (
        ((3, 2), (2, 1), (1, 1)), (3,), (2, 2, 0, True), (3, 2, 1, True, False),
        ((5, 3), (1, 2), (2, 1), False, True, 7), ((24, 5),), (3, 2, 1, False, True, -2),
    )  # fmt: skip
    maximum: Sequence[tuple[Any, ...]] = (
        ((3, 2), (2, 1), (1, 1)), (3,), (2, 2, 0, 1, True), (3, 2, 1, 2, True), ((5, 3), (1, 2), (2, 1), 1),
        (2, 1, 1, 3),
    )  # fmt: skip
    image = floats(2, 3, 25, 10, scale=3)
    with_special = image.copy()
    with_special[0, 0, 3, 3] = numpy.nan
    with_special[1, 1, 20:] = -numpy.inf
    cases = {
        f"avg_pool2d_{n}": Case(functional("avg_pool2d", *options), (image,))
        for n, options in enumerate(average)
    }
    cases["avg_pool2d_special"] = Case(functional("avg_pool2d", 3, 2, 1), (with_special,))
    cases["avg_pool2d_negative_zero"] = Case(
        functional("avg_pool2d", 2), (numpy.full((1, 1, 4, 4), -0.0, numpy.float32),)
    )
    cases["avg_pool2d_rank_3"] = Case(functional("avg_pool2d", 3, 2, 1), (floats(3, 9, 8),))
    cases["avg_pool2d_int64"] = Case(
        functional("avg_pool2d", 3, 2, 1), (integers("int16", 1, 2, 9, 8).astype(numpy.int64),)
    )
    for n, options in enumerate(maximum):
        cases[f"max_pool2d_{n}"] = Case(
            functional("max_pool2d", *options, return_indices=True), (with_special,), outputs=2
        )
    for dtype in INTEGERS:
        cases[f"max_pool2d_{dtype}"] = Case(
            functional("max_pool2d", 3, 2, 1, return_indices=True), (integers(dtype, 1, 2, 9, 8),), outputs=2
        )
    cases["max_pool2d_channels_last"] = Case(
        functional("max_pool2d", 3, 2, 1), (floats(1, 3, 9, 8),), channels_last=True
    )
    return cases


def arithmetic_cases() -> dict[str, Case]:
    """aten::add, sub, mul and div: dtypes and mixtures, broadcasting, numbers, alpha, channels_last."""
    cases = {}
    left, right = special_floats(64).reshape(8, 8), special_floats(64, seed=1)[::-1].reshape(8, 8).copy()
    for name in ("add", "sub", "mul", "div"):
        function = method(name)
        cases[f"{name}_float32"] = Case(function, (left, right))
        cases[f"{name}_broadcast"] = Case(function, (floats(2, 1, 3, 4), floats(5, 1, 4, seed=1)))
        cases[f"{name}_broadcast_left"] = Case(function, (floats(4), floats(3, 4, seed=1)))
        cases[f"{name}_float64"] = Case(
            function, (floats(5, 6).astype(numpy.float64) / 3, floats(5, 6, seed=1))
        )
        cases[f"{name}_channels_last"] = Case(
            function, (floats(1, 3, 4, 5), floats(1, 3, 4, 5, seed=1)), True
        )
        for dtype in (*INTEGERS, "int64"):
            operands = (integers(dtype, 5, 6), nonzero(integers(dtype, 5, 6, seed=1)))
            cases[f"{name}_{dtype}"] = Case(function, operands)
        cases[f"{name}_int8_float32"] = Case(function, (integers("int8", 5, 6), floats(5, 6)))
        cases[f"{name}_int8_uint8"] = Case(
            function, (integers("int8", 5, 6), nonzero(integers("uint8", 5, 6)))
        )
    for name in ("add", "sub", "mul"):
        cases[f"{name}_number"] = Case(method(name, 2.7), (left,))
        cases[f"{name}_int32_number"] = Case(method(name, 3), (integers("int32", 5, 5),))
        cases[f"{name}_int32_real_number"] = Case(method(name, 2.5), (integers("int32", 5, 5),))
        cases[f"{name}_scalar_tensor"] = Case(method(name), (floats(3, 4), numpy.array(1.7, numpy.float32)))
    for name in ("add", "sub"):
        cases[f"{name}_alpha"] = Case(method(name, alpha=0.3), (left, right))
        cases[f"{name}_int8_alpha"] = Case(
            method(name, alpha=3), (integers("int8", 4, 5), integers("int8", 4, 5, seed=1))
        )
    return cases


def activation_cases() -> dict[str, Case]:
    """aten::relu, hardtanh and clamp with one bound or two."""
    x, small = special_floats(64), integers("int8", 40)
    return {
        "relu": Case(method("relu"), (x,)),
        "relu_int8": Case(method("relu"), (small,)),
        "relu6": Case(functional("relu6"), (x,)),
        "hardtanh": Case(functional("hardtanh", -0.3, 0.7), (x,)),
        "clamp": Case(method("clamp", -0.5, 1.5), (x,)),
        "clamp_minimum": Case(method("clamp", min=-0.5), (x,)),
        "clamp_maximum_int8": Case(method("clamp", max=3), (small,)),
        "clamp_int8_real": Case(method("clamp", -2.5, 3.5), (small,)),
        "clamp_crossed": Case(method("clamp", 2.0, -2.0), (x,)),
    }


def conversion_cases() -> dict[str, Case]:
    """dim_order_ops::_to_dim_order_copy between all dtypes, NaN and values out of range among them."""
    sources = {
        "float32": special_floats(96),
        "float64": special_floats(96).astype(numpy.float64) * 1.1,
        "int32": integers("int32", 60),
        "int8": integers("int8", 60),
        "bool": integers("int8", 60) > 0,
    }
    targets = (*INTEGERS, "int64", "float32", "float64", "bool")
    return {
        f"to_{target}_from_{source}": Case(_to(target), (array,))
        for source, array in sources.items()
        for target in targets
        if source != target
    }


def _to(dtype: str) -> Callable[..., Any]:
    return lambda torch, a: a.to(getattr(torch, dtype))


def movement_cases() -> dict[str, Case]:
    """Operators that move elements, for elements of 1, 2, 4 and 8 bytes."""
    cases = {
        "channels_last": Case(
            lambda torch, a: a.to(memory_format=torch.channels_last), (floats(2, 3, 4, 5),)
        ),
        "view": Case(lambda torch, a: (a + 0).view(-1, 6) * 2, (floats(4, 9),)),
        "unsqueeze": Case(lambda torch, a: a.unsqueeze(1) + 1, (floats(3, 4),)),
        "squeeze": Case(lambda torch, a: a.squeeze((1, 3)) + 1, (floats(3, 1, 4, 1),)),
        "clone": Case(lambda torch, a: a.clone(), (floats(3, 1, 4),)),
        "cat_first": Case(
            lambda torch, a, b: torch.cat([a, b], -3), (integers("int8", 2, 3, 4), integers("int8", 1, 3, 4))
        ),
        "copy": Case(lambda torch, a, b: torch.ops.aten.copy(a, b), (floats(3, 4), floats(1, 4, seed=1))),
        "copy_converted": Case(
            lambda torch, a, b: torch.ops.aten.copy(a, b), (integers("int16", 3, 4), floats(4, scale=300))
        ),
        "select": Case(lambda torch, a: a[:, -2], (floats(4, 9, 2),)),
        "empty_slice": Case(lambda torch, a: torch.cat([a[:, 3:3], a], 1), (floats(2, 5),)),
    }
    for dtype in ("int8", "int16", "int32", "int64"):
        array = integers(dtype, 3, 7, 2, 2)
        cases[f"permute_{dtype}"] = Case(lambda torch, a: a.permute(3, 1, 0, 2), (array,))
        cases[f"expand_{dtype}"] = Case(lambda torch, a: a.expand(2, 3, 4).clone(), (integers(dtype, 3, 1),))
        cases[f"slice_{dtype}"] = Case(lambda torch, a: a[:, 1:-1:2], (array,))
        cases[f"cat_{dtype}"] = Case(
            lambda torch, a, b: torch.cat([a, b, a], 1), (array, integers(dtype, 3, 2, 2, 2))
        )
    return cases


def mean_cases() -> dict[str, Case]:
    """aten::mean over any dimensions: the order of summation shows in the last bits."""
    rows: Sequence[tuple[tuple[int, ...], tuple[int, ...], bool]] = (
        ((2, 3, 4, 5), (2, 3), True), ((2, 3, 4, 5), (2, 3), False), ((4, 50), (1,), False), ((50, 4), (0,), True),
        ((3, 40, 50), (0, 2), False), ((1, 8, 17, 19), (-1, -2), True), ((3, 4, 5), (2, 0), False),
    )  # fmt: skip
    cases = {
        f"mean_{n}": Case(method("mean", dim=dims, keepdim=keep), (floats(*shape, scale=3),))
        for n, (shape, dims, keep) in enumerate(rows)
    }
    cases["mean_all"] = Case(lambda torch, a: a.mean(), (floats(3, 4, 5),))
    cases["mean_float64"] = Case(
        method("mean", dim=(1,), keepdim=False), (floats(3, 77).astype(numpy.float64) / 3,)
    )
    return cases


def convolution_cases() -> dict[str, Case]:
    """aten::convolution in one and two dimensions: stride, padding, dilation, groups, bias."""
    rows: Sequence[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = (
        ((1, 3, 9, 8), (4, 3, 3, 3), {"padding": 1}),
        ((2, 4, 9, 8), (6, 2, 3, 2), {"stride": 2, "padding": (1, 0), "groups": 2}),
        ((1, 3, 9, 8), (5, 3, 3, 3), {"dilation": 2}),
        ((1, 6, 7, 7), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
        ((1, 16, 5, 5), (8, 16, 1, 1), {}),
        ((1, 16, 12, 12), (8, 16, 3, 3), {"padding": (2, 1), "stride": (1, 2)}),
        ((1, 3, 11), (4, 3, 3), {"stride": 2, "padding": 1}),
    )
    cases = {}
    for n, (shape, weights, options) in enumerate(rows):
        inputs = (floats(*shape), floats(*weights, seed=1))
        function = functional("conv2d" if len(shape) == 4 else "conv1d", **options)
        cases[f"convolution_{n}"] = Case(function, inputs)
        cases[f"convolution_{n}_bias"] = Case(function, (*inputs, floats(weights[0], seed=2)))
    cases["convolution_channels_last"] = Case(
        functional("conv2d", padding=1),
        (floats(1, 3, 7, 6), floats(4, 3, 3, 3), floats(4)),
        channels_last=True,
    )
    return cases


def linear_cases() -> dict[str, Case]:
    """aten::addmm: what torch.nn.Linear with a bias becomes, and addmm with its factors."""
    cases = {
        f"linear_{rows}x{depth}x{columns}": Case(
            functional("linear"),
            (floats(rows, depth), floats(columns, depth, seed=1), floats(columns, seed=2)),
        )
        for rows, depth, columns in ((1, 8, 4), (4, 100, 37), (3, 577, 10), (1, 1, 1))
    }
    cases["linear_rank_3"] = Case(
        functional("linear"),
        (floats(2, 3, 8), floats(4, 8, seed=1), floats(4)),
    )
    cases["addmm_factors"] = Case(
        method("addmm", beta=0.5, alpha=2.5),
        (floats(5, 9), floats(5, 7, seed=1), floats(7, 9, seed=2)),
    )
    return cases


def exact_families() -> dict[str, dict[str, Case]]:
    """All cases whose results equal those of ExecuTorch's host runtime bit for bit."""
    return {
        "softmax": softmax_cases(),
        "quantization": quantize_cases(),
        "pooling": pooling_cases(),
        "arithmetic": arithmetic_cases(),
        "activation": activation_cases(),
        "conversion": conversion_cases(),
        "movement": movement_cases(),
        "mean": mean_cases(),
        "convolution": convolution_cases(),
        "matrix_product": linear_cases(),
    }


def number_cases() -> dict[str, Case]:
    """The operators that ExecuTorch calls when it keeps numbers and clones as they are (`dim_order=False`)."""
    x, whole = special_floats(64), integers("int32", 40)
    cases = {"clone": Case(lambda torch, a: a.clone(), (x,))}
    for name in ("add", "sub", "mul"):
        cases[f"{name}_real"] = Case(_overload(name, 2.7), (x,))
        cases[f"{name}_integer"] = Case(_overload(name, 3), (whole,))
        cases[f"{name}_int8"] = Case(_overload(name, 100), (integers("int8", 40),))
    for name in ("sub", "mul"):  # the host runtime's optimised add refuses this pair
        cases[f"{name}_promoted"] = Case(_overload(name, 2.5), (whole,))
    return cases


def _overload(name: str, number: float) -> Callable[..., Any]:
    return lambda torch, a: getattr(torch.ops.aten, name).Scalar(a, number)
