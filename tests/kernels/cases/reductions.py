"""Operators that go through dimensions: sums, extremes and where they lie, variances, running sums."""

import itertools

import numpy

from tests.kernels.cases.elementwise import Cases, mask
from tests.kernels.interpreter.cases import floats, integers, special_floats
from tests.kernels.interpreter.models import Array, Case, method

DIMENSIONS = ((0,), (-1,), (1, 2), (-3, -1), (0, 1, 2))


def distinct(*shape: int, seed: int = 0) -> Array:
    """Floats of which no two are equal: their order has no ties."""
    count = int(numpy.prod(shape))
    return (numpy.random.default_rng(seed).permutation(count).reshape(shape) - count / 3).astype(
        numpy.float32
    )


def folds() -> Cases:
    """sum, amax, amin, any and all over one dimension, several or all."""
    cases = {}
    with_nan = special_floats(96).reshape(4, 4, 6)
    for (n, dims), keep in itertools.product(enumerate(DIMENSIONS), (False, True)):
        options = {"dim": dims, "keepdim": keep}
        cases[f"sum/{n}{keep}"] = Case(method("sum", **options), (floats(3, 5, 7),))
        cases[f"sum/int_{n}{keep}"] = Case(method("sum", **options), (integers("int32", 3, 5, 7),))
        cases[f"amax/{n}{keep}"] = Case(method("amax", **options), (with_nan,))
        cases[f"amin/{n}{keep}"] = Case(method("amin", **options), (with_nan,))
        cases[f"any/{n}{keep}"] = Case(
            method("any", **options), (mask(3, 5, 7) & mask(3, 5, 7, seed=1) & mask(3, 5, 7, seed=2),)
        )
    for dtype in ("uint8", "int8", "int64"):
        # The oracle sums int64 in float32, which holds what is below 2^24.
        cases[f"sum/{dtype}"] = Case(
            method("sum", dim=(1,)), (integers(dtype, 4, 9) >> (44 if dtype == "int64" else 0),)
        )
        cases[f"amax/{dtype}"] = Case(method("amax", dim=(0, 1)), (integers(dtype, 4, 9),))
        cases[f"amin/{dtype}"] = Case(method("amin", dim=(-1,)), (integers(dtype, 4, 9),))
    cases["sum/bool"] = Case(method("sum", dim=(1,)), (mask(4, 9),))
    cases["sum/all"] = Case(method("sum"), (floats(4, 9),))
    cases["sum/empty"] = Case(method("sum", dim=(0,)), (floats(0, 4),))
    cases["sum/to_float64"] = Case(lambda torch, x: torch.sum(x, (1,), dtype=torch.float64), (floats(4, 9),))
    cases["sum/to_float32"] = Case(
        lambda torch, x: torch.sum(x, (1,), dtype=torch.float32), (integers("int16", 4, 9),)
    )
    cases["sum/channels_last"] = Case(method("sum", dim=(1,)), (floats(1, 3, 4, 5),), channels_last=True)
    cases["any/all_of_it"] = Case(method("any"), (mask(3, 3),))
    cases["any/float32"] = Case(
        method("any", dim=1), (numpy.array([[0, -0.0], [0, numpy.nan]], numpy.float32),)
    )
    cases["any/int32"] = Case(method("any", dim=(0, 1)), (integers("int32", 3, 3),))
    for name in ("max", "min"):
        cases[f"{name}/all"] = Case(method(name), (floats(4, 9),))
        cases[f"{name}/all_int32"] = Case(method(name), (integers("int32", 4, 9),))
    return cases


def products() -> Cases:
    """prod over all elements or one dimension."""
    return {
        "prod/all": Case(method("prod"), (floats(3, 4),)),
        "prod/int32": Case(method("prod"), (integers("int32", 7) % 5 + 1,)),
        "prod/dim": Case(method("prod", dim=1), (floats(3, 4, 5),)),
        "prod/keep": Case(method("prod", dim=-1, keepdim=True), (floats(3, 4, 5),)),
        "prod/int8_dim": Case(method("prod", dim=0), (integers("int8", 3, 4),)),
        "prod/empty": Case(method("prod", dim=0), (floats(0, 4),)),
    }


def positions() -> Cases:
    """argmax, argmin, max and min along a dimension, topk: NaN, ties, integers."""
    cases = {}
    with_nan = special_floats(90).reshape(9, 10)
    tied = integers("int8", 6, 8) % 3
    for name, (n, dim), keep in itertools.product(
        ("argmax", "argmin"), enumerate((None, 0, -1)), (False, True)
    ):
        if dim is not None or not keep:
            cases[f"{name}/{n}{keep}"] = Case(method(name, dim=dim, keepdim=keep), (with_nan,))
            cases[f"{name}/ties_{n}{keep}"] = Case(method(name, dim=dim, keepdim=keep), (tied,))
    for name, dim, keep in itertools.product(("max", "min"), (0, -1), (False, True)):
        cases[f"{name}/dim{dim}{keep}"] = Case(method(name, dim=dim, keepdim=keep), (with_nan,), outputs=2)
        cases[f"{name}/ties{dim}{keep}"] = Case(method(name, dim=dim, keepdim=keep), (tied,), outputs=2)
    cases["max/int64"] = Case(method("max", dim=1), (integers("int64", 3, 5),), outputs=2)
    for largest, dim in itertools.product((True, False), (0, 1)):
        cases[f"topk/{largest}{dim}"] = Case(
            method("topk", k=3, dim=dim, largest=largest), (distinct(5, 6),), outputs=2
        )
    cases["topk/int32"] = Case(method("topk", k=4), (distinct(9).astype(numpy.int32),), outputs=2)
    return cases


def spreads() -> Cases:
    """var, var_mean and std."""
    cases = {}
    for (n, dims), unbiased in itertools.product(enumerate(((1,), (0, 2), (-1,))), (False, True)):
        cases[f"var/{n}{unbiased}"] = Case(
            method("var", dim=dims, unbiased=unbiased), (floats(3, 5, 7, scale=4),)
        )
        cases[f"var/kept_{n}{unbiased}"] = Case(
            method("var", dim=dims, correction=int(unbiased), keepdim=True), (floats(3, 5, 7),)
        )
    cases["var/correction"] = Case(method("var", dim=(1,), correction=0.5), (floats(3, 5),))
    cases["var/one_element"] = Case(method("var", dim=(1,)), (floats(3, 1),))
    cases["std/composed"] = Case(method("std", dim=(1,)), (floats(3, 5),))
    cases["var/both"] = Case(
        lambda torch, x: torch.ops.aten.var_mean.correction(x, [1], correction=1),
        (floats(4, 9, scale=3),),
        outputs=2,
    )
    return cases


def running() -> Cases:
    """cumsum along every dimension, of floats and integers."""
    cases = {f"cumsum/{dim}": Case(method("cumsum", dim=dim), (floats(3, 4, 5),)) for dim in (0, 1, -1)}
    for dtype in ("int8", "int32", "int64"):
        cases[f"cumsum/{dtype}"] = Case(method("cumsum", dim=-1), (integers(dtype, 4, 9),))
    cases["cumsum/bool"] = Case(method("cumsum", dim=0), (mask(9),))
    cases["cumsum/empty"] = Case(method("cumsum", dim=0), (floats(0, 3),))
    return cases


def reduction_cases() -> Cases:
    """All of the above."""
    return {**folds(), **products(), **positions(), **spreads(), **running()}
