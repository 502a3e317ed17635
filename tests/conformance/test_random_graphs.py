"""Random layers, compiled by Vela in this process, against the TOSA reference model."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings, strategies as st

from ethosu_sdk import npu
from tests.conformance.comparison import random_inputs
from tests.conformance.lower import compile_for
from tests.conformance.random_graphs import Layer, graphs, serialized
from tests.conformance.selection import FULL, TARGETS
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

EXAMPLES = 400 if FULL else 25
PARTS = 8 if FULL else 1  # of which each runs as a test of its own
# Vela refuses what the NPU cannot do.
_REFUSALS = ("could not run on NPU",)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("profile", TARGETS)
def test_outputs_equal_the_reference(tosa: TosaModel, profile: str, part: int) -> None:
    compared = 0

    @seed(part)  # the same examples in every run, others in every part
    @settings(
        max_examples=EXAMPLES // PARTS,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(layer=graphs(), target=st.sampled_from(TARGETS[profile]), inputs_seed=st.integers(0, 99))
    def compare(layer: Layer, target: str, inputs_seed: int) -> None:
        nonlocal compared
        graph = serialized(layer)
        try:
            payload, _ = compile_for(target, graph)
        except RuntimeError as error:
            if any(text in str(error) for text in _REFUSALS):
                return
            raise
        program = npu.load(payload)
        inputs = random_inputs(graph, program.blocks.inputs, inputs_seed, (0, 0))
        (expected,) = tosa.run(graph, inputs)
        (output,) = npu.run(program, inputs).outputs
        np.testing.assert_array_equal(output.reshape(-1), expected.reshape(-1))
        compared += 1

    compare()
    assert compared > EXAMPLES // PARTS / 2, "Vela refuses most of the layers"
