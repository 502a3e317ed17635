"""Graphs that Vela 5.1.0 compiles to something else, and what keeps it from that.

Each part has the graphs as they go wrong, and as a rewrite of `compile/rewrite` changes them: then the bytes are the
reference's.
"""

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ethosu_sdk import npu
from ethosu_sdk.compile import vela_database
from ethosu_sdk.compile.rewrite.table import TARGETS_WITHOUT_TABLE_BANKS
from ethosu_sdk.npu.errors import BusError, UnsupportedCommand, WeightOrderError
from ethosu_sdk.npu.hazards import Conflict, HazardKind, check
from tests.conformance.comparison import differing_elements
from tests.conformance.lower import compile_for
from tests.conformance.tosa_graph import Graph
from tests.conformance.tosa_graphs import clamped, layer, looked_up
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

Step = Callable[[Graph, Any], Any]
Hazards = set[tuple[HazardKind, Conflict]]
SHAPE = (1, 8, 6, 12)
U55, U65, U85 = "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"
_LIMITS = {"INT8": (-128, 127), "INT16": (-32768, 32767)}
_DTYPES = (*_LIMITS, "BOOL")
_UNIT = [(1 << 30, 30)]


def compiled(tosa: bytes, target: str) -> npu.Program:
    return npu.load(compile_for(target, tosa).payload)


def hazards(program: npu.Program) -> Hazards:
    found = check(bytes(program.blocks.command_stream), program.config)
    return {(hazard.kind, hazard.conflict) for hazard in found}


def assert_right(graph: bytes, target: str, tosa: TosaModel) -> None:
    program = compiled(graph, target)
    assert hazards(program) == set()
    differing, total = differing_elements(program, graph, tosa, (0, 0))
    assert total
    assert differing == 0, f"{differing} of {total} elements differ"


# --- steps of graphs


def in_a_row(*steps: Step, shape: Sequence[int] = SHAPE, dtype: str = "INT8") -> bytes:
    """A graph of one operator behind the other."""
    graph = Graph()
    value = graph.input(shape, dtype)
    for step in steps:
        value = step(graph, value)
    return graph.finish(value)


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


def turned(*order: int) -> Step:
    """TRANSPOSE."""

    def step(graph: Graph, value: Any) -> Any:
        shape = [value.shape[axis] for axis in order]
        return graph.add("TRANSPOSE", [value], shape, dtype_of(graph, value), perms=list(order))

    return step


def unchanged(graph: Graph, value: Any) -> Any:
    """CLAMP to all values, or LOGICAL_OR of truth values with themselves."""
    dtype = dtype_of(graph, value)
    if dtype == "BOOL":
        return graph.add("LOGICAL_OR", [value, value], value.shape, dtype)
    return clamped(graph, value, *_LIMITS[dtype], dtype)


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


# --- operators whose shapes are mixed up: mixed_up_shapes.py and lost_batches.py


@dataclass(frozen=True)
class Mixed:
    """Two operators on an input of SHAPE, one behind the other, the targets where they must be kept apart, and what
    does so."""

    name: str
    first: Step
    second: Step
    targets: tuple[str, ...]
    dtype: str = "INT8"
    between: Step = unchanged

    def make(self, apart: bool) -> bytes:
        """The TOSA graph, with or without an operator between the two."""
        middle = (self.between,) if apart else ()
        return in_a_row(self.first, *middle, self.second, dtype=self.dtype)


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


@pytest.mark.parametrize(("mixed", "target"), CASES)
def test_operators_that_are_mixed_up(mixed: Mixed, target: str, tosa: TosaModel) -> None:
    graph = mixed.make(apart=False)
    try:
        fault = "other values" * bool(differing_elements(compiled(graph, target), graph, tosa, (0, 0))[0])
    except (RuntimeError, BusError, UnsupportedCommand) as error:
        fault = str(error)
    assert FAULTS.search(fault)
    assert_right(mixed.make(apart=True), target, tosa)


# --- look-up tables that are lost on Ethos-U55-32 and -64, and nowhere else: lost_lookup_tables.py

