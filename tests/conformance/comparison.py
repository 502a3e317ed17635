"""Running a delegate on the NPU model and on the TOSA reference model with the same random inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.npu.vela_blocks import TensorSlot
from tests.conformance.tosa_graph import input_dtypes
from tests.oracles.tosa import TosaModel

Array = NDArray[Any]
Range = tuple[int, int]

SEEDS = (0, 1, 2)
_FULL: dict[str, tuple[type[np.generic], Range]] = {
    "BOOL": (np.int8, (0, 1)),
    "INT8": (np.int8, (-128, 127)),
    "INT16": (np.int16, (-32768, 32767)),
}


def random_inputs(tosa: bytes, slots: Sequence[TensorSlot], seed: int, int32_range: Range) -> list[Array]:
    """Inputs over the whole range of their type, int32 over `int32_range`; the first two elements are its ends.

    The types are those of the TOSA graph, the shapes those of the delegate's inputs.
    """
    generator = np.random.default_rng(seed)
    inputs = []
    for name, slot in zip(input_dtypes(tosa), slots, strict=True):
        dtype, (low, high) = (np.int32, int32_range) if name == "INT32" else _FULL[name]
        values = generator.integers(low, high + 1, slot.shape).astype(dtype)
        values.reshape(-1)[:2] = [low, high][: values.size]
        inputs.append(values)
    return inputs


def says_something(reference: Array) -> bool:
    """Whether an oracle's output has more than two values; two will do for booleans and for a handful of values."""
    few = reference.dtype == np.bool_ or reference.size <= 4
    return np.unique(reference).size > (1 if few else 2)


def differing_elements(
    program: npu.Program,
    tosa: bytes,
    oracle: TosaModel,
    int32_range: Range,
    run: Callable[[npu.Program, list[Array]], npu.RunResult] = npu.run,
) -> tuple[int, int]:
    """How many output elements differ over all seeds, and how many there are.

    Asserts that every output has the reference's size and varies over the seeds.
    """
    differing = total = 0
    references: list[list[Array]] = []
    for seed in SEEDS:
        inputs = random_inputs(tosa, program.blocks.inputs, seed, int32_range)
        expected = oracle.run(tosa, inputs)
        outputs = run(program, inputs).outputs
        assert [array.nbytes for array in outputs] == [array.nbytes for array in expected]
        for output, reference in zip(outputs, expected, strict=True):
            same_type = reference.view(np.int8) if reference.dtype == np.bool_ else reference
            assert output.dtype == same_type.dtype
            differing += int((output.reshape(-1) != same_type.reshape(-1)).sum())
            total += reference.size
        references.append(expected)
    for found in zip(*references, strict=True):
        assert says_something(np.concatenate([array.reshape(-1) for array in found])), (
            "the oracle says nothing"
        )
    return differing, total
