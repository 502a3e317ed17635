"""Layers: normalisation, transposed convolution, pooling, resampling, matrix products, quantization."""

from collections.abc import Callable
from typing import Any

import numpy

from tests.kernels.cases.elementwise import Cases
from tests.kernels.interpreter.cases import floats, integers, special_floats
from tests.kernels.interpreter.models import Case, functional, method

Function = Callable[..., Any]


def normalisation() -> Cases:
    """Layer, group and batch normalisation, with parameters and without."""
    x, image = floats(3, 4, 6, scale=3), floats(2, 6, 4, 3, scale=2)
    batch = functional("batch_norm")
    group: Callable[[int], Function] = lambda n: (  # noqa: E731
        lambda torch, a, *more: torch.nn.functional.group_norm(a, n, *more)
    )
    moments = (floats(6, seed=1), abs(floats(6, seed=2)) + 0.1)
    parameters = (floats(6, seed=3), floats(6, seed=4))
    return {
        "layer_norm/last": Case(functional("layer_norm", (6,)), (x,)),
        "layer_norm/two": Case(lambda torch, a: torch.nn.functional.layer_norm(a, (4, 6)), (x,)),
        "layer_norm/parameters": Case(
            lambda torch, a, w, b: torch.nn.functional.layer_norm(a, (6,), w, b, 1e-3), (x, *parameters)
        ),
        "group_norm/2": Case(group(2), (image,)),
        "group_norm/6": Case(group(6), (image,)),
        "group_norm/parameters": Case(group(3), (image, *parameters)),
        "group_norm/rank_2": Case(group(2), (floats(3, 6),)),
        "batch_norm/plain": Case(batch, (image, *moments)),
        "batch_norm/parameters": Case(batch, (image, *moments, *parameters)),
        "batch_norm/rank_2": Case(batch, (floats(5, 6), *moments)),
    }