# With the TABLE behind a TRANSPOSE, its table is loaded beyond the shared RAM and accumulators lie where it is looked
# for. When it is used again behind a TRANSPOSE or MATMUL, it is not loaded anew.
LARGER = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512")
BEYOND, COVERED = HazardKind.LUT_BEYOND_MEMORY, HazardKind.LUT_OVERWRITTEN
NOT_LOADED = HazardKind.LUT_NOT_LOADED
IMAGE = (1, 6, 8, 16)


def convolved(graph: Graph, value: Any) -> Any:
    """CONV2D of one element."""
    return layer(graph, "CONV2D", value, IMAGE[-1], 1)


def flat(graph: Graph, value: Any) -> Any:
    """RESHAPE to rows."""
    _, height, width, depth = value.shape
    return as_shape(graph, value, [1, height * width, 1, depth])


def wide(graph: Graph, value: Any) -> Any:
    """TABLE of int16 values, and back to int16."""
    entries = graph.constant([513], "INT16", [117 * index - 30000 for index in range(513)])
    fine = graph.add("TABLE", [value, entries], value.shape, "INT32")
    return graph.rescale(fine, "INT16", [(1 << 30, 37)])


def used_again(between: str, before: Step | None) -> bytes:
    """The same table for two inputs, with a TRANSPOSE or MATMUL between the two, and `before` before each."""
    graph = Graph()
    entries = graph.constant([256], "INT8", [(7 * index) % 200 - 100 for index in range(256)])

    def table(value: Any) -> Any:
        value = value if before is None else before(graph, value)
        return graph.add("TABLE", [value, entries], value.shape, "INT8")

    first = table(graph.input((1, 8, 8), "INT8"))
    if between == "MATMUL":
        zeros = [graph.constant([1], "INT8", [zero]) for zero in (3, -4)]
        operands = [first, graph.input((1, 8, 8), "INT8"), *zeros]
        other = graph.rescale(graph.add("MATMUL", operands, (1, 8, 8), "INT32"), "INT8", [(1 << 30, 38)])
    else:
        other = turned(0, 2, 1)(graph, graph.input((1, 8, 8), "INT8"))
    return graph.finish(first, other, table(graph.input((1, 8, 8), "INT8")))


FUSED = (
    pytest.param([turned(0, 3, 1, 2)], id="input"),
    pytest.param([convolved, turned(0, 3, 1, 2)], id="convolution"),
    pytest.param([convolved, turned(0, 2, 1, 3)], id="height_width"),
    pytest.param([convolved, turned(0, 1, 3, 2)], id="width_channels"),
    pytest.param([convolved, turned(0, 3, 2, 1)], id="height_channels"),
    pytest.param([convolved, turned(0, 3, 1, 2), flat], id="reshaped"),
)


@pytest.mark.parametrize("target", TARGETS_WITHOUT_TABLE_BANKS)
@pytest.mark.parametrize("steps", FUSED)
def test_a_table_behind_a_transpose_is_lost(steps: list[Step], target: str, tosa: TosaModel) -> None:
    graph = in_a_row(*steps, looked_up, shape=IMAGE)
    program = compiled(graph, target)
    found = hazards(program)
    assert {(BEYOND, Conflict.NO_MEMORY), (COVERED, Conflict.OWN_BUFFERS)} <= found
    assert {kind for kind, _ in found} == {BEYOND, COVERED, NOT_LOADED}
    with pytest.raises(BusError, match="0x4000 to 0x4100 of the NPU's own memory"):
        differing_elements(program, graph, tosa, (0, 0))


@pytest.mark.parametrize("target", TARGETS_WITHOUT_TABLE_BANKS)
@pytest.mark.parametrize("steps", FUSED)
def test_a_table_before_the_transpose_is_not(steps: list[Step], target: str, tosa: TosaModel) -> None:
    at = next(index for index, step in enumerate(steps) if step is not convolved)
    assert_right(in_a_row(*steps[:at], looked_up, *steps[at:], shape=IMAGE), target, tosa)


@pytest.mark.parametrize("target", LARGER)
def test_larger_parts_set_memory_aside_for_tables(target: str, tosa: TosaModel) -> None:
    assert_right(in_a_row(convolved, turned(0, 3, 1, 2), looked_up, shape=IMAGE), target, tosa)
    assert_right(used_again("TRANSPOSE", None), target, tosa)
    assert_right(used_again("MATMUL", None), target, tosa)


