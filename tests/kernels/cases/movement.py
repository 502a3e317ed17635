"""Operators that move elements: other orders, parts, joints, padding, indices, and tensors of one number."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy

from tests.kernels.cases.elementwise import Cases, mask
from tests.kernels.interpreter.cases import floats, integers
from tests.kernels.interpreter.models import Case, functional, method

SIZES = ("int8", "int16", "int32", "int64")  # elements of 1, 2, 4 and 8 bytes

Function = Callable[..., Any]


def orders() -> Cases:
    """Transposes, flips, repeats, windows, diagonals, pixels."""
    functions: dict[str, tuple[Function, tuple[int, ...]]] = {
        "transpose/ends": (lambda torch, x: torch.ops.aten.transpose_copy.int(x, 0, -1), (3, 4, 5)),
        "t/matrix": (lambda torch, x: torch.ops.aten.t_copy(x), (3, 4)),
        "t/vector": (lambda torch, x: torch.ops.aten.t_copy(x), (3,)),
        "flip/one": (method("flip", (1,)), (3, 4, 2)),
        "flip/several": (method("flip", (0, -1)), (3, 4, 2)),
        "flip/empty": (method("flip", (0,)), (0, 4)),
        "repeat/more_dimensions": (lambda torch, x: x.repeat(2, 1, 3), (2, 3)),
        "repeat/none": (lambda torch, x: x.repeat(0, 2), (2, 3)),
        "as_strided/windows": (
            lambda torch, x: torch.ops.aten.as_strided_copy(x, [3, 2, 2], [2, 3, 1], 1),
            (4, 4),
        ),
        "diagonal/main": (lambda torch, x: torch.ops.aten.diagonal_copy(x), (3, 5)),
        "diagonal/above": (lambda torch, x: torch.ops.aten.diagonal_copy(x, 2, 0, 2), (3, 2, 5)),
        "diagonal/below": (lambda torch, x: torch.ops.aten.diagonal_copy(x, -1, 1, 0), (3, 5)),
        "unfold/overlapping": (lambda torch, x: torch.ops.aten.unfold_copy(x, 1, 3, 2), (2, 9)),
        "pixel_shuffle/2": (functional("pixel_shuffle", 2), (2, 8, 3, 2)),
        "pixel_shuffle/rank_3": (functional("pixel_shuffle", 3), (9, 3, 2)),
        "pixel_unshuffle/2": (functional("pixel_unshuffle", 2), (1, 2, 6, 4)),
        "squeeze/dim": (lambda torch, x: torch.ops.aten.squeeze_copy.dim(x, 1), (3, 1, 4)),
        "squeeze/kept": (lambda torch, x: torch.ops.aten.squeeze_copy.dim(x, -1), (3, 1, 4)),
        "alias/copy": (lambda torch, x: torch.ops.aten.alias_copy(x), (3, 4)),
        "detach/copy": (lambda torch, x: torch.ops.aten.detach_copy(x), (3, 4)),
        "lift/copy": (lambda torch, x: torch.ops.aten.lift_fresh_copy(x), (3, 4)),
    }
    return {
        f"{name}_{dtype}": Case(function, (integers(dtype, *shape),))
        for (name, (function, shape)), dtype in itertools.product(functions.items(), ("int8", "int32"))
    }


def parts() -> Cases:
    """Narrowed, split, unbound, stacked and scattered parts."""
    cases = {}
    for dtype in SIZES:
        x = integers(dtype, 4, 6, 3)
        cases[f"split/{dtype}"] = Case(lambda torch, a: torch.split(a, 4, 1), (x,), outputs=2)
        cases[f"unbind/{dtype}"] = Case(lambda torch, a: torch.unbind(a, -1), (x,), outputs=3)
        cases[f"stack/{dtype}"] = Case(lambda torch, a, b: torch.stack([a, b, a], 1), (x, x[::-1].copy()))
    x, source = floats(4, 6, 3), floats(4, 2, 3, seed=1)
    cases["split_with_sizes/three"] = Case(lambda torch, a: torch.split(a, [1, 2, 3], 1), (x,), outputs=3)
    cases["narrow/middle"] = Case(lambda torch, a: torch.ops.aten.narrow_copy(a, 1, 2, 3), (x,))
    cases["narrow/none"] = Case(lambda torch, a: torch.ops.aten.narrow_copy(a, 0, 4, 0), (x,))
    cases["stack/last"] = Case(
        lambda torch, a, b: torch.stack([a, b], -1), (floats(2, 3), floats(2, 3, seed=1))
    )
    cases["stack/no_dimensions"] = Case(lambda torch, a, b: torch.stack([a, b]), (floats(), floats(seed=1)))
    cases["slice_scatter/step"] = Case(lambda torch, a, b: torch.slice_scatter(a, b, 1, 1, 5, 2), (x, source))
    cases["slice_scatter/end"] = Case(lambda torch, a, b: torch.slice_scatter(a, b, 1, -2), (x, source))
    cases["select_scatter/last"] = Case(
        lambda torch, a, b: torch.select_scatter(a, b, 1, -1), (x, source[:, 0].copy())
    )
    cases["select_scatter/int8"] = Case(
        lambda torch, a, b: torch.select_scatter(a, b, 0, 1), (integers("int8", 3, 4), integers("int8", 4))
    )
    cases["cat/skipped"] = Case(lambda torch, a, b: torch.cat([a, b], 0), (floats(0), floats(3)))
    return cases


def padding() -> Cases:
    """Padding by a number, by reflection and by the edge; rolled and triangular tensors."""
    pad = functools.partial(functional, "pad")
    cases = {}
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        cases[f"pad/{dtype}"] = Case(pad((1, 2, 0, 1), value=7), (integers(dtype, 2, 3, 4),))
        cases[f"roll/{dtype}"] = Case(method("roll", (2, -1), (0, 1)), (integers(dtype, 5, 4),))
        cases[f"tril/{dtype}"] = Case(method("tril"), (integers(dtype, 2, 4, 4),))
    cases["pad/float32"] = Case(pad((1, 1), value=-0.5), (floats(3, 4),))
    cases["pad/infinite"] = Case(pad((0, 2), value=-numpy.inf), (floats(3, 4),))
    cases["pad/bool"] = Case(pad((1, 1), value=True), (mask(3, 4),))
    cases["tril/above"] = Case(method("tril", 2), (floats(4, 6),))
    cases["tril/below"] = Case(method("tril", -1), (floats(4, 6),))
    cases["roll/around"] = Case(method("roll", (17,), (0,)), (floats(5, 2),))
    for mode in ("reflect", "replicate"):
        cases[f"pad_{mode}/1d"] = Case(pad((2, 1), mode=mode), (floats(2, 3, 5),))
        cases[f"pad_{mode}/2d"] = Case(pad((1, 2, 2, 0), mode=mode), (floats(2, 3, 4, 5),))
        cases[f"pad_{mode}/3d"] = Case(pad((1, 0, 0, 1, 1, 1), mode=mode), (floats(1, 2, 3, 4, 3),))
        cases[f"pad_{mode}/int8"] = Case(pad((2, 1), mode=mode), (integers("int8", 3, 5),))
    return cases


ROWS = numpy.array([2, 0, 1, 2])
COLUMNS = numpy.array([3, 1, 0, 2])
WHOLE = numpy.array([[0, 2, 1, 3], [3, 3, 0, 1]])


def indices() -> Cases:
    """index_select, embedding, gather, scatter, several indices at once, masks."""
    return {**_indices_of_every_size(), **_single_indices(), **_several_indices()}


def _indices_of_every_size() -> Cases:
    cases = {}
    rows, columns = ROWS, COLUMNS
    for dtype in SIZES:
        x = integers(dtype, 3, 4, 2)
        cases[f"index_select/{dtype}"] = Case(lambda torch, a, i: torch.index_select(a, 0, i), (x, rows))
        cases[f"index/{dtype}"] = Case(lambda torch, a, i: a[:, i], (x, columns))
        cases[f"index_put/{dtype}"] = Case(
            lambda torch, a, i, v: torch.index_put(a, (i,), v),
            (x, rows[:2], integers(dtype, 2, 4, 2, seed=1)),
        )
        near = rows.reshape(4, 1, 1)[:3] % 3
        cases[f"gather/{dtype}"] = Case(lambda torch, a, i: torch.gather(a, 0, i), (x, near))
        cases[f"scatter/{dtype}"] = Case(
            lambda torch, a, i, s: torch.scatter(a, 0, i, s), (x, near, integers(dtype, 3, 4, 2, seed=2))
        )
    return cases


def _single_indices() -> Cases:
    cases = {}
    rows, whole = ROWS, WHOLE
    x, table = floats(3, 4, 5), floats(7, 6)
    cases["index_select/int32"] = Case(
        lambda torch, a, i: torch.index_select(a, -1, i), (x, rows.astype(numpy.int32))
    )
    cases["index_select/none"] = Case(lambda torch, a, i: torch.index_select(a, 1, i), (x, rows[:0]))
    cases["embedding/plain"] = Case(lambda torch, w, i: torch.nn.functional.embedding(i, w), (table, whole))
    cases["embedding/int32"] = Case(
        lambda torch, w, i: torch.nn.functional.embedding(i, w), (table, whole.astype(numpy.int32))
    )
    cases["embedding/int8"] = Case(
        lambda torch, w, i: torch.nn.functional.embedding(i, w), (integers("int8", 5, 3), whole)
    )
    cases["gather/last"] = Case(lambda torch, a, i: torch.gather(a, -1, i), (x[0], whole))
    cases["scatter/value"] = Case(lambda torch, a, i: torch.scatter(a, 1, i, 2.5), (x[0], whole))
    cases["scatter/int_value"] = Case(
        lambda torch, a, i: torch.scatter(a, 1, i, -7), (integers("int16", 4, 5), whole)
    )
    cases["scatter_add/float32"] = Case(
        lambda torch, a, i, s: torch.scatter_add(a, 1, i, s), (x[0], whole, floats(2, 4, seed=1))
    )
    cases["scatter_add/int8"] = Case(
        lambda torch, a, i, s: torch.scatter_add(a, 1, i, s),
        (integers("int8", 4, 5), whole, integers("int8", 2, 4, seed=1)),
    )
    return cases


def _several_indices() -> Cases:
    cases = {}
    rows, columns, whole, x = ROWS, COLUMNS, WHOLE, floats(3, 4, 5)
    cases["index/two"] = Case(lambda torch, a, i, j: a[i, j], (x, rows, columns))
    cases["index/negative"] = Case(lambda torch, a, i: a[i], (x, rows - 3))
    cases["index/apart"] = Case(lambda torch, a, i, j: a[i, :, j], (x, rows, columns))
    cases["index/broadcast"] = Case(lambda torch, a, i, j: a[i, j], (x, rows.reshape(4, 1), columns[:3]))
    cases["index/matrix"] = Case(lambda torch, a, i: a[:, :, i], (x, whole))
    cases["index_put/two"] = Case(
        lambda torch, a, i, j, v: torch.index_put(a, (i, j), v), (x, rows[:3], columns[:3], floats(5))
    )
    cases["index_put/accumulate"] = Case(
        lambda torch, a, i, v: torch.index_put(a, (i,), v, accumulate=True),
        (x, rows, floats(4, 4, 5, seed=3)),
    )
    cases["index_put/accumulate_int8"] = Case(
        lambda torch, a, i, v: torch.index_put(a, (i,), v, accumulate=True),
        (integers("int8", 3, 4), rows, integers("int8", 4)),
    )
    cases["index_put/mask"] = Case(
        lambda torch, a, m, v: torch.index_put(a, (m,), v), (x, mask(3, 4), floats())
    )
    return cases


def numbers() -> Cases:
    """Tensors of one number, ranges, and conversions without a dim_order."""
    cases = {}
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float32", "float64", "bool"):
        cases[f"full/{dtype}"] = Case(_of_type("full", dtype, (2, 3), 3), (floats(1),), outputs=2)
        cases[f"full_like/{dtype}"] = Case(_like(dtype), (floats(2, 2),))
    for name in ("zeros", "ones"):
        cases[f"{name}/float32"] = Case(_of_type(name, "float32", (2, 3)), (floats(1),), outputs=2)
        cases[f"{name}/int64"] = Case(_of_type(name, "int64", (4,)), (floats(1),), outputs=2)
    ranges: tuple[tuple[Any, ...], ...] = ((5,), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.1), (1.5, 4.0), (3, 3))
    for (n, arguments), dtype in itertools.product(enumerate(ranges), ("float32", "int64")):
        if dtype == "float32" or all(isinstance(a, int) for a in arguments):
            cases[f"arange/{n}{dtype}"] = Case(_of_type("arange", dtype, *arguments), (floats(1),), outputs=2)
    cases["scalar_tensor/float32"] = Case(_of_type("scalar_tensor", "float32", 2.5), (floats(1),), outputs=2)
    cases["scalar_tensor/int32"] = Case(_of_type("scalar_tensor", "int32", -3), (floats(1),), outputs=2)
    cases["fill/number"] = Case(lambda torch, x: torch.ops.aten.fill.Scalar(x, 1.5), (floats(2, 3),))
    cases["fill/tensor"] = Case(
        lambda torch, x, y: torch.ops.aten.fill.Tensor(x, y), (integers("int8", 2, 3), floats())
    )
    return cases


def _of_type(name: str, dtype: str, *arguments: Any) -> Function:
    # The operator has no input; the case's own keeps the program's outputs in order.
    return lambda torch, x: (getattr(torch, name)(*arguments, dtype=getattr(torch, dtype)), x + 1)


def _like(dtype: str) -> Function:
    return lambda torch, x: torch.full_like(x, 1.75, dtype=getattr(torch, dtype))


def movement_cases() -> Cases:
    """All of the above."""
    return {**orders(), **parts(), **padding(), **indices(), **numbers()}
