"""The operators of ExecuTorch's Cortex-M backend, called as its passes call them.

Their oracle is the reference in Python that ExecuTorch registers beside each (backends/cortex_m/ops/operators.py).
"""

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy

from tests.kernels.interpreter.cases import integers
from tests.kernels.interpreter.models import Array, Case

Cases = dict[str, Case]
# Factors: 1/2 and 1/4 give ties; others saturate, round, or have a left shift.
FACTORS = (0.5, 0.25, 0.0123, 0.9999, 1.0, 1.7, 3e-5)
SCRATCH = numpy.zeros(1, numpy.uint8)
RANGES = ((-128, 127), (-100, 17))


def scale_of(factor: float) -> tuple[int, int]:
    """Multiplier and shift: factor = multiplier * 2^(shift - 31) with 31 bits of the multiplier."""
    mantissa, exponent = math.frexp(factor)
    multiplier = round(mantissa * 2**31)
    return (multiplier // 2, exponent + 1) if multiplier == 2**31 else (multiplier, exponent)


def scales_of(factors: Sequence[float]) -> tuple[Array, Array]:
    """The same as two int32 arrays."""
    pairs = [scale_of(factor) for factor in factors]
    return numpy.array([m for m, _ in pairs], numpy.int32), numpy.array([s for _, s in pairs], numpy.int32)


def _call(torch: Any, name: str, *arguments: Any) -> Any:
    importlib.import_module("executorch.backends.cortex_m.passes")  # registers the operators
    return getattr(torch.ops.cortex_m, name)(*arguments)


def add_cases() -> Cases:
    """quantized_add and quantized_mul: ties, saturation, ranges, broadcast channels, layouts."""
    cases: Cases = {}
    for number, factor in enumerate(FACTORS):
        bounds = RANGES[number % 2]
        first, second, out = (
            scale_of(factor),
            scale_of(FACTORS[-1 - number]),
            scale_of(2**-19 * max(factor, 0.01)),
        )
        operands = (integers("int8", 5, 67), integers("int8", 5, 67, seed=number + 1))
        cases[f"quantized_add/{number}"] = Case(_add(first, second, out, bounds), operands)
        cases[f"quantized_mul/{number}"] = Case(_mul(scale_of(factor / 64)), operands)
    image, channels = integers("int8", 1, 9, 5, 7), integers("int8", 1, 9, 1, 1)
    arguments = (scale_of(0.5), scale_of(0.4), scale_of(2**-19), (-128, 127))
    cases["quantized_add/channels_last"] = Case(_add(*arguments), (image, image[..., ::-1].copy()), True)
    cases["quantized_add/channels"] = Case(_add(*arguments), (image, channels), True)
    cases["quantized_mul/channels"] = Case(_mul(scale_of(0.01)), (image, channels), True)
    return cases


def _add(
    first: tuple[int, int], second: tuple[int, int], out: tuple[int, int], bounds: tuple[int, int]
) -> Any:
    return lambda torch, a, b: _call(torch, "quantized_add", a, 3, *first, b, -20, *second, -7, *out, *bounds)


def _mul(out: tuple[int, int]) -> Any:
    return lambda torch, a, b: _call(torch, "quantized_mul", a, 3, b, -20, 11, *out)


def movement_cases() -> Cases:
    """Operators that choose or move elements: activation tables, minimum and maximum, transpose, pad."""
    image, other = integers("int8", 2, 3, 5, 6), integers("int8", 2, 3, 5, 6, seed=1)
    table, rows = integers("int8", 256), integers("int8", 4, 9)

    def pad(before: list[int], after: list[int]) -> Any:
        return lambda torch, a: _call(torch, "pad", a, before, after, -128)

    def transpose(*order: int) -> Any:
        return lambda torch, a: _call(torch, "transpose", a, list(order))

    return {
        "quantized_activation/all": Case(
            lambda torch, a, b: _call(torch, "quantized_activation", a, b),
            (numpy.arange(-128, 128, dtype=numpy.int8), table),
        ),
        "minimum/image": Case(lambda torch, a, b: _call(torch, "minimum", a, b), (image, other)),
        "maximum/image": Case(lambda torch, a, b: _call(torch, "maximum", a, b), (image, other)),
        "maximum/number": Case(
            lambda torch, a, b: _call(torch, "maximum", a, b), (rows, numpy.array([3], numpy.int8))
        ),
        "transpose/image": Case(transpose(0, 2, 3, 1), (image,)),
        "transpose/rows": Case(transpose(1, 0), (rows,)),
        "pad/contiguous": Case(pad([1, 0, 2, 3], [0, 1, 0, 4]), (image,)),
        "pad/channels_last": Case(pad([0, 1, 2, 0], [0, 3, 1, 0]), (image,), True),
        "pad/rows": Case(pad([0, 0, 1, 2], [0, 0, 0, 1]), (rows,)),
    }


def _factors(count: int) -> list[float]:
    # From 1/8192 to 1/4 of a sum, and every fifth a power of two.
    return [2.0 ** -(i % 7 + 4) if i % 5 == 0 else 0.0123 * (1 + i % 11) / 20 for i in range(count)]


def convolution_cases() -> Cases:
    """quantized_conv2d: windows, strides, padding, dilation, groups, channels beyond one block, no bias."""
    rows: dict[str, tuple[Any, ...]] = {
        # input, outputs, kernel, stride, padding, dilation, groups
        "3x3": ((1, 3, 9, 8), 8, (3, 3), (1, 1), (1, 1), (1, 1), 1),
        "stride": ((2, 5, 10, 9), 6, (3, 2), (2, 1), (0, 1), (1, 1), 1),
        "1x1": ((1, 17, 4, 5), 70, (1, 1), (1, 1), (0, 0), (1, 1), 1),
        "dilation": ((1, 4, 11, 10), 4, (3, 3), (1, 2), (2, 2), (2, 2), 1),
        "groups": ((1, 6, 5, 6), 4, (3, 3), (1, 1), (1, 1), (1, 1), 2),
        "one_channel": ((1, 1, 12, 9), 3, (10, 4), (2, 2), (5, 1), (1, 1), 1),
    }
    cases: Cases = {}
    for number, (name, (shape, outputs, kernel, *window, groups)) in enumerate(rows.items()):
        weights = integers("int8", outputs, math.prod(kernel) * shape[1] // groups, seed=number)
        size = (outputs, *kernel, shape[1] // groups)
        bias = integers("int16", outputs).astype(numpy.int32)
        operands = (integers("int8", *shape, seed=number), weights, bias, *scales_of(_factors(outputs)))
        for has_bias in (True, False):
            function = _convolution("quantized_conv2d", size, window, (), has_bias)
            cases[f"quantized_conv2d/{name}_{int(has_bias)}"] = Case(function, (*operands, SCRATCH), True)
    return cases


def depthwise_cases() -> Cases:
    """quantized_depthwise_conv2d: the same, and a multiplier of channels."""
    rows: dict[str, tuple[Any, ...]] = {
        # input, multiplier, kernel, stride, padding, dilation
        "3x3": ((1, 5, 9, 8), 1, (3, 3), (1, 1), (1, 1), (1, 1)),
        "stride": ((2, 70, 6, 7), 1, (3, 3), (2, 2), (1, 1), (1, 1)),
        "dilation": ((1, 8, 9, 9), 1, (3, 2), (1, 1), (2, 0), (2, 3)),
        "multiplier": ((1, 3, 7, 6), 2, (3, 3), (1, 1), (1, 1), (1, 1)),
        "one_channel": ((1, 1, 12, 9), 8, (10, 4), (2, 2), (5, 1), (1, 1)),
    }
    cases: Cases = {}
    for number, (name, (shape, multiplier, kernel, *window)) in enumerate(rows.items()):
        outputs = shape[1] * multiplier
        weights = integers("int8", math.prod(kernel) * outputs, 1, seed=number)
        bias = integers("int16", outputs).astype(numpy.int32)
        operands = (integers("int8", *shape, seed=number), weights, bias, *scales_of(_factors(outputs)))
        function = _convolution(
            "quantized_depthwise_conv2d", (1, *kernel, outputs), window, (multiplier,), True
        )
        cases[f"quantized_depthwise_conv2d/{name}"] = Case(function, (*operands, SCRATCH), True)
    return cases


def _convolution(
    name: str, size: tuple[int, ...], window: Sequence[Any], more: tuple[int, ...], has_bias: bool
) -> Any:
    def function(
        torch: Any, x: Any, weight: Any, bias: Any, multipliers: Any, shifts: Any, scratch: Any
    ) -> Any:
        numbers = [list(pair) for pair in window]
        addend = bias if has_bias else None
        rest = (*more, 5, -9, multipliers, shifts, -120, 125, scratch)
        return _call(torch, name, x, weight.reshape(size), addend, *numbers, *rest)

    return function


def linear_cases() -> Cases:
    """quantized_linear with a bias, with sums of the weights (the form for MVE), with both offsets."""
    multiplier, shift = scale_of(0.0021)
    cases: Cases = {}
    for number, (shape, outputs, filter_offset) in enumerate((((1, 64), 12, 0), ((3, 5, 37), 10, 4))):
        x, weight = integers("int8", *shape), integers("int8", outputs, shape[-1], seed=number)
        addend = integers("int16", outputs).astype(numpy.int32)
        for kind in ("bias", "sums", "none"):
            cases[f"quantized_linear/{kind}_{number}"] = Case(
                _linear(kind, filter_offset, multiplier, shift), (x, weight, addend)
            )
    return cases


def _linear(kind: str, filter_offset: int, multiplier: int, shift: int) -> Any:
    def function(torch: Any, x: Any, weight: Any, addend: Any) -> Any:
        bias, sums = (addend if kind == "bias" else None), (addend if kind == "sums" else None)
        rest = (13, filter_offset, -3, [multiplier], [shift], 127, -128)
        return _call(torch, "quantized_linear", x, weight, bias, sums, *rest)

    return function


def pooling_cases() -> Cases:
    """quantized_avg_pool2d with exact ties and other scales, and quantized_max_pool2d."""
    image = integers("int8", 2, 5, 9, 8)
    windows: Sequence[tuple[Any, ...]] = (
        ([2, 2], [2, 2], [0, 0]),
        ([3, 3], [1, 2], [1, 1]),
        ([9, 8], [1, 1], [0, 0]),
    )
    cases: Cases = {}
    for number, window in enumerate(windows):
        for kind, factor in (("tie", 2.0**-5), ("scale", 0.0473)):
            cases[f"quantized_avg_pool2d/{number}_{kind}"] = Case(
                _average(window, number == 0, scale_of(factor)), (image, SCRATCH), True
            )
        cases[f"quantized_max_pool2d/{number}"] = Case(_maximum(window), (image,), True)
    return cases


def _average(window: tuple[Any, ...], ceil_mode: bool, scale: tuple[int, int]) -> Any:
    return lambda torch, x, scratch: _call(
        torch, "quantized_avg_pool2d", x, *window, ceil_mode, -11, *scale, scratch
    )


def _maximum(window: tuple[Any, ...]) -> Any:
    return lambda torch, x: _call(torch, "quantized_max_pool2d", x, *window, [1, 1], False, 4, 4, -90, 100)


def cortex_m_cases() -> Cases:
    """All of this module's cases by name."""
    return {
        **add_cases(),
        **movement_cases(),
        **convolution_cases(),
        **depthwise_cases(),
        **linear_cases(),
        **pooling_cases(),
    }