@pytest.mark.parametrize("target", TARGETS_WITHOUT_TABLE_BANKS)
def test_tables_of_int16_values_are_lost_when_they_are_used_again(target: str, tosa: TosaModel) -> None:
    def made(*steps: Step) -> bytes:
        return in_a_row(*steps, shape=IMAGE, dtype="INT16")

    turn = turned(0, 3, 1, 2)
    assert_right(made(turn, wide), target, tosa)  # an operation of its own
    assert hazards(compiled(made(wide, turn, wide), target)) == {(NOT_LOADED, Conflict.OVERWRITTEN)}
    assert_right(made(unchanged, wide, turn, unchanged, wide), target, tosa)


@pytest.mark.parametrize("target", TARGETS_WITHOUT_TABLE_BANKS)
@pytest.mark.parametrize("between", ["TRANSPOSE", "MATMUL"])
def test_a_table_that_is_used_again_is_not_loaded_anew(between: str, target: str, tosa: TosaModel) -> None:
    graph = used_again(between, None)
    program = compiled(graph, target)
    assert hazards(program) == {(NOT_LOADED, Conflict.OVERWRITTEN)}
    # The model's operations leave the table alone: values alone would not tell.
    assert differing_elements(program, graph, tosa, (0, 0))[0] == 0
    assert_right(used_again(between, unchanged), target, tosa)


# --- layers whose result is transposed into a part of a larger tensor, for Ethos-U85: miscounted_channels.py

# With the activation behind the TRANSPOSE, Vela encodes the weights for another number of channels, and the debug
# database says so.


@dataclass(frozen=True)
class Part:
    """A layer, the operator that takes its result as a part, and an activation."""

    layer: str
    channels: int
    width: int
    activation: Step = limited
    whole: Step = joined

    def make(self, activation_first: bool) -> bytes:
        """The TOSA graph, with the activation before or behind the TRANSPOSE."""
        depth = self.channels if self.layer.startswith("DEPTHWISE") else 16

        def first(graph: Graph, value: Any) -> Any:
            return layer(graph, self.layer, value, self.channels, 3)

        steps = [self.activation, turned(0, 3, 1, 2)]
        ordered = steps if activation_first else steps[::-1]
        return in_a_row(first, *ordered, self.whole, shape=(1, 8, self.width, depth))


def below(graph: Graph, value: Any) -> Any:
    """PAD to twice the height."""
    shape = list(value.shape)
    sides = graph.constant([8], "SHAPE", [0, 0, 0, shape[1], 0, 0, 0, 0])
    shape[1] *= 2
    return graph.add("PAD", [value, sides, graph.constant([1], "INT8", [0])], shape, "INT8")


PARTS = {
    "few": Part("CONV2D", 4, 16),
    "table": Part("CONV2D", 16, 8, looked_up),
    "as_many_micro_blocks": Part("CONV2D", 16, 12),  # of weights: nothing shows but the values
    "depthwise": Part("DEPTHWISE_CONV2D", 16, 12, whole=below),
}


def miscounted(graph: bytes) -> tuple[npu.Program, set[tuple[int, int]]]:
    """Vela's program, and the channels and widths that its debug database says it took for each other."""
    made = compile_for(U85, graph, ["--enable-debug-db"])
    return npu.load(made.payload), set(vela_database.misjudged_channels(made.debug_xml).values())


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_activation_behind_the_transpose_costs_the_weights(part: Part, tosa: TosaModel) -> None:
    graph = part.make(activation_first=False)
    program, found = miscounted(graph)
    assert found == {(part.channels, part.width)}
    with contextlib.suppress(WeightOrderError):
        assert differing_elements(program, graph, tosa, (0, 0))[0]
    before = part.make(activation_first=True)
    assert not miscounted(before)[1]
    assert_right(before, U85, tosa)


def test_as_many_channels_as_columns_are_right(tosa: TosaModel) -> None:
    graph = Part("CONV2D", 16, 16).make(activation_first=False)
    assert not miscounted(graph)[1]
    assert_right(graph, U85, tosa)
