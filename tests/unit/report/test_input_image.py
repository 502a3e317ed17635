import struct
import zlib

import pytest

from ethosu_sdk.errors import InputError
from ethosu_sdk.report import input_image


def test_the_layout_is_what_the_protocol_says() -> None:
    image = input_image.encode([[b"abc", bytes(20)], [b"def", b"\1" * 20]], events=[130, 32])
    words = struct.unpack_from("<16I", image)
    assert image[:4] == b"EUI1"
    assert words[1] == 1
    assert words[2] == len(image)
    assert words[3] == zlib.crc32(image[16:])
    assert words[4:7] == (2, 2, 2)
    assert words[7:15] == (130, 32, 0, 0, 0, 0, 0, 0)
    table = struct.unpack_from("<8I", image, 64)
    for (offset, size), data in zip(
        zip(table[::2], table[1::2], strict=True), (b"abc", bytes(20), b"def", b"\1" * 20), strict=True
    ):
        assert offset % 16 == 0
        assert image[offset : offset + size] == data


def test_an_image_without_inputs_is_complete() -> None:
    image = input_image.encode([[]])
    assert struct.unpack_from("<I", image, 8)[0] == len(image) == 64


def test_more_events_than_counters_are_refused() -> None:
    with pytest.raises(InputError, match="9 PMU events"):
        input_image.encode([[b""]], events=range(9))
