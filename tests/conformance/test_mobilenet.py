"""MobileNetV2 at 224x224: a whole network against the reference, and the cycle estimate against Vela's own."""

from __future__ import annotations

import csv
from collections import deque
from typing import Any

import numpy as np
import pytest

from ethosu_sdk import npu, pte
from ethosu_sdk.npu.program import operations
from tests.conformance.comparison import random_inputs
from tests.conftest import ZooPte
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

# Our operations' names → the operators of Vela's table.
KINDS = {
    "CONV": ("Conv2D", "FullyConnected"),
    "DEPTHWISE": ("DepthwiseConv2D",),
    "ELEMENTWISE_ADD": ("Add",),
}


@pytest.fixture(scope="module")
def delegate(zoo_pte: ZooPte) -> tuple[npu.Program, bytes, list[dict[str, str]]]:
    """The program, its TOSA graph, and Vela's table of layers."""
    output = zoo_pte("mobilenet_v2")
    (row,) = output.delegates
    (found,) = pte.read(output.pte).plan("forward").delegates
    folder = output.pte.parent
    (table,) = folder.glob("*.per-layer.csv")
    layers = list(csv.DictReader(table.read_text().splitlines()))
    return npu.load(found.payload), (folder / row.tosa_file).read_bytes(), layers


def test_outputs_equal_the_reference(delegate: Any, tosa: TosaModel) -> None:
    program, graph, _ = delegate
    inputs = random_inputs(program.blocks.inputs, 0)
    (expected,) = tosa.run(graph, inputs)
    first = npu.run(program, inputs)
    np.testing.assert_array_equal(first.outputs[0].reshape(-1), expected.reshape(-1))
    assert np.unique(expected).size > 50
    again = npu.run(program, inputs)  # with the weights that the program has kept
    np.testing.assert_array_equal(again.outputs[0], first.outputs[0])
    assert again.counters == first.counters


def test_cycle_estimates_are_those_of_vela(delegate: Any) -> None:
    """Exact, but for layers that Vela cuts into depth slices: each slice has its own start and end."""
    program, _, layers = delegate
    listed = operations(bytes(program.blocks.command_stream), program.config)
    for kind, layer_kinds in KINDS.items():
        slices = deque(trace for trace in listed.traces if trace.name == kind)
        rows = [row for row in layers if row["NNG Operator"] in layer_kinds]
        exact = 0
        for row in rows:
            ours = [slices.popleft()]
            while sum(trace.macs for trace in ours) < int(float(row["MAC Count"])) and ours[0].macs:
                ours.append(slices.popleft())
            cycles, expected = sum(trace.total_cycles for trace in ours), round(float(row["NPU"]))
            exact += cycles == expected
            assert cycles == expected or (len(ours) > 1 and abs(cycles - expected) < expected / 40), row
        assert not slices
        assert exact > 0.8 * len(rows) > 0