def convolutions() -> Cases:
    """Transposed convolution in one and two dimensions."""
    rows: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((1, 3, 4, 5), (3, 2, 3, 3), {}),
        ((2, 4, 3, 4), (4, 3, 2, 3), {"stride": 2, "padding": 1}),
        ((1, 4, 4, 4), (4, 2, 3, 3), {"stride": (2, 1), "groups": 2, "output_padding": (1, 0)}),
        ((1, 2, 4, 4), (2, 3, 2, 2), {"dilation": 2, "stride": 3}),
        ((1, 3, 7), (3, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    )
    cases = {}
    for n, (shape, weights, options) in enumerate(rows):
        name = "conv_transpose2d" if len(shape) == 4 else "conv_transpose1d"
        outputs = weights[1] * options.get("groups", 1)
        inputs = (floats(*shape), floats(*weights, seed=1))
        cases[f"conv_transpose/{n}"] = Case(functional(name, **options), inputs)
        cases[f"conv_transpose/{n}_bias"] = Case(
            functional(name, **options), (*inputs, floats(outputs, seed=2))
        )
    return cases


def resampling() -> Cases:
    """Adaptive pooling and upsampling by size and by factor."""
    image = floats(2, 3, 7, 5)
    cases = {
        f"adaptive_avg_pool2d/{n}": Case(functional("adaptive_avg_pool2d", size), (image,))
        for n, size in enumerate(((1, 1), (3, 2), (7, 5), (4, 9)))
    }
    cases["adaptive_avg_pool2d/rank_3"] = Case(functional("adaptive_avg_pool2d", (2, 3)), (image[0],))
    sizes: tuple[dict[str, Any], ...] = ({"size": (9, 11)}, {"scale_factor": 2}, {"scale_factor": (1.5, 0.7)})
    for n, options in enumerate(sizes):
        cases[f"upsample_nearest2d/{n}"] = Case(
            functional("interpolate", mode="nearest", **options), (image,)
        )
        for corners in (False, True):
            function = functional("interpolate", mode="bilinear", align_corners=corners, **options)
            cases[f"upsample_bilinear2d/{n}{corners}"] = Case(function, (image,))
    cases["upsample_nearest2d/int8"] = Case(
        functional("interpolate", scale_factor=2, mode="nearest"), (integers("uint8", 1, 2, 3, 3),)
    )
    return cases


def products() -> Cases:
    """Batches of matrix products, and log_softmax."""
    nan, inf = numpy.nan, numpy.inf
    rows = numpy.array([[1, nan, 2], [inf, 1, 2], [-inf, 0, 100], [1, 2, 3]], numpy.float32)
    cases = {
        "bmm/plain": Case(method("bmm"), (floats(3, 4, 5), floats(3, 5, 2, seed=1))),
        "bmm/one": Case(method("bmm"), (floats(1, 1, 7), floats(1, 7, 1, seed=1))),
        "bmm/matmul": Case(method("matmul"), (floats(2, 3, 4, 5), floats(5, 6, seed=1))),
        "log_softmax/special": Case(functional("log_softmax", dim=-1), (rows,)),
    }
    for shape, dim in (((4, 10), -1), ((7, 3, 5), 0), ((2, 3, 4), 1), ((1, 300), 1)):
        cases[f"log_softmax/{len(shape)}{dim}"] = Case(
            functional("log_softmax", dim=dim), (floats(*shape, scale=4),)
        )
    return cases


def quantization() -> Cases:
    """quantize and dequantize per channel, per token and by parameters in tensors."""
    cases = {}
    x = special_floats(120, 0.05).reshape(5, 4, 6)
    for dtype, axis in (("int8", 0), ("int8", 1), ("uint8", 2), ("int16", -1), ("int32", 1)):
        count = x.shape[axis]
        scales = (abs(floats(count, seed=1)) + 0.01).astype(numpy.float64)
        zeros = numpy.arange(count) % 5
        cases[f"quantize_per_channel/{dtype}_{axis}"] = Case(
            _quantize("quantize_per_channel", axis, dtype), (x, scales, zeros)
        )
        cases[f"dequantize_per_channel/{dtype}_{axis}"] = Case(
            _quantize("dequantize_per_channel", axis, dtype), (integers(dtype, 5, 4, 6), scales, zeros)
        )
    for dtype in ("int8", "uint8"):
        scale, zero = numpy.array([0.05], numpy.float64), numpy.array([3])
        cases[f"quantize_per_tensor/tensor_{dtype}"] = Case(
            _quantize("quantize_per_tensor.tensor", None, dtype), (x, scale, zero)
        )
        cases[f"dequantize_per_tensor/tensor_{dtype}"] = Case(
            _quantize("dequantize_per_tensor.tensor", None, dtype), (integers(dtype, 5, 4, 6), scale, zero)
        )
    rows, offsets = (
        (abs(floats(20, 1, seed=2)) + 0.01).astype(numpy.float64),
        (numpy.arange(20) % 4).reshape(20, 1),
    )
    cases["quantize_per_token/int8"] = Case(_quantize("quantize_per_token", None, "int8"), (x, rows, offsets))
    cases["dequantize_per_token/int8"] = Case(
        _dequantize_per_token, (integers("int8", 5, 4, 6), rows, offsets)
    )
    return cases


def _quantize(name: str, axis: int | None, dtype: str) -> Function:
    limits = numpy.iinfo(dtype)
    name, _, overload = name.partition(".")

    def function(torch: Any, x: Any, scale: Any, zero: Any) -> Any:
        operator = getattr(getattr(torch.ops.quantized_decomposed, name), overload or "default")
        middle = () if axis is None else (axis,)
        x = x * 1.0 if x.is_floating_point() else x  # `run` takes no NaN for an input that is quantised
        return operator(x, scale, zero, *middle, int(limits.min), int(limits.max), getattr(torch, dtype))

    return function


def _dequantize_per_token(torch: Any, x: Any, scale: Any, zero: Any) -> Any:
    return torch.ops.quantized_decomposed.dequantize_per_token(
        x, scale, zero, -128, 127, torch.int8, torch.float32
    )


def layer_cases() -> Cases:
    """All of the above."""
    return {**normalisation(), **convolutions(), **resampling(), **products(), **quantization()}
