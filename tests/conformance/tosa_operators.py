"""Hand-built TOSA graphs of operators whose results hang on ties that no scaling makes: equal maxima, shifts, halves.

Together with those of tosa_graphs.py they are the group NUMERIC.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.models.case import U85
from tests.conformance.tosa_graph import Graph
from tests.conformance.tosa_graphs import SCALING, SHAPE, Tie, built

NUMERIC = "numeric"  # the name of this group beside those of models/
_INT32 = (-(1 << 31), (1 << 31) - 1)
_EVERY_SHIFT = (0, 1, 2, 3, 5, 8, 13, 21, 30, 31, 4)  # one per channel


def binary(op: str, dtype: str = "INT32", result: str = "INT32", **attributes: Any) -> Callable[[], bytes]:
    """One elementwise operator on two inputs."""
    return built(
        lambda graph: graph.add(
            op, [graph.input(SHAPE, dtype), graph.input(SHAPE, dtype)], SHAPE, result, **attributes
        )
    )


def multiplied(shift: int) -> Callable[[], bytes]:
    """An int32 product shifted right by TOSA's MUL itself, rounding half up."""

    def build(graph: Graph) -> Any:
        operands = [
            graph.input(SHAPE, "INT32"),
            graph.input(SHAPE, "INT32"),
            graph.constant([1], "INT8", [shift]),
        ]
        return graph.add("MUL", operands, SHAPE, "INT32")

    return built(build)


def unary(op: str, dtype: str = "INT32") -> Callable[[], bytes]:
    """One elementwise operator on one input."""
    return built(lambda graph: graph.add(op, [graph.input(SHAPE, dtype)], SHAPE, dtype))


def extreme(op: str, dtype: str) -> Callable[[], bytes]:
    """MAXIMUM or MINIMUM."""
    return built(
        lambda graph: graph.add(
            op,
            [graph.input(SHAPE, dtype), graph.input(SHAPE, dtype)],
            SHAPE,
            dtype,
            nan_mode=graph.nan_mode(),
        )
    )


def shifted(op: str, **attributes: Any) -> Callable[[], bytes]:
    """A shift of an int32 input by constants of 0 to 31."""

    def build(graph: Graph) -> Any:
        amounts = graph.constant((1, 1, 1, len(_EVERY_SHIFT)), "INT32", _EVERY_SHIFT)
        return graph.add(op, [graph.input(SHAPE, "INT32"), amounts], SHAPE, "INT32", **attributes)

    return built(build)


def divided(graph: Graph) -> Any:
    """INTDIV by constants of both signs: it truncates towards zero."""
    divisors = graph.constant((1, 1, 1, 11), "INT32", (1, -1, 2, -2, 3, -7, 10, 1 << 20, -(1 << 30), 5, -64))
    return graph.add("INTDIV", [graph.input(SHAPE, "INT32"), divisors], SHAPE, "INT32")


def arg_max(axis: int, dtype: str = "INT8") -> Callable[[], bytes]:
    """The index of the maximum; int8 inputs are scaled to few values first, so that maxima meet their equals."""

    def build(graph: Graph) -> Any:
        few = graph.rescale(graph.input(SHAPE, dtype), dtype, [(1 << 30, 36 if dtype == "INT8" else 44)])
        shape = [size for index, size in enumerate(SHAPE) if index != axis]
        return graph.add("ARGMAX", [few], shape, "INT32", axis=axis, nan_mode=graph.nan_mode())

    return built(build)


def resized(
    mode: str, scale: Sequence[int], offset: Sequence[int], ofm: tuple[int, int]
) -> Callable[[], bytes]:
    """RESIZE; a bilinear one is scaled back by a power of two.

    `scale` is y_n, y_d, x_n, x_d; `offset` is y, x. Borders are those at which `ofm` needs no further pixel.
    """
    height, width, channels = 5, 6, 7

    def border(ifm: int, size: int, numerator: int, denominator: int, start: int) -> int:
        return (size - 1) * denominator - (ifm - 1) * numerator + start

    def build(graph: Graph) -> Any:
        borders = [
            border(height, ofm[0], *scale[:2], offset[0]),
            border(width, ofm[1], *scale[2:], offset[1]),
        ]
        sizes = [graph.constant([len(row)], "SHAPE", row) for row in (list(scale), list(offset), borders)]
        shape = (1, *ofm, channels)
        value = [graph.input((1, height, width, channels), "INT8"), *sizes]
        kind = getattr(graph.ts.ResizeMode, mode)
        if mode == "NEAREST":
            return graph.add("RESIZE", value, shape, "INT8", mode=kind)
        sums = graph.add("RESIZE", value, shape, "INT32", mode=kind)
        bits = (scale[0] * scale[2]).bit_length() - 1
        return graph.rescale(sums, "INT8", [(1 << 30, 30 + bits)])

    return built(build)


def matrix_product(rounding: str) -> Callable[[], bytes]:
    """MATMUL of two inputs, scaled back by a power of two."""

    def build(graph: Graph) -> Any:
        zeros = [graph.constant([1], "INT8", [zero]) for zero in (3, -4)]
        operands = [graph.input((2, 9, 20), "INT8"), graph.input((2, 20, 13), "INT8"), *zeros]
        return graph.rescale(
            graph.add("MATMUL", operands, (2, 9, 13), "INT32"), "INT8", [(1 << 30, 40)], (0, 2), rounding
        )

    return built(build)


