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


def conversion_cases() -> Cases:
    """quantize_per_tensor of ties, their neighbours and what saturates, and dequantize_per_tensor of every number."""
    halves = numpy.arange(-600, 600, dtype=numpy.float32) / 2
    numbers = numpy.concatenate(
        [
            halves,
            numpy.nextafter(halves, numpy.float32(1e9)),
            numpy.array([-1e12, -1e9, 1e9, 1e12, -0.0], numpy.float32),
        ]
    )
    every = numpy.arange(-128, 128, dtype=numpy.int8)
    cases: Cases = {}
    for scale in (0.25, 0.02, 3.0):
        for zero in (-128, -7, 0, 4, 127):
            cases[f"quantize_per_tensor/{scale}_{zero}"] = Case(
                _conversion("quantize_per_tensor", scale, zero), (numbers * numpy.float32(scale),)
            )
            cases[f"dequantize_per_tensor/{scale}_{zero}"] = Case(
                _conversion("dequantize_per_tensor", scale, zero), (every,)
            )
    long = numpy.tile(every, 9)  # enough for the table of results
    cases["dequantize_per_tensor/long"] = Case(_conversion("dequantize_per_tensor", 0.0173, 11), (long,))
    return cases


def _conversion(name: str, scale: float, zero_point: int) -> Any:
    return lambda torch, x: _call(torch, name, x, scale, zero_point, -128, 127, torch.int8)


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
        "pad/one_channel": Case(pad([0, 1, 2, 0], [0, 3, 1, 0]), (image[:, :1],)),
        "pad/one_pixel": Case(pad([0, 1, 2, 0], [0, 3, 1, 0]), (image[:, :, :1, :1],)),
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
        function = _convolution("quantized_conv2d_nhwc", size, window, (), True)
        cases[f"quantized_conv2d_nhwc/{name}"] = Case(function, (_nhwc(operands[0]), *operands[1:], SCRATCH))
    return cases


def _nhwc(image: Array) -> Array:
    return numpy.ascontiguousarray(image.transpose(0, 2, 3, 1))


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
        function = _convolution(
            "quantized_depthwise_conv2d_nhwc", (1, *kernel, outputs), window, (multiplier,), True
        )
        inputs = (_nhwc(operands[0]), *operands[1:], SCRATCH)
        cases[f"quantized_depthwise_conv2d_nhwc/{name}"] = Case(function, inputs)
    return cases


def transpose_convolution_cases() -> Cases:
    """quantized_transpose_conv2d: strides, padding of both sides, dilation, channels beyond one block, no bias."""
    rows: dict[str, tuple[Any, ...]] = {
        # input, outputs, kernel, stride, padding, output padding, dilation; sums below 2^24, where float is exact
        "plain": ((1, 2, 5, 5), 4, (3, 3), (1, 1), (0, 0), (0, 0), (1, 1)),
        "stride": ((2, 3, 4, 5), 6, (3, 2), (2, 3), (1, 0), (1, 2), (1, 1)),
        "gaps": ((1, 4, 3, 4), 5, (2, 1), (3, 4), (0, 0), (2, 3), (1, 1)),  # outputs that no input reaches
        "dilation": ((1, 17, 5, 4), 70, (3, 2), (2, 1), (2, 1), (1, 0), (2, 3)),
        "even": (
            (1, 8, 4, 4),
            3,
            (3, 3),
            (4, 2),
            (1, 3),
            (1, 1),
            (2, 2),
        ),  # dilation and stride share a factor
    }
    cases: Cases = {}
    for number, (name, (shape, outputs, kernel, *window)) in enumerate(rows.items()):
        weights = integers("int8", outputs, math.prod(kernel) * shape[1], seed=number)
        size = (outputs, *kernel, shape[1])
        bias = integers("int16", outputs).astype(numpy.int32)
        operands = (integers("int8", *shape, seed=number), weights, bias, *scales_of(_factors(outputs)))
        for has_bias in (True, False):
            function = _convolution("quantized_transpose_conv2d", size, window, (), has_bias)
            cases[f"quantized_transpose_conv2d/{name}_{int(has_bias)}"] = Case(
                function, (*operands, SCRATCH, SCRATCH), True
            )
        function = _convolution("quantized_transpose_conv2d_nhwc", size, window, (), True)
        inputs = (_nhwc(operands[0]), *operands[1:], SCRATCH, SCRATCH)
        cases[f"quantized_transpose_conv2d_nhwc/{name}"] = Case(function, inputs)
    return cases


def _convolution(
    name: str, size: tuple[int, ...], window: Sequence[Any], more: tuple[int, ...], has_bias: bool
) -> Any:
    def function(
        torch: Any, x: Any, weight: Any, bias: Any, multipliers: Any, shifts: Any, *scratch: Any
    ) -> Any:
        numbers = [list(pair) for pair in window]
        addend = bias if has_bias else None
        rest = (*more, 5, -9, multipliers, shifts, -120, 125, *scratch)
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


