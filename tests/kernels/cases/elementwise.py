"""Operators that compute each element from those at its place: functions, rounding, comparisons, bits, choices."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from tests.kernels.interpreter.cases import floats, integers, nonzero, special_floats
from tests.kernels.interpreter.models import Array, Case, functional, method

Cases = dict[str, Case]

REAL_FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1", "log", "log10", "log1p",
    "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
ROUNDING = ("abs", "ceil", "floor", "neg", "round", "sign", "trunc")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
WHOLE = ("uint8", "int8", "int16", "int32", "int64")

SPECIAL = special_floats(96).reshape(12, 8)
OTHER = special_floats(96, seed=1)[::-1].reshape(12, 8).copy()
# Where functions change: around 0 and 1, where they grow, and where they leave their domain.
DOMAIN = numpy.array(
    [-1.0, -0.99, -0.5, -1e-3, 1e-6, 0.1, 0.5, 0.75, 0.9999, 1.0, 1.5, 2.0, 5.0, 20.0, 88.0], numpy.float32
)


def mask(*shape: int, seed: int = 0) -> Array:
    """Random bools."""
    return numpy.random.default_rng([seed, *shape]).random(shape) < 0.5


def real_functions() -> Cases:
    """Special values, the edges of every domain, integers, no elements, no dimensions, channels_last."""
    cases = {}
    for name in REAL_FUNCTIONS:
        function = method(name)
        cases[f"{name}/special"] = Case(function, (SPECIAL,))
        cases[f"{name}/domain"] = Case(function, (DOMAIN,))
        cases[f"{name}/int8"] = Case(function, (numpy.arange(-12, 12, dtype=numpy.int8),))
    for name in ("exp", "tanh", "rsqrt"):
        cases[f"{name}/int64"] = Case(method(name), (numpy.arange(1, 9, dtype=numpy.int64),))
        cases[f"{name}/bool"] = Case(method(name), (mask(5),))
        cases[f"{name}/empty"] = Case(method(name), (numpy.zeros((0, 3), numpy.float32),))
        cases[f"{name}/no_dimensions"] = Case(method(name), (numpy.array(0.7, numpy.float32),))
        cases[f"{name}/channels_last"] = Case(method(name), (abs(floats(1, 3, 4, 5)),), channels_last=True)
    return cases


def rounding() -> Cases:
    """Ties, signs of zero, and integers, which stay as they are."""
    cases = {}
    for name in ROUNDING:
        function = method(name)
        cases[f"{name}/special"] = Case(function, (SPECIAL,))
        cases[f"{name}/float64"] = Case(function, (SPECIAL.astype(numpy.float64) * 1.1,))
        for dtype in WHOLE:
            # The oracle takes integers through float, which holds those below 2^24.
            shift = 0 if name in ("abs", "neg", "sign") else {"int32": 8, "int64": 40}.get(dtype, 0)
            cases[f"{name}/{dtype}"] = Case(function, (integers(dtype, 40) >> shift,))
    for name in ("isnan", "isinf"):
        cases[f"{name}/special"] = Case(method(name), (SPECIAL,))
    cases["bitwise_not/bool"] = Case(method("bitwise_not"), (mask(9),))
    return cases


def comparisons() -> Cases:
    """Two tensors, mixed dtypes, broadcasting, and numbers on the right."""
    cases = {}
    whole = integers("int32", 6, 5) % 7
    for name in COMPARISONS:
        function = method(name)
        cases[f"{name}/special"] = Case(function, (SPECIAL, numpy.where(SPECIAL > 0, SPECIAL, OTHER)))
        cases[f"{name}/float64"] = Case(function, (SPECIAL.astype(numpy.float64), SPECIAL))
        cases[f"{name}/int8_int64"] = Case(
            function, (integers("int8", 6, 5), integers("int8", 6, 5, seed=1).astype(numpy.int64))
        )
        cases[f"{name}/bool"] = Case(function, (mask(7), mask(7, seed=1)))
        cases[f"{name}/broadcast"] = Case(function, (whole[:, :1], whole[0]))
        cases[f"{name}/int32_float32"] = Case(function, (whole, floats(5)))
        cases[f"{name}/number"] = Case(method(name, 0.5), (SPECIAL,))
        cases[f"{name}/whole_number"] = Case(method(name, 3), (whole,))
        cases[f"{name}/real_for_integers"] = Case(method(name, 2.5), (whole,))
        cases[f"{name}/empty"] = Case(function, (floats(0, 4), floats(4)))
    return cases


def bits() -> Cases:
    """Bits of integers and bools, shifts, and truth."""
    cases = {}
    for name, dtype in itertools.product(("bitwise_and", "bitwise_or", "bitwise_xor"), (*WHOLE, "bool")):
        pair = (
            (mask(4, 5), mask(4, 5, seed=1))
            if dtype == "bool"
            else (integers(dtype, 4, 5), integers(dtype, 5, seed=1))
        )
        cases[f"{name}/{dtype}"] = Case(method(name), pair)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        cases[f"{name}/number"] = Case(method(name, 0x35), (integers("int16", 20),))
    cases["bitwise_not/int8"] = Case(method("bitwise_not"), (integers("int8", 20),))
    cases["bitwise_not/int64"] = Case(method("bitwise_not"), (integers("int64", 20),))
    for name, dtype in itertools.product(
        ("bitwise_left_shift", "bitwise_right_shift"), ("int8", "int32", "uint8")
    ):
        steps = numpy.arange(20, dtype=dtype) % (8 * numpy.dtype(dtype).itemsize)
        cases[f"{name}/{dtype}"] = Case(method(name), (integers(dtype, 20), steps))
        cases[f"{name}/{dtype}_number"] = Case(method(name, 3), (integers(dtype, 20),))
    for name, dtype in itertools.product(("and", "or", "xor"), ("float32", "int32", "bool")):
        left, right = (
            (mask(16), mask(16, seed=1))
            if dtype == "bool"
            else (mask(16).astype(dtype) * 3, mask(16, seed=1).astype(dtype))
        )
        cases[f"logical_{name}/{dtype}"] = Case(method(f"logical_{name}"), (left, right))
        cases[f"logical_{name}/{dtype}_broadcast"] = Case(
            method(f"logical_{name}"), (left.reshape(16, 1), right[:3])
        )
    for array in (SPECIAL, integers("int8", 30) % 3, mask(9)):
        cases[f"logical_not/{array.dtype}"] = Case(method("logical_not"), (array,))
    return cases


def choices() -> Cases:
    """maximum, minimum, clamp with tensors, where and masked_fill."""
    cases = {}
    for name in ("maximum", "minimum"):
        cases[f"{name}/special"] = Case(method(name), (SPECIAL, OTHER))
        cases[f"{name}/float64"] = Case(method(name), (SPECIAL.astype(numpy.float64), OTHER))
        cases[f"{name}/broadcast"] = Case(method(name), (floats(4, 1, 3), floats(5, 1, seed=1)))
        for dtype in ("int8", "int64"):
            cases[f"{name}/{dtype}"] = Case(method(name), (integers(dtype, 30), integers(dtype, 30, seed=1)))
    low, high = floats(8, seed=3), floats(8, seed=4) + 1
    clamp: Callable[..., Any] = lambda torch, x, a, b: torch.clamp(x, a, b)  # noqa: E731
    cases["clamp/tensors"] = Case(clamp, (SPECIAL, low, high))
    cases["clamp/minima"] = Case(lambda torch, x, a: torch.clamp(x, min=a), (SPECIAL, low))
    cases["clamp/maxima"] = Case(lambda torch, x, b: torch.clamp(x, max=b), (SPECIAL, high))
    cases["clamp/int32_tensors"] = Case(clamp, tuple(integers("int32", 9, seed=seed) for seed in range(3)))
    for dtype in ("int8", "int32", "int64"):
        cases[f"where/{dtype}"] = Case(
            method("where"), (mask(6, 5), integers(dtype, 6, 5), integers(dtype, 5, seed=1))
        )
        cases[f"masked_fill/{dtype}"] = Case(_masked_fill(-7), (integers(dtype, 6, 5), mask(6, 5)))
    cases["where/special"] = Case(method("where"), (mask(12, 1), SPECIAL, OTHER))
    cases["where/mixed"] = Case(method("where"), (mask(8), floats(8), integers("int16", 8)))
    cases["where/bool"] = Case(method("where"), (mask(8), mask(8, seed=1), mask(8, seed=2)))
    cases["masked_fill/special"] = Case(_masked_fill(-numpy.inf), (SPECIAL, mask(8)))
    return cases


def _masked_fill(number: float) -> Callable[..., Any]:
    return lambda torch, x, chosen: torch.masked_fill(x, chosen, number)


def division() -> Cases:
    """Rounding modes and remainders: signs, the least integers, NaN, infinities, division of floats by zero."""
    cases = {}
    numerator, divisor = SPECIAL.copy(), OTHER.copy()
    divisor[:2] = [[3, -3, 0.1, -0.1, 0, -0.0, 7, numpy.inf]] * 2
    numerator[:2] = [[7, -7, 1, 1, 5, 5, -7, 1], [-7, 7, -1, 0.3, -5, 0, 0, -1]]
    operators: dict[str, Callable[..., Any]] = {
        "remainder": method("remainder"),
        "fmod": method("fmod"),
        "div_trunc": method("div", rounding_mode="trunc"),
        "div_floor": method("div", rounding_mode="floor"),
    }
    for name, function in operators.items():
        cases[f"{name}/special"] = Case(function, (numerator, divisor))
        cases[f"{name}/broadcast"] = Case(function, (floats(3, 1, 4, scale=9), floats(5, 1, seed=1)))
        for dtype in ("uint8", "int8", "int32", "int64"):
            # The oracle takes integers through float64, which holds those below 2^53.
            shift = 12 if dtype == "int64" else 0
            pair = (integers(dtype, 60) >> shift, nonzero(integers(dtype, 60, seed=1) >> shift))
            if dtype != "uint8":
                pair[1][:20] = nonzero(pair[1][:20] % 7 - 3)
                pair[1][20:30] = -1
                pair[0][20] = numpy.iinfo(dtype).min if dtype == "int8" else 5
            cases[f"{name}/{dtype}"] = Case(function, pair)
        cases[f"{name}/int8_int32"] = Case(function, (integers("int8", 9), nonzero(integers("int32", 9))))
    for name, mode in itertools.product(("div_trunc", "div_floor"), (2.5, -3)):
        rounded = name.removeprefix("div_")
        cases[f"{name}/number_{mode}"] = Case(
            method("div", mode, rounding_mode=rounded), (floats(30, scale=20),)
        )
        cases[f"{name}/int32_number_{mode}"] = Case(
            method("div", mode, rounding_mode=rounded), (integers("int32", 30) % 100,)
        )
    for name, number in itertools.product(("remainder", "fmod"), (2.5, -3)):
        cases[f"{name}/number_{number}"] = Case(method(name, number), (floats(30, scale=20),))
        cases[f"{name}/int32_number_{number}"] = Case(method(name, number), (integers("int32", 30) % 100,))
    cases["floor_divide/special"] = Case(method("floor_divide"), (numerator, divisor))
    cases["floor_divide/int32"] = Case(
        method("floor_divide"), (integers("int32", 30), nonzero(integers("int32", 30, seed=1) % 9 - 4))
    )
    return cases


def powers() -> Cases:
    """pow of tensors and numbers on either side; atan2."""
    small = numpy.array([-3, -2, -1, 0, 1, 2, 3, 5], numpy.int32)
    return {
        "pow/tensors": Case(method("pow"), (abs(floats(40)), floats(40, seed=1, scale=3))),
        "pow/special": Case(method("pow"), (SPECIAL, OTHER)),
        "pow/square": Case(method("pow", 2), (SPECIAL,)),
        "pow/root": Case(method("pow", 0.5), (SPECIAL,)),
        "pow/cube": Case(method("pow", 3.0), (floats(30),)),
        "pow/base": Case(lambda torch, x: torch.pow(2.5, x), (floats(30),)),
        "pow/int32": Case(method("pow"), (small.reshape(8, 1), numpy.arange(6, dtype=numpy.int32))),
        "pow/int64": Case(method("pow", 3), (small.astype(numpy.int64),)),
        "pow/int32_real": Case(method("pow", 1.5), (abs(small),)),
        "atan2/special": Case(method("atan2"), (SPECIAL, OTHER)),
        "atan2/int8": Case(method("atan2"), (integers("int8", 9), integers("int8", 9, seed=1))),
    }


def gates() -> Cases:
    """gelu, elu, leaky_relu, glu and logit."""
    x = numpy.concatenate(
        [
            DOMAIN,
            -DOMAIN,
            floats(20, scale=4),
            numpy.array([numpy.nan, numpy.inf, -numpy.inf, -0.0], numpy.float32),
        ]
    )
    unit = numpy.array([0.0, 1e-3, 0.25, 0.5, 0.75, 1.0, 1.5, -0.5], numpy.float32)
    return {
        "gelu/erf": Case(functional("gelu"), (x,)),
        "gelu/tanh": Case(functional("gelu", approximate="tanh"), (x,)),
        "elu/plain": Case(functional("elu"), (x,)),
        "elu/alpha": Case(functional("elu", 0.7), (x,)),
        "elu/selu": Case(functional("selu"), (x,)),
        "leaky_relu/plain": Case(functional("leaky_relu"), (x,)),
        "leaky_relu/slope": Case(functional("leaky_relu", -0.3), (x,)),
        "glu/last": Case(functional("glu"), (floats(3, 8),)),
        "glu/first": Case(functional("glu", 0), (floats(4, 3),)),
        "logit/plain": Case(method("logit"), (unit,)),
        "logit/margin": Case(method("logit", 0.1), (unit,)),
        "silu/composed": Case(functional("silu"), (x,)),
        "hardswish/composed": Case(functional("hardswish"), (x,)),
        "softplus/composed": Case(functional("softplus"), (x,)),
        "mish/composed": Case(functional("mish"), (DOMAIN,)),
    }


def rsub_cases() -> Cases:
    """aten::rsub, a number less a tensor, with a factor."""
    return {
        "rsub/number": Case(lambda torch, x: torch.ops.aten.rsub.Scalar(x, 2.5), (SPECIAL,)),
        "rsub/factor": Case(lambda torch, x: torch.ops.aten.rsub.Scalar(x, 2, 3), (integers("int32", 20),)),
        "rsub/int8": Case(lambda torch, x: torch.ops.aten.rsub.Scalar(x, 100), (integers("int8", 20),)),
    }


def elementwise_cases() -> Cases:
    """All of the above."""
    return {
        **real_functions(), **rounding(), **comparisons(), **bits(), **choices(), **division(), **powers(), **gates(),
        **rsub_cases(),
    }  # fmt: skip