def summed(axis: int) -> Callable[[], bytes]:
    """REDUCE_SUM of int8 values, scaled back by a power of two."""

    def build(graph: Graph) -> Any:
        wide = graph.rescale(graph.input(SHAPE, "INT8"), "INT32", [(1 << 30, 30)], (-6, 0))
        shape = [1 if index == axis else size for index, size in enumerate(SHAPE)]
        return graph.rescale(
            graph.add("REDUCE_SUM", [wide], shape, "INT32", axis=axis), "INT8", [(1 << 30, 33)]
        )

    return built(build)


def table(graph: Graph) -> Any:
    """An int16 TABLE, whose results are 7 bits finer than int16, scaled back by 2^-7: ties of the interpolation."""
    values = [((index * index) % 4099) * 8 - 16000 + index for index in range(513)]
    fine = graph.add(
        "TABLE", [graph.input(SHAPE, "INT16"), graph.constant([513], "INT16", values)], SHAPE, "INT32"
    )
    return graph.rescale(fine, "INT16", [(1 << 30, 37)])


def selected(graph: Graph) -> Any:
    """SELECT by an equality that is often met."""
    left, right = graph.input(SHAPE, "INT32"), graph.input(SHAPE, "INT32")
    equal = graph.add("EQUAL", [left, right], SHAPE, "BOOL")
    return graph.add("SELECT", [equal, left, graph.add("SUB", [right, left], SHAPE, "INT32")], SHAPE, "INT32")


OPERATORS: Mapping[str, Tie] = {
    "multiply": Tie(multiplied(0)),
    **{f"multiply_shift_{shift}": Tie(multiplied(shift)) for shift in (1, 5)},
    "multiply_shift_31": Tie(multiplied(31), ranges=(-(1 << 30), 1 << 30)),
    "add_int32": Tie(binary("ADD"), ranges=(-(1 << 30), (1 << 30) - 1)),
    "subtract_int32": Tie(binary("SUB"), ranges=(-(1 << 30), (1 << 30) - 1)),
    "shift_right": Tie(shifted("ARITHMETIC_RIGHT_SHIFT", round=True), ranges=_INT32),
    "shift_right_floor": Tie(shifted("ARITHMETIC_RIGHT_SHIFT", round=False), U85, _INT32),
    "shift_right_logical": Tie(shifted("LOGICAL_RIGHT_SHIFT"), U85, _INT32),
    "shift_left": Tie(shifted("LOGICAL_LEFT_SHIFT"), ranges=_INT32),
    "leading_zeros": Tie(unary("CLZ"), ranges=_INT32),
    "leading_zeros_small": Tie(unary("CLZ"), ranges=(-2, 300)),
    "absolute": Tie(unary("ABS"), ranges=(-(1 << 31) + 1, (1 << 31) - 1)),
    "maximum_int32": Tie(extreme("MAXIMUM", "INT32"), ranges=_INT32),
    "minimum_int32": Tie(extreme("MINIMUM", "INT32"), ranges=_INT32),
    "divide": Tie(built(divided), U85, ranges=(-(1 << 31) + 1, (1 << 31) - 1)),
    **{
        f"compare_{op}".lower(): Tie(binary(op, result="BOOL"), U85, (-3, 3))
        for op in ("GREATER", "GREATER_EQUAL", "EQUAL")
    },
    **{f"bitwise_{op}".lower(): Tie(binary(f"BITWISE_{op}"), U85, _INT32) for op in ("AND", "OR", "XOR")},
    "bitwise_not": Tie(unary("BITWISE_NOT"), U85, _INT32),
    "select": Tie(built(selected), U85, (-4, 4)),
    **{f"arg_max_axis_{axis}": Tie(arg_max(axis), U85) for axis in (1, 2, 3)},
    "arg_max_int16": Tie(arg_max(3, "INT16"), U85),
    "bilinear_x2_halves": Tie(resized("BILINEAR", (4, 2, 4, 2), (0, 0), (9, 11)), U85),
    "bilinear_x2_centres": Tie(resized("BILINEAR", (4, 2, 4, 2), (-1, -1), (10, 12)), U85),
    "bilinear_x4_halves": Tie(resized("BILINEAR", (8, 2, 8, 2), (0, 0), (17, 21)), U85),
    "nearest_halves": Tie(resized("NEAREST", (4, 2, 4, 2), (0, 0), (9, 11)), U85),
    "nearest_thirds": Tie(resized("NEAREST", (6, 2, 6, 2), (-2, -2), (15, 18)), U85),
    "matrix_product_ties": Tie(matrix_product("SINGLE_ROUND"), U85),
    "matrix_product_double_round": Tie(matrix_product("DOUBLE_ROUND"), U85),
    **{f"sum_ties_axis_{axis}": Tie(summed(axis)) for axis in (1, 2, 3)},
    "table_int16_ties": Tie(built(table)),
}

GRAPHS: Mapping[str, Tie] = {**SCALING, **OPERATORS}