def product_cases() -> Cases:
    """quantized_batch_matmul: the shapes of ExecuTorch's test_batch_matmul.py, offsets, ties, saturation."""
    rows = (
        (1, 2, 3, 4),
        (2, 4, 4, 4),
        (8, 3, 5, 2),
        (1, 8, 16, 8),
        (2, 16, 1, 16),
        (2, 1, 16, 1),
        (1, 3, 37, 70),
    )
    cases: Cases = {}
    for number, (batch, height, inner, width) in enumerate(rows):
        operands = (integers("int8", batch, height, inner), integers("int8", batch, width, inner, seed=1))
        offsets = ((0, 0), (-7, 100), (128, -127))[number % 3]
        function = _product(offsets, scale_of((2.0**-8, 0.0021, 0.3)[number // 3]))
        cases[f"quantized_batch_matmul/{number}"] = Case(function, (*operands, SCRATCH))
    return cases


def _product(offsets: tuple[int, int], scale: tuple[int, int]) -> Any:
    return lambda torch, a, b, scratch: _call(
        torch, "quantized_batch_matmul", a, offsets[0], b, offsets[1], -5, *scale, scratch
    )


def quotient_cases() -> Cases:
    """quantized_div of int8 and int16: every pair of int8 numbers, zero divisors, ties, saturation."""
    numbers = numpy.arange(-128, 128, dtype=numpy.int8)
    every = (numpy.repeat(numbers, 256).reshape(256, 256), numpy.tile(numbers, 256).reshape(256, 256))
    cases: Cases = {
        f"quantized_div/every_{number}": Case(_quotient(zeros, scale), every)
        for number, (zeros, scale) in enumerate(
            (((0, 0, 0), 0.5), ((3, -20, 7), 11.3), ((-128, 127, -90), -3e30))
        )
    }
    halfwords = (integers("int16", 9, 67), integers("int16", 9, 67, seed=1))
    cases["quantized_div/int16"] = Case(_quotient((5, -3, 100), 4096.0), halfwords)
    image = integers("int8", 1, 9, 5, 7)
    cases["quantized_div/channels_last"] = Case(
        _quotient((1, 2, 3), 60.0), (image, image[..., ::-1].copy()), True
    )
    return cases


def _quotient(zeros: tuple[int, int, int], scale: float) -> Any:
    return lambda torch, a, b: _call(torch, "quantized_div", a, zeros[0], b, zeros[1], zeros[2], scale)


def softmax_cases() -> Cases:
    """softmax: the shapes of ExecuTorch's test_softmax.py, any dimension, scales, equal numbers, extremes."""
    ramp = numpy.linspace(-128, 127, 8 * 1024).round().astype(numpy.int8)
    rows: dict[str, tuple[Any, ...]] = {
        "rank1": (integers("int8", 16), -1, 0.1),
        "rank2": (integers("int8", 4, 8), -1, 0.06),
        "rank3": (integers("int8", 2, 3, 4), -1, 0.016),
        "dim": (integers("int8", 2, 3, 4), 1, 0.016),
        "long": (ramp.reshape(8, 1024), -1, 0.08),
        "channels": (integers("int8", 2, 12, 5, 3), 1, 0.02),
        "one": (integers("int8", 5, 1), -1, 0.1),
        "ties": (numpy.full((2, 512), 77, numpy.int8), -1, 0.1),  # 256 / 512 is a half
        "far": (numpy.array([[127] + [-128] * 6, [-128] * 7], numpy.int8), -1, 3.0),
        "near": (integers("int8", 3, 7), -1, 1e-5),
    }
    return {
        f"softmax/{name}": Case(_softmax(dim, scale), (numbers,), numbers.ndim == 4)
        for name, (numbers, dim, scale) in rows.items()
    }


def _softmax(dim: int, scale: float) -> Any:
    # AoT has 5 bits before the point (SOFTMAX_INPUT_INTEGER_BITS): 26 of 31 behind it.
    multiplier, shift = scale_of(scale * 2**26)
    return lambda torch, x: _call(torch, "softmax", x, dim, 3, -128, multiplier, shift, -248)


def pooling_cases() -> Cases:
    """quantized_avg_pool2d with exact ties and other scales, and quantized_max_pool2d, in both forms."""
    image = integers("int8", 2, 5, 9, 8)
    windows: Sequence[tuple[Any, ...]] = (
        ([2, 2], [2, 2], [0, 0]),
        ([3, 3], [1, 2], [1, 1]),
        ([9, 8], [1, 1], [0, 0]),
    )
    cases: Cases = {}
    for number, window in enumerate(windows):
        for kind, factor in (("tie", 2.0**-5), ("scale", 0.0473)):
            for form, place in (("", image), ("_nhwc", _nhwc(image))):
                cases[f"quantized_avg_pool2d{form}/{number}_{kind}"] = Case(
                    _average(form, window, number == 0, scale_of(factor)), (place, SCRATCH), not form
                )
        cases[f"quantized_max_pool2d/{number}"] = Case(_maximum("", window), (image,), True)
        cases[f"quantized_max_pool2d_nhwc/{number}"] = Case(_maximum("_nhwc", window), (_nhwc(image),))
    return cases


def _average(form: str, window: tuple[Any, ...], ceil_mode: bool, scale: tuple[int, int]) -> Any:
    return lambda torch, x, scratch: _call(
        torch, f"quantized_avg_pool2d{form}", x, *window, ceil_mode, -11, *scale, scratch
    )


def _maximum(form: str, window: tuple[Any, ...]) -> Any:
    return lambda torch, x: _call(
        torch, f"quantized_max_pool2d{form}", x, *window, [1, 1], False, 4, 4, -90, 100
    )


def cortex_m_cases() -> Cases:
    """All of this module's cases by name."""
    return {
        **conversion_cases(),
        **add_cases(),
        **movement_cases(),
        **convolution_cases(),
        **depthwise_cases(),
        **transpose_convolution_cases(),
        **linear_cases(),
        **product_cases(),
        **quotient_cases(),
        **softmax_cases(),
        **pooling_cases(),
    }
