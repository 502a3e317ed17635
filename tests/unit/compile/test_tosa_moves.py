"""Operators that only move values: what is followed through the graph is what the TOSA reference model gives."""

from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.compile.graphs.tosa_graph import CONSTANT_PLACE, TosaMoves
from tests.conformance.tosa_graph import Graph
from tests.oracles.tosa import TosaModel

PADDING = 99
GIVEN = [
    np.arange(24, dtype=np.int8).reshape(2, 3, 4),
    np.arange(24, 36, dtype=np.int8).reshape(1, 3, 4),
]


def moving() -> tuple[Graph, list[Any]]:
    """A graph that turns, cuts, joins, repeats, mirrors and pads two inputs, and its tensors."""
    graph = Graph()
    first, second = (graph.input(row.shape, "INT8") for row in GIVEN)

    def sizes(*values: int) -> Any:
        return graph.constant([len(values)], "SHAPE", values)

    joined = graph.add("CONCAT", [first, second], [3, 3, 4], "INT8", axis=0)
    turned = graph.add("TRANSPOSE", [joined], [4, 3, 3], "INT8", perms=[2, 0, 1])
    flat = graph.add("RESHAPE", [turned, sizes(4, 9)], [4, 9], "INT8")
    cut = graph.add("SLICE", [flat, sizes(1, 2), sizes(3, 5)], [3, 5], "INT8")
    mirrored = graph.add("REVERSE", [cut], [3, 5], "INT8", axis=1)
    repeated = graph.add("TILE", [mirrored, sizes(1, 2)], [3, 10], "INT8")
    padding = graph.constant([1], "INT8", [PADDING])
    padded = graph.add("PAD", [repeated, sizes(1, 0, 0, 2), padding], [4, 12], "INT8")
    return graph, [joined, turned, flat, cut, mirrored, repeated, padded]


def test_values_are_followed_as_the_reference_model_moves_them(tosa: TosaModel) -> None:
    graph, tensors = moving()
    data = graph.finish(*tensors)
    moves = TosaMoves(data)
    elements = np.concatenate([row.ravel() for row in GIVEN])
    for tensor, expected in zip(tensors, tosa.run(data, GIVEN), strict=True):
        found = moves.of(tensor.name)
        ours = np.where(found.places == CONSTANT_PLACE, PADDING, elements[found.places])
        assert found.sources == ("input1", "input2")
        np.testing.assert_array_equal(ours, expected, err_msg=tensor.name)


def test_what_is_computed_is_its_own_source_and_damage_is_refused() -> None:
    graph = Graph()
    first = graph.input([2, 3], "INT8")
    larger = graph.add("MAXIMUM", [first, first], [2, 3], "INT8", nan_mode=graph.nan_mode())
    turned = graph.add("TRANSPOSE", [larger], [3, 2], "INT8", perms=[1, 0])
    same = graph.add("RESHAPE", [turned, graph.constant([2], "SHAPE", [1, 6])], [1, 6], "INT8")
    moves = TosaMoves(graph.finish(same))
    assert larger.name not in moves
    found = moves.of(same.name)
    assert found.sources == (larger.name,)
    assert found.places.tolist() == [[0, 3, 1, 4, 2, 5]]
    assert moves.turned(same.name) == turned.name
    assert moves.operator(turned.name) == "TRANSPOSE"
    with pytest.raises(BuildError):
        TosaMoves(b"\xff" * 64)
