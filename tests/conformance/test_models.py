"""Every model of the corpus on the NPU model.

It gives the TOSA reference model's bytes. Its command stream has no hazards. In pieces, each run as a job of its own,
the stream leaves the same memory. The quick set runs each model on one configuration per profile. With
ETHOSU_SDK_CONFORMANCE=full, as scripts/npu-conformance sets it, each runs on all configurations that have its
operators.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.npu.hazards import check
from ethosu_sdk.npu.machine import Machine
from ethosu_sdk.npu.memory import FixedRegions
from ethosu_sdk.npu.program import described
from ethosu_sdk.npu.stream import pieces
from tests.conformance.comparison import differing_elements
from tests.conformance.conftest import Corpus
from tests.conformance.selection import FULL, Pair, pairs, parameters
from tests.oracles.tosa import TosaModel

Memory = dict[int, NDArray[np.uint8]]

pytestmark = pytest.mark.torch

BRANCHING = "control"


@pytest.mark.parametrize("pair", parameters(pairs(full=FULL)))
def test_outputs_pieces_and_hazards(corpus: Corpus, tosa: TosaModel, pair: Pair) -> None:
    delegates = corpus(pair)
    assert delegates, "nothing of the model was delegated"
    for delegate in delegates:
        program = npu.load(delegate.payload)
        differing, total = differing_elements(program, delegate.tosa, tosa, pair.int32_range)
        assert differing == 0, f"{differing} of {total} elements differ"
        if pair.group == BRANCHING:
            assert_a_stream_that_branches_is_not_cut(program)
        else:
            assert_pieces_leave_the_same_memory(program)
        hazards = check(bytes(program.blocks.command_stream), program.config)
        assert [hazard.describe() for hazard in hazards] == []


def assert_a_stream_that_branches_is_not_cut(program: npu.Program) -> None:
    with pytest.raises(npu.UnsupportedCommand, match="a stream that branches is not cut"):
        pieces.cut(bytes(program.blocks.command_stream), program.config)


def assert_pieces_leave_the_same_memory(program: npu.Program) -> None:
    """All of memory, byte for byte."""
    stream = bytes(program.blocks.command_stream)
    found = pieces.cut(stream, program.config)
    whole, in_pieces = memory_after(program, [stream]), memory_after(program, [row.stream for row in found])
    assert [region for region in whole if not np.array_equal(whole[region], in_pieces[region])] == []
    offsets = [op.offset for op in described(stream, program.config).operations]
    assert [offset for row in found for offset in row.offsets] == offsets


def memory_after(program: npu.Program, streams: list[bytes]) -> Memory:
    """Memory after `streams`, each run as a job of its own: nothing but memory outlives a job.

    Before, it has constants, and random values: small ones where they may be row numbers or summed up.
    """
    values = np.random.default_rng(1)
    scratch = values.integers(0, 256, program.blocks.scratch_bytes, dtype=np.uint8)
    for slot in program.blocks.inputs:
        if slot.element_bytes == 4:
            small = values.integers(0, 8, slot.nbytes // 4, dtype=np.int32)
            scratch[slot.offset : slot.offset + slot.nbytes] = small.view(np.uint8)
    constants = np.frombuffer(program.blocks.weights, np.uint8)
    memory = {0: constants, 1: scratch, 2: np.zeros(program.reach.sizes[2], np.uint8)}
    for stream in streams:
        Machine(program.config, FixedRegions(memory), program.cache).run(stream)
    return memory
