import struct
import zlib

import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.errors import InputError
from ethosu_sdk.evidence import input_image

TABLE = 1216


def test_the_layout_is_what_the_protocol_says() -> None:
    sets = [[b"abc", bytes(20)], [b"def", b"\1" * 20]]
    image = input_image.encode(sets, [[130, 32], [48]], repeats=5, nonce=bytes(range(16)))
    words = struct.unpack_from("<16I", image)
    assert image[:4] == b"EUI1"
    assert words[1] == 5
    assert words[2] == len(image)
    assert words[3] == zlib.crc32(image[16:])
    assert words[4:8] == (2, 2, 5, 2)
    assert image[32:48] == bytes(range(16))
    assert words[12:] == (0,) * 4
    assert struct.unpack_from("<9I", image, 64) == (2, 130, 32, 0, 0, 0, 0, 0, 0)
    assert struct.unpack_from("<9I", image, 100) == (1, 48, 0, 0, 0, 0, 0, 0, 0)
    assert image[136:TABLE] == bytes(TABLE - 136)


@given(
    st.integers(0, 4).flatmap(
        lambda inputs: st.lists(
            st.lists(st.binary(max_size=70), min_size=inputs, max_size=inputs), min_size=1, max_size=5
        )
    ),
    st.lists(st.lists(st.integers(0, 1023), min_size=1, max_size=8), max_size=32),
)
def test_every_input_is_found_through_the_table(sets: list[list[bytes]], groups: list[list[int]]) -> None:
    image = input_image.encode(sets, groups)
    end = TABLE + 8 * len(sets) * len(sets[0])
    for number, data in enumerate(data for row in sets for data in row):
        offset, size = struct.unpack_from("<2I", image, TABLE + 8 * number)
        assert offset % 16 == 0
        assert offset >= end
        assert image[offset : offset + size] == data
        end = offset + size
    assert end <= len(image) < end + 16


def test_pieces_lie_behind_the_inputs() -> None:
    pieces = [input_image.StreamPiece(2, b"12345678"), input_image.StreamPiece(0, b"abcd" * 5)]
    plain = input_image.encode([[b"abc"]])
    image = input_image.encode([[b"abc"]], repeats=2, pieces=pieces)
    assert len(image) == len(plain) + input_image.bytes_of_pieces(pieces)
    table, count = struct.unpack_from("<2I", image, 52)
    assert (table, count) == (len(plain), 2)
    for number, piece in enumerate(pieces):
        delegate, offset, size = struct.unpack_from("<3I", image, table + 12 * number)
        assert delegate == piece.delegate
        assert offset % 16 == 0
        assert image[offset : offset + size] == piece.commands


def test_an_image_without_inputs_is_complete() -> None:
    image = input_image.encode([[]])
    assert struct.unpack_from("<I", image, 8)[0] == len(image) == TABLE


@pytest.mark.parametrize(
    ("groups", "repeats", "reason"),
    [
        ([range(9)], 1, "9 PMU events"),
        ([[1], []], 1, "0 PMU events"),
        ([[1]] * 33, 1, "33 groups"),
        ([], 0, "0 repeats"),
        ([], 1 << 32, "4294967296 repeats"),
    ],
)
def test_what_has_no_room_is_refused(groups: list[list[int]], repeats: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        input_image.encode([[b""]], groups, repeats)


def test_a_program_header_carries_its_own_check() -> None:
    header = input_image.encode_program_header(960)
    assert header[:4] == b"EUP1"
    assert struct.unpack("<5I", header)[1:] == (2, 960, 0, zlib.crc32(header[:16]))
    header = input_image.encode_program_header(960, 3)
    assert struct.unpack("<5I", header)[1:] == (2, 960, 3, zlib.crc32(header[:16]))
