"""Running a delegate on the NPU model and on the TOSA reference model with the same random inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.vela_blocks import TensorSlot
from tests.oracles.tosa import TosaModel

Array = NDArray[Any]

SEEDS = (0, 1, 2)
# int32 stays small: TOSA leaves it open what an overflow gives.
_RANGES = {1: (np.int8, -128, 127), 2: (np.int16, -32768, 32767), 4: (np.int32, -(1 << 15), (1 << 15) - 1)}


def random_inputs(slots: Sequence[TensorSlot], seed: int) -> list[Array]:
    """Inputs over the whole range of their type; the first two elements are its ends."""
    generator = np.random.default_rng(seed)
    inputs = []
    for slot in slots:
        dtype, low, high = _RANGES[slot.element_bytes]
        values = generator.integers(low, high + 1, slot.shape).astype(dtype)
        values.reshape(-1)[:2] = [low, high][: values.size]
        inputs.append(values)
    return inputs


def differing_elements(
    payload: bytes,
    tosa: bytes,
    oracle: TosaModel,
    run: Callable[[npu.Program, list[Array]], npu.RunResult] = npu.run,
) -> tuple[int, int]:
    """How many output elements differ over all seeds, and how many there are."""
    program = npu.load(payload)
    differing = total = 0
    for seed in SEEDS:
        inputs = random_inputs(program.blocks.inputs, seed)
        expected = oracle.run(tosa, inputs)
        outputs = run(program, inputs).outputs
        assert [array.nbytes for array in outputs] == [array.nbytes for array in expected]
        for output, reference in zip(outputs, expected, strict=True):
            assert output.dtype == reference.dtype
            assert np.unique(reference).size > 2, "the oracle's output says nothing"
            differing += int((output.reshape(-1) != reference.reshape(-1)).sum())
            total += reference.size
    return differing, total
