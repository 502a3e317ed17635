"""MobileNetV2 at 224x224: a whole network against the reference, and the cycle estimate against Vela's own.

The quick set runs it on one configuration per profile, the full one (see test_models.py) on all, and once more as
Vela compiles it for little memory: with rolling buffers and weights that are copied ahead of their use.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk import npu, pte
from ethosu_sdk.npu.program import operations
from ethosu_sdk.targets import target_names
from tests.conformance.comparison import random_inputs
from tests.conformance.lower import compile_for
from tests.conformance.selection import FULL, PROFILES, profile_of
from tests.conftest import ZooPte
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

TARGETS = target_names() if FULL else tuple(PROFILES.values())
FOR_SIZE = ("--optimise=Size",)
# Our operations' names → the operators of Vela's table.
KINDS = {
    "CONV": ("Conv2D", "FullyConnected"),
    "DEPTHWISE": ("DepthwiseConv2D",),
    "ELEMENTWISE_ADD": ("Add",),
}


@dataclass(frozen=True)
class MobileNet:
    """What ExecuTorch lowered for a profile: the TOSA graph, Vela's payload, and Vela's table of layers."""

    tosa: bytes
    payload: bytes
    layers: Path


@pytest.fixture(scope="module")
def mobilenet(zoo_pte: ZooPte) -> Callable[[str], MobileNet]:
    """``mobilenet(target)``: as ExecuTorch lowers it for the profile of the target."""

    def lowered(target: str) -> MobileNet:
        output = zoo_pte("mobilenet_v2", PROFILES[profile_of(target)])
        (row,) = output.delegates
        (found,) = pte.read(output.pte).plan("forward").delegates
        folder = output.pte.parent
        (table,) = folder.glob("*.per-layer.csv")
        return MobileNet((folder / row.tosa_file).read_bytes(), bytes(found.payload), table)

    return lowered


def equals_the_reference(payload: bytes, graph: bytes, tosa: TosaModel) -> None:
    """Assert that two runs give the reference's bytes, the second with the weights that the program has kept."""
    program = npu.load(payload)
    inputs = random_inputs(graph, program.blocks.inputs, 0, (0, 0))
    (expected,) = tosa.run(graph, inputs)
    first = npu.run(program, inputs)
    np.testing.assert_array_equal(first.outputs[0].reshape(-1), expected.reshape(-1))
    assert np.unique(expected).size > 50
    again = npu.run(program, inputs)
    np.testing.assert_array_equal(again.outputs[0], first.outputs[0])
    assert again.counters == first.counters


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_equal_the_reference(
    mobilenet: Callable[[str], MobileNet], tosa: TosaModel, target: str
) -> None:
    lowered = mobilenet(target)
    own = target in PROFILES.values()
    payload = lowered.payload if own else compile_for(target, lowered.tosa)[0]
    equals_the_reference(payload, lowered.tosa, tosa)


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_equal_the_reference_with_little_memory(
    mobilenet: Callable[[str], MobileNet], tosa: TosaModel, target: str
) -> None:
    lowered = mobilenet(target)
    payload, _ = compile_for(target, lowered.tosa, FOR_SIZE)
    scratch = [npu.load(blob).blocks.scratch_bytes for blob in (payload, lowered.payload)]
    assert scratch[0] < scratch[1]
    equals_the_reference(payload, lowered.tosa, tosa)


def test_cycle_estimates_are_those_of_vela(mobilenet: Callable[[str], MobileNet]) -> None:
    """Exact, but for layers that Vela cuts into depth slices: each slice has its own start and end."""
    lowered = mobilenet(PROFILES["u55"])
    program = npu.load(lowered.payload)
    layers = list(csv.DictReader(lowered.layers.read_text().splitlines()))
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
