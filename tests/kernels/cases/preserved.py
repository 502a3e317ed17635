"""Operators that lowering replaces unless it is told to keep them, and those of programs without dim_order."""

from typing import Any

import numpy

from tests.kernels.cases.elementwise import COMPARISONS, SPECIAL, Cases
from tests.kernels.interpreter.cases import floats, integers, nonzero
from tests.kernels.interpreter.models import Array, Case

# What lowering is told to keep in preserved_cases().
OPERATORS = ("aten.linear.default", "aten.floor_divide.default")
# Cases of the other groups by what their names start with, and the operator that is kept for them: the others run
# them decomposed.
KEPT = {
    "arange/0": "aten.arange.default",
    "fill/number": "aten.fill.Scalar",
    "fill/tensor": "aten.fill.Tensor",
    "glu/": "aten.glu.default",
    "logit/": "aten.logit.default",
    "masked_fill/": "aten.masked_fill.Scalar",
    "ones/": "aten.ones.default",
    "pad_reflect/1d": "aten.reflection_pad1d.default",
    "pad_reflect/2d": "aten.reflection_pad2d.default",
    "pad_reflect/3d": "aten.reflection_pad3d.default",
    "pad_reflect/int8": "aten.reflection_pad1d.default",
    "pad_replicate/1d": "aten.replication_pad1d.default",
    "pad_replicate/2d": "aten.replication_pad2d.default",
    "pad_replicate/3d": "aten.replication_pad3d.default",
    "pad_replicate/int8": "aten.replication_pad1d.default",
    "pixel_shuffle/": "aten.pixel_shuffle.default",
    "pixel_unshuffle/": "aten.pixel_unshuffle.default",
    "roll/": "aten.roll.default",
    "rsub/": "aten.rsub.Scalar",
    "select_scatter/": "aten.select_scatter.default",
    "split/": "aten.split.Tensor",
    "squeeze/": "aten.squeeze.dim",
    "stack/": "aten.stack.default",
    "t/": "aten.t.default",
    "transpose/": "aten.transpose.int",
    "tril/": "aten.tril.default",
    "unbind/": "aten.unbind.int",
    "var/": "aten.var.dim",
    "zeros/": "aten.zeros.default",
}


def _call(name: str, *options: Any) -> Any:
    operator, _, overload = name.partition(".")
    return lambda torch, *inputs: getattr(getattr(torch.ops.aten, operator), overload or "default")(
        *inputs, *options
    )


def numbers() -> Cases:
    """The overloads with a number on the right, which stay what they are without dim_order."""
    whole, x = integers("int32", 30) % 50, floats(30, scale=20)
    cases = {}
    for name in COMPARISONS:
        cases[f"{name}/real"] = Case(_call(f"{name}.Scalar", 0.5), (SPECIAL,))
        cases[f"{name}/integer"] = Case(_call(f"{name}.Scalar", 7), (whole,))
        cases[f"{name}/promoted"] = Case(_call(f"{name}.Scalar", 6.5), (whole,))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        cases[f"{name}/integer"] = Case(_call(f"{name}.Scalar", 0x2C), (whole,))
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        cases[f"{name}/integer"] = Case(_call(f"{name}.Tensor_Scalar", 3), (whole,))
    for name in ("remainder", "fmod"):
        cases[f"{name}/real"] = Case(_call(f"{name}.Scalar", -2.5), (x,))
        cases[f"{name}/integer"] = Case(_call(f"{name}.Scalar", -3), (whole,))
    for mode in ("trunc", "floor"):
        cases[f"div_{mode}/real"] = Case(_divide(2.5, mode), (x,))
        cases[f"div_{mode}/integer"] = Case(_divide(-3, mode), (whole,))
    cases["pow/real"] = Case(_call("pow.Tensor_Scalar", 3.0), (floats(20),))
    cases["pow/base"] = Case(lambda torch, a: torch.ops.aten.pow.Scalar(1.5, a), (floats(20),))
    return cases


def _divide(number: float, mode: str) -> Any:
    return lambda torch, a: torch.ops.aten.div.Scalar_mode(a, number, rounding_mode=mode)


def layers() -> Cases:
    """linear in one piece, with a bias and without; floor_divide; copies to a dtype."""
    functions: dict[str, tuple[Any, tuple[Array, ...]]] = {
        "linear/bias": (_call("linear"), (floats(3, 8), floats(5, 8, seed=1), floats(5, seed=2))),
        "linear/plain": (_call("linear"), (floats(2, 3, 8), floats(5, 8, seed=1))),
        "floor_divide/float32": (_call("floor_divide"), (floats(30, scale=9), floats(30, seed=1))),
        "floor_divide/int8": (
            _call("floor_divide"),
            (integers("int8", 30), nonzero(integers("int8", 30, seed=1))),
        ),
        "to_copy/int8": (lambda torch, a: a.to(torch.int8), (floats(20, scale=60),)),
        "to_copy/float32": (lambda torch, a: a.to(torch.float32), (integers("int32", 20),)),
        "empty_then/filled": (lambda torch, a: torch.zeros_like(a) + a, (numpy.ones((2, 3), numpy.float32),)),
    }
    return {name: Case(function, inputs) for name, (function, inputs) in functions.items()}


def kept_cases(cases: Cases) -> Cases:
    """Those of `cases` whose operator lowering is told to keep."""
    return {name: case for name, case in cases.items() if name.startswith(tuple(KEPT))}


def preserved_cases() -> Cases:
    """All of the above."""
    return {**numbers(), **layers()}
