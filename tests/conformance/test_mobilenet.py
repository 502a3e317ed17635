"""MobileNetV2 at 224x224: a whole network against the reference.

The quick set runs it on one configuration per profile, the full one (see test_models.py) on all, and once more as
Vela compiles it for little memory: with rolling buffers and weights that are copied ahead of their use.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from ethosu_sdk import npu
from ethosu_sdk.base.targets import target_names
from ethosu_sdk.program import pte
from tests.conformance.comparison import random_inputs
from tests.conformance.lower import compile_for
from tests.conformance.selection import FULL, PROFILES, profile_of
from tests.conftest import ZooPte
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

TARGETS = target_names() if FULL else tuple(PROFILES.values())
FOR_SIZE = ("--optimise=Size",)


@dataclass(frozen=True)
class MobileNet:
    """What ExecuTorch lowered for a profile: the TOSA graph and Vela's payload."""

    tosa: bytes
    payload: bytes


@pytest.fixture(scope="module")
def mobilenet(zoo_pte: ZooPte) -> Callable[[str], MobileNet]:
    """``mobilenet(target)``: as ExecuTorch lowers it for the profile of the target."""

    def lowered(target: str) -> MobileNet:
        output = zoo_pte("mobilenet_v2", PROFILES[profile_of(target)])
        (row,) = output.delegates
        (found,) = pte.read(output.pte).plan("forward").delegates
        return MobileNet((output.pte.parent / row.files.tosa).read_bytes(), bytes(found.payload))

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


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=[] if "u55" in name else [pytest.mark.thorough]) for name in TARGETS],
)
def test_outputs_equal_the_reference(
    mobilenet: Callable[[str], MobileNet], tosa: TosaModel, target: str
) -> None:
    lowered = mobilenet(target)
    own = target in PROFILES.values()
    payload = lowered.payload if own else compile_for(target, lowered.tosa).payload
    equals_the_reference(payload, lowered.tosa, tosa)


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_outputs_equal_the_reference_with_little_memory(
    mobilenet: Callable[[str], MobileNet], tosa: TosaModel, target: str
) -> None:
    lowered = mobilenet(target)
    payload = compile_for(target, lowered.tosa, FOR_SIZE).payload
    usual = compile_for(target, lowered.tosa).payload
    scratch = [npu.load(blob).blocks.scratch_bytes for blob in (payload, usual)]
    assert scratch[0] < scratch[1]
    equals_the_reference(payload, lowered.tosa, tosa)
