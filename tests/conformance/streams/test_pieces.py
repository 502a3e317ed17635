"""Command streams in pieces: every piece runs as a job of its own, and memory ends as the whole stream leaves it.

Memory is compared byte for byte, the whole of it: test_models.py compares what the whole streams compute.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.npu.machine import Machine
from ethosu_sdk.npu.memory import FixedRegions
from ethosu_sdk.npu.program import described
from ethosu_sdk.npu.stream import pieces
from tests.conformance.conftest import Corpus
from tests.conformance.selection import FULL, Pair, pairs, parameters

Memory = dict[int, NDArray[np.uint8]]

pytestmark = pytest.mark.torch


def _memory(program: npu.Program) -> Memory:
    """Constants, and the rest filled with random values: small ones where they may be row numbers or summed up."""
    values = np.random.default_rng(1)
    scratch = values.integers(0, 256, program.blocks.scratch_bytes, dtype=np.uint8)
    for slot in program.blocks.inputs:
        if slot.element_bytes == 4:
            small = values.integers(0, 8, slot.nbytes // 4, dtype=np.int32)
            scratch[slot.offset : slot.offset + slot.nbytes] = small.view(np.uint8)
    return {
        0: np.frombuffer(program.blocks.weights, np.uint8),
        1: scratch,
        2: np.zeros(program.fast_scratch_bytes, np.uint8),
    }


def _after(program: npu.Program, streams: list[bytes]) -> Memory:
    """Memory after `streams`, each run as a job of its own: nothing but memory outlives a job."""
    memory = _memory(program)
    for stream in streams:
        Machine(program.config, FixedRegions(memory), program.cache).run(stream)
    return memory


def _equal(one: Memory, other: Memory) -> bool:
    return all(np.array_equal(one[region], other[region]) for region in one)


BRANCHING = "control"


@pytest.mark.parametrize("pair", parameters([row for row in pairs(full=FULL) if row.group == BRANCHING]))
def test_a_stream_that_branches_is_not_cut(corpus: Corpus, pair: Pair) -> None:
    (delegate,) = corpus(pair)
    program = npu.load(delegate.payload)
    with pytest.raises(npu.UnsupportedCommand, match="a stream that branches is not cut"):
        pieces.cut(bytes(program.blocks.command_stream), program.config)


@pytest.mark.parametrize("pair", parameters([row for row in pairs(full=FULL) if row.group != BRANCHING]))
def test_pieces_leave_the_same_memory(corpus: Corpus, pair: Pair) -> None:
    for delegate in corpus(pair):
        program = npu.load(delegate.payload)
        stream = bytes(program.blocks.command_stream)
        found = pieces.cut(stream, program.config)
        assert _equal(_after(program, [stream]), _after(program, [row.stream for row in found]))
        whole = described(stream, program.config)
        assert [offset for row in found for offset in row.offsets] == [op.offset for op in whole.operations]
