"""Operators whose shapes Vela 5.1.0 mixes up, and what keeps them apart: a CLAMP, LOGICAL_OR of truth values, or one
batch in place of several.

Without it a graph is compiled to something else or refused; with it, as `aot/repairs/mixed_up_shapes.py` and
`aot/repairs/lost_batches.py` have it, the bytes are the reference's.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ethosu_sdk.npu.errors import BusError, UnsupportedCommand
from tests.conformance.comparison import differing_elements
from tests.conformance.lower import compile_for
from tests.conformance.tosa_graph import Graph
from tests.conformance.tosa_graphs import built, clamped, layer, looked_up
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

Step = Callable[[Graph, Any], Any]
SHAPE = (1, 8, 6, 12)
U55, U65, U85 = "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"
_LIMITS = {"INT8": (-128, 127), "INT16": (-32768, 32767)}
_DTYPES = (*_LIMITS, "BOOL")
_UNIT = [(1 << 30, 30)]


@dataclass(frozen=True)
class Mixed:
    """Two operators on an input of SHAPE, one behind the other, the targets where they must be kept apart, and what
    does so (None: an operator that changes nothing)."""

    name: str
    first: Step
    second: Step
    targets: tuple[str, ...]
    dtype: str = "INT8"
    between: Step | None = None

    def make(self, apart: bool) -> bytes:
        """The TOSA graph, with or without an operator between the two."""

        def build(graph: Graph) -> Any:
            value = self.first(graph, graph.input(SHAPE, self.dtype))
            if apart and self.between is not None:
                value = self.between(graph, value)
            elif apart and self.dtype == "BOOL":
                value = graph.add("LOGICAL_OR", [value, value], value.shape, "BOOL")
            elif apart:
                value = clamped(graph, value, *_LIMITS[self.dtype], self.dtype)
            return self.second(graph, value)

        return built(build)()


def dtype_of(graph: Graph, value: Any) -> str:
    return next(name for name in _DTYPES if getattr(graph.ts.DType, name) == value.dtype)


def part(axis: int) -> Step:
    """Some elements along an axis."""

    def step(graph: Graph, value: Any) -> Any:
        start, size = [0] * len(SHAPE), list(SHAPE)
        start[axis], size[axis] = 1, SHAPE[axis] - 2
        limits = [graph.constant([len(SHAPE)], "SHAPE", row) for row in (start, size)]
        return graph.add("SLICE", [value, *limits], size, dtype_of(graph, value))

    return step


def extremum(name: str, axis: int) -> Step:
    """REDUCE_MAX or REDUCE_MIN."""

    def step(graph: Graph, value: Any) -> Any:
        shape = [1 if index == axis else size for index, size in enumerate(value.shape)]
        dtype = dtype_of(graph, value)
        return graph.add(name, [value], shape, dtype, axis=axis, nan_mode=graph.nan_mode())

    return step


def part_of_few(graph: Graph, value: Any) -> Any:
    """A part of truth values of which one in eight is true."""
    for _ in range(2):
        other = graph.input(value.shape, "BOOL")
        value = graph.add("LOGICAL_AND", [value, other], value.shape, "BOOL")
    return part(1)(graph, value)


def any_of(graph: Graph, value: Any) -> Any:
    """REDUCE_ANY along the channels."""
    return graph.add("REDUCE_ANY", [value], [*value.shape[:-1], 1], "BOOL", axis=len(SHAPE) - 1)


def total(graph: Graph, value: Any) -> Any:
    """REDUCE_SUM along the channels."""
    shape = [*value.shape[:-1], 1]
    sums = graph.add(
        "REDUCE_SUM", [graph.rescale(value, "INT32", _UNIT)], shape, "INT32", axis=len(shape) - 1
    )
    return graph.rescale(sums, dtype_of(graph, value), [(1 << 30, 33)])


def product(graph: Graph, value: Any) -> Any:
    """MATMUL with another input."""
    batch, rows, columns, depth = value.shape
    flat = as_shape(graph, value, (batch * rows, columns, depth))
    operands = [flat, graph.input((batch * rows, depth, 5), "INT8")]
    zeros = [graph.constant([1], "INT8", [zero]) for zero in (3, -4)]
    sums = graph.add("MATMUL", [*operands, *zeros], (batch * rows, columns, 5), "INT32")
    return graph.rescale(sums, "INT8", [(1 << 30, 38)], (0, 2))


def joined(graph: Graph, value: Any) -> Any:
    """CONCAT behind another input."""
    shape, dtype = [*value.shape], dtype_of(graph, value)
    shape[1] *= 2
    return graph.add("CONCAT", [graph.input(value.shape, dtype), value], shape, dtype, axis=1)


def padded(graph: Graph, value: Any) -> Any:
    """PAD along the width."""
    shape, dtype = [*value.shape], dtype_of(graph, value)
    shape[2] += 3
    sides = graph.constant([8], "SHAPE", [0, 0, 0, 0, 1, 2, 0, 0])
    return graph.add("PAD", [value, sides, graph.constant([1], dtype, [7])], shape, dtype)


def reshaped(graph: Graph, value: Any) -> Any:
    """RESHAPE without the axis that is left."""
    return as_shape(graph, value, [size for size in value.shape if size > 1])


def doubled(graph: Graph, value: Any) -> Any:
    """ADD to itself in int32."""
    wide = graph.rescale(value, "INT32", _UNIT)
    return graph.rescale(graph.add("ADD", [wide, wide], value.shape, "INT32"), "INT8", [(1 << 30, 32)])


def convolution(batches: int, rows: int) -> Step:
    """A CONV2D of one element on the input in another shape: `batches` of so many `rows`."""

    def step(graph: Graph, value: Any) -> Any:
        depth = SHAPE[-1]
        shape = (batches, rows, math.prod(SHAPE) // (batches * rows * depth), depth)
        return layer(graph, "CONV2D", as_shape(graph, value, shape), depth, 1)

    return step


def as_shape(graph: Graph, value: Any, shape: Sequence[int]) -> Any:
    """RESHAPE."""
    sizes = graph.constant([len(shape)], "SHAPE", shape)
    return graph.add("RESHAPE", [value, sizes], shape, dtype_of(graph, value))


def as_one_batch(graph: Graph, value: Any) -> Any:
    """The batches one below the other."""
    batches, rows, columns, depth = value.shape
    return as_shape(graph, value, (1, batches * rows, columns, depth))


def limited(graph: Graph, value: Any) -> Any:
    """CLAMP to -20 … 50."""
    return clamped(graph, value, -20, 50)


MIXED = (
    Mixed("part_maximum", part(3), extremum("REDUCE_MAX", 3), (U55, U65, U85)),
    Mixed("part_maximum_int16", part(1), extremum("REDUCE_MAX", 3), (U55, U85), "INT16"),
    Mixed("part_minimum", part(2), extremum("REDUCE_MIN", 3), (U85,)),
    Mixed("part_sum", part(1), total, (U55, U85)),
    Mixed("part_product", part(3), product, (U55, U65)),
    Mixed("part_any", part_of_few, any_of, (U85,), "BOOL"),
    Mixed("any_joined", any_of, joined, (U85,), "BOOL"),
    Mixed("maximum_joined", extremum("REDUCE_MAX", 3), joined, (U55, U65, U85)),
    Mixed("minimum_padded", extremum("REDUCE_MIN", 3), padded, (U85,)),
    Mixed("minimum_reshaped", extremum("REDUCE_MIN", 2), reshaped, (U55, U65)),
    Mixed("minimum_added", extremum("REDUCE_MIN", 1), doubled, (U55,)),
    Mixed("batches_clamped", convolution(2, 4), limited, (U55, U65, U85), between=as_one_batch),
    Mixed("rows_looked_up", convolution(48, 1), looked_up, (U55, U85), between=as_one_batch),
)
# What goes wrong: other values; Vela finds that an operation cannot be on the NPU; an access outside of the tensors;
# a window that no NPU has.
FAULTS = re.compile("other values|could not run on NPU| access to |pooling windows that lie in the padding")
CASES = [
    pytest.param(mixed, target, id=f"{mixed.name}-{target}") for mixed in MIXED for target in mixed.targets
]


def fault(graph: bytes, target: str, tosa: TosaModel) -> str:
    """What goes wrong with the graph; empty when nothing does."""
    try:
        payload, _ = compile_for(target, graph)
        differing, _ = differing_elements(payload, graph, tosa, (0, 0))
    except (RuntimeError, BusError, UnsupportedCommand) as error:
        return str(error)
    return "other values" if differing else ""


@pytest.mark.parametrize(("mixed", "target"), CASES)
def test_without_it_the_values_are_others(mixed: Mixed, target: str, tosa: TosaModel) -> None:
    assert FAULTS.search(fault(mixed.make(apart=False), target, tosa))


@pytest.mark.parametrize(("mixed", "target"), CASES)
def test_with_it_they_are_the_reference_s(mixed: Mixed, target: str, tosa: TosaModel) -> None:
    graph = mixed.make(apart=True)
    differing, elements = differing_elements(compile_for(target, graph)[0], graph, tosa, (0, 0))
    assert elements
    assert differing == 0
