"""Streams in pieces: where they may be cut, and what a piece brings along. That memory ends the same is compared for
whole models in tests/conformance/test_models.py."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.stream import pieces
from tests.unit.npu.machine import U55_128, U85_256, place, run, taken
from tests.unit.npu.streams import DMA_START, POOL, Setting, branch, chained, copying_pool, stream, transfer

SHAPE = (1, 4, 64)
A, B, C, TABLE = 0x1000, 0x2000, 0x3000, 0x4000
LUT = 22528  # of Ethos-U55-128: the end of its shared RAM, less 2 KiB
VALUES = np.arange(-128, 128).astype(np.int8)
PLUS_ONE = np.roll(VALUES, -1)  # a table that adds one

Operation = tuple[dict[str, Setting], int, int]


def copy(source: int, target: int, *, is_u85: bool = False, **changes: Setting) -> Operation:
    """An average pool that copies; with ACTIVATION 16, through the table in slot 0."""
    return {**copying_pool(source, target, SHAPE, is_u85=is_u85), **changes}, POOL, 0 if is_u85 else 1


def load_table(region: int) -> Operation:
    return transfer((region, TABLE), (1 << 8, LUT), 256), DMA_START, 0


def cut(data: bytes, config: NpuConfig = U55_128) -> list[bytes]:
    return [row.stream for row in pieces.cut(data, config)]


def in_pieces(parts: list[bytes], scratch: NDArray[np.uint8], constants: bytes = b"") -> None:
    for part in parts:
        run(part, scratch, constants)


def test_registers_are_carried_over_and_needed() -> None:
    second: Operation = ({"IFM_BASE0": B, "OFM_BASE0": C}, POOL, 1)
    parts = cut(stream(copy(A, B), second))
    assert len(parts) == 2
    scratch = place((A, VALUES))
    in_pieces(parts, scratch)
    assert taken(scratch, C, 256, "<i1") == VALUES.tolist()
    data = stream(copy(A, B), ({"IFM_BASE0": B, "OFM_BASE0": C}, POOL, 1))
    first = cut(data)[0]
    with pytest.raises(CommandError, match="never set"):
        run(data[len(first) - 4 :], place((A, VALUES)))


@pytest.mark.parametrize("region", [0, 1])
def test_a_table_stays_with_its_user_and_is_loaded_again_for_later_ones(region: int) -> None:
    """From constants the table can be loaded again; from memory that operations write, all users stay together."""
    data = stream(load_table(region), copy(A, B, ACTIVATION=16), copy(B, C), copy(C, A, ACTIVATION=16))
    parts = cut(data)
    assert len(parts) == (3 if region == 0 else 1)
    constants = bytes(TABLE) + PLUS_ONE.tobytes()
    scratch = place((A, VALUES), (TABLE, PLUS_ONE))
    in_pieces(parts, scratch, constants)
    assert taken(scratch, A, 256, "<i1") == np.roll(VALUES, -2).tolist()


def test_a_table_that_takes_the_place_of_another_is_the_one_that_is_loaded_again() -> None:
    other = transfer((0, TABLE + 256), (1 << 8, LUT), 256), DMA_START, 0
    data = stream(load_table(0), copy(A, B, ACTIVATION=16), other, copy(B, C, ACTIVATION=16), copy(C, A))
    parts = cut(data[:-4] + stream(copy(C, B, ACTIVATION=16)))
    assert len(parts) == 4
    scratch = place((A, VALUES))
    in_pieces(parts, scratch, bytes(TABLE) + PLUS_ONE.tobytes() + VALUES[::-1].tobytes())
    assert taken(scratch, B, 256, "<i1") == PLUS_ONE.tolist()  # the other table undoes itself


def test_a_chaining_buffer_is_not_cut_from_its_reader() -> None:
    data = stream(
        copy(A, B, is_u85=True),
        copy(A, B, is_u85=True, **chained("OFM", 1)),
        copy(A, C, is_u85=True, **chained("IFM", 1)),
        copy(A, B, is_u85=True),
    )
    assert [len(row.offsets) for row in pieces.cut(data, U85_256)] == [1, 2, 1]


def test_what_cannot_be_cut_is_refused_and_nothing_is_one_piece() -> None:
    body = stream(copy(A, B, is_u85=True), stop=False)
    with pytest.raises(UnsupportedCommand, match="a stream that branches is not cut"):
        pieces.cut(body + branch(0) + stream(copy(A, B, is_u85=True)), U85_256)
    with pytest.raises(CommandError, match="no NPU_OP_STOP"):
        pieces.cut(body, U85_256)
    assert pieces.cut(stream(), U55_128) == (pieces.Piece((), stream()),)
