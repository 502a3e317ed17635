"""MobileNetV2 at 224x224: a whole network against the reference, and the cycle estimate against Vela's own."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from ethosu_sdk import npu, pte
from ethosu_sdk.npu.operation import Kind
from ethosu_sdk.npu.program import operations
from tests.conformance.comparison import random_inputs
from tests.conftest import ZooPte
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch


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
    """Vela prints its estimate per layer; ours is made from the command stream alone.

    Layers that Vela cuts into depth slices have several operations, each with its own start and end, so only
    layers with one operation of the same size can be equal. Those are nearly all.
    """
    program, _, layers = delegate
    listed = operations(bytes(program.blocks.command_stream), program.config)
    kinds = {
        "Conv2D": Kind.CONV,
        "DepthwiseConv2D": Kind.DEPTHWISE,
        "FullyConnected": Kind.CONV,
    }
    ours: dict[tuple[Kind, int], list[int]] = {}
    for op, trace in zip(listed.operations, listed.traces, strict=True):
        if getattr(op, "kind", None) in (Kind.CONV, Kind.DEPTHWISE):
            ours.setdefault((op.kind, trace.macs), []).append(trace.total_cycles)
    equal = compared = 0
    for row in layers:
        kind = kinds.get(row["NNG Operator"])
        estimates = ours.get((kind, int(float(row["MAC Count"])))) if kind else None
        if estimates:
            compared += 1
            equal += round(float(row["NPU"])) in estimates
    assert compared > 30
    assert equal / compared > 0.95
