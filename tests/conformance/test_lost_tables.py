"""Look-up tables that Vela loses on Ethos-U55-32 and -64, and nowhere else.

With the TABLE behind a TRANSPOSE, its table is loaded beyond the shared RAM and accumulators lie where it is looked
for. When it is used again behind a TRANSPOSE or MATMUL, it is not loaded anew. With the TABLE before the TRANSPOSE,
or a CLAMP before it, as `aot/repairs/lost_lookup_tables.py` has it, all is well.
"""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ethosu_sdk.aot.lowering import to_pte
from ethosu_sdk.aot.repairs import lost_lookup_tables
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.hazards import checker
from ethosu_sdk.npu.hazards.checker import Conflict, HazardKind
from ethosu_sdk.vela_blocks import parse
from tests.conformance.comparison import differing_elements
from tests.conformance.targets import executorch_target
from tests.conformance.tosa_graph import Graph
from tests.conformance.tosa_graphs import clamped, layer, looked_up
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

Step = Callable[[Graph, Any], Any]
SHAPE = (1, 6, 8, 16)
LARGER = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512")
BEYOND, COVERED = HazardKind.LUT_BEYOND_MEMORY, HazardKind.LUT_OVERWRITTEN
NOT_LOADED = HazardKind.LUT_NOT_LOADED


def convolved(graph: Graph, value: Any) -> Any:
    """CONV2D of one element."""
    return layer(graph, "CONV2D", value, SHAPE[-1], 1)


def turned(*order: int) -> Step:
    """TRANSPOSE."""

    def step(graph: Graph, value: Any) -> Any:
        shape = [value.shape[axis] for axis in order]
        return graph.add("TRANSPOSE", [value], shape, "INT8", perms=list(order))

    return step


def flat(graph: Graph, value: Any) -> Any:
    """RESHAPE to rows."""
    _, height, width, depth = value.shape
    shape = [1, height * width, 1, depth]
    return graph.add("RESHAPE", [value, graph.constant([4], "SHAPE", shape)], shape, "INT8")


def unchanged(graph: Graph, value: Any) -> Any:
    """CLAMP to all values."""
    return clamped(graph, value, -128, 127)


def wide(graph: Graph, value: Any) -> Any:
    """TABLE of int16 values, and back to int16."""
    entries = graph.constant([513], "INT16", [117 * index - 30000 for index in range(513)])
    fine = graph.add("TABLE", [value, entries], value.shape, "INT32")
    return graph.rescale(fine, "INT16", [(1 << 30, 37)])


def in_a_row(*steps: Step, dtype: str = "INT8") -> bytes:
    """A graph of one operator behind the other."""
    graph = Graph()
    value = graph.input(SHAPE, dtype)
    for step in steps:
        value = step(graph, value)
    return graph.finish(value)


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
        other = graph.add("TRANSPOSE", [graph.input((1, 8, 8), "INT8")], (1, 8, 8), "INT8", perms=[0, 2, 1])
    return graph.finish(first, other, table(graph.input((1, 8, 8), "INT8")))


def compiled(tosa: bytes, target: str) -> bytes:
    """Vela's payload."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from executorch.backends.arm.arm_vela import vela_compile

        spec = to_pte.compile_spec(executorch_target(target))
    return bytes(vela_compile(tosa, list(spec.compiler_flags)).processed_bytes)


def hazards(payload: bytes) -> set[tuple[HazardKind, Conflict]]:
    blocks = parse(payload)
    found = checker.check(bytes(blocks.command_stream), NpuConfig.from_word(blocks.config_word))
    return {(hazard.kind, hazard.conflict) for hazard in found}


def assert_right(graph: bytes, target: str, tosa: TosaModel) -> None:
    payload = compiled(graph, target)
    assert hazards(payload) == set()
    differing, total = differing_elements(payload, graph, tosa, (0, 0))
    assert differing == 0, f"{differing} of {total} elements differ"


FUSED = (
    pytest.param([turned(0, 3, 1, 2)], id="input"),
    pytest.param([convolved, turned(0, 3, 1, 2)], id="convolution"),
    pytest.param([convolved, turned(0, 2, 1, 3)], id="height_width"),
    pytest.param([convolved, turned(0, 1, 3, 2)], id="width_channels"),
    pytest.param([convolved, turned(0, 3, 2, 1)], id="height_channels"),
    pytest.param([convolved, turned(0, 3, 1, 2), flat], id="reshaped"),
)


@pytest.mark.parametrize("target", lost_lookup_tables.TARGETS)
@pytest.mark.parametrize("steps", FUSED)
def test_a_table_behind_a_transpose_is_lost(steps: list[Step], target: str, tosa: TosaModel) -> None:
    graph = in_a_row(*steps, looked_up)
    payload = compiled(graph, target)
    found = hazards(payload)
    assert {(BEYOND, Conflict.NO_MEMORY), (COVERED, Conflict.OWN_BUFFERS)} <= found
    assert {kind for kind, _ in found} == {BEYOND, COVERED, NOT_LOADED}
    with pytest.raises(BusError, match="0x4000 to 0x4100 of the NPU's own memory"):
        differing_elements(payload, graph, tosa, (0, 0))


@pytest.mark.parametrize("target", lost_lookup_tables.TARGETS)
@pytest.mark.parametrize("steps", FUSED)
def test_a_table_before_the_transpose_is_not(steps: list[Step], target: str, tosa: TosaModel) -> None:
    at = next(index for index, step in enumerate(steps) if step is not convolved)
    assert_right(in_a_row(*steps[:at], looked_up, *steps[at:]), target, tosa)


@pytest.mark.parametrize("target", LARGER)
def test_larger_parts_set_memory_aside_for_tables(target: str, tosa: TosaModel) -> None:
    assert_right(in_a_row(convolved, turned(0, 3, 1, 2), looked_up), target, tosa)
    assert_right(used_again("TRANSPOSE", None), target, tosa)
    assert_right(used_again("MATMUL", None), target, tosa)


@pytest.mark.parametrize("target", lost_lookup_tables.TARGETS)
def test_tables_of_int16_values_are_lost_when_they_are_used_again(target: str, tosa: TosaModel) -> None:
    def turn(graph: Graph, value: Any) -> Any:
        return graph.add("TRANSPOSE", [value], (1, 16, 6, 8), "INT16", perms=[0, 3, 1, 2])

    def kept(graph: Graph, value: Any) -> Any:
        return wide(graph, clamped(graph, value, -32768, 32767, "INT16"))

    assert_right(in_a_row(turn, wide, dtype="INT16"), target, tosa)  # an operation of its own
    again = compiled(in_a_row(wide, turn, wide, dtype="INT16"), target)
    assert hazards(again) == {(NOT_LOADED, Conflict.OVERWRITTEN)}
    assert_right(in_a_row(kept, turn, kept, dtype="INT16"), target, tosa)


@pytest.mark.parametrize("target", lost_lookup_tables.TARGETS)
@pytest.mark.parametrize("between", ["TRANSPOSE", "MATMUL"])
def test_a_table_that_is_used_again_is_not_loaded_anew(between: str, target: str, tosa: TosaModel) -> None:
    graph = used_again(between, None)
    payload = compiled(graph, target)
    assert hazards(payload) == {(NOT_LOADED, Conflict.OVERWRITTEN)}
    # The model's operations leave the table alone: values alone would not tell.
    assert differing_elements(payload, graph, tosa, (0, 0))[0] == 0
    assert_right(used_again(between, unchanged), target, tosa)
