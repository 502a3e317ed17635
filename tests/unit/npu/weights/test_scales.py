"""Biases and scales: ten bytes per OFM channel."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.npu.operation import ScaleFormat
from ethosu_sdk.npu.weight_cache import channel_counts, scale_bytes, unpack_scales

Row = tuple[int, int, int]  # bias, scale, shift

ROWS: dict[ScaleFormat, list[Row]] = {
    ScaleFormat.BIAS_40: [
        (0, 0, 0),
        (-1, 1, 63),
        (-(1 << 39), 0xFFFF_FFFF, 31),
        ((1 << 39) - 1, 0x8000_0000, 32),
        (-12345, 7, 1),
    ],
    ScaleFormat.BIAS_32: [
        (0, 0, 0),
        (-1, 1, 63),
        (-(1 << 31), 0x7FFF_FFFF, 31),
        ((1 << 31) - 1, 0x4000_0000, 32),
        (-12345, 7, 1),
    ],
    ScaleFormat.BIAS_48: [
        (0, 0, 0),
        (-1, 1, 63),
        (-(1 << 47), 0x7FFF, 31),
        ((1 << 47) - 1, 0x4000, 32),
        (-12345, 7, 1),
    ],
}
# Bytes of bias and scale; with the shift they are nine or ten.
BYTES = {ScaleFormat.BIAS_40: (5, 4), ScaleFormat.BIAS_32: (4, 4), ScaleFormat.BIAS_48: (6, 2)}


def entry(form: ScaleFormat, row: Row) -> bytes:
    bias_bytes, scale_bytes_ = BYTES[form]
    bias, scale, shift = row
    data = bias.to_bytes(bias_bytes, "little", signed=True) + scale.to_bytes(scale_bytes_, "little")
    return (data + bytes([shift])).ljust(10, b"\0")


def stream(form: ScaleFormat, rows: list[Row]) -> NDArray[np.uint8]:
    """The entries of `rows`, and padding that must not be read."""
    return np.frombuffer(b"".join(entry(form, row) for row in rows) + b"\xff" * 6, np.uint8)


@pytest.mark.parametrize("form", ScaleFormat)
def test_entries_of_every_format(form: ScaleFormat) -> None:
    rows = ROWS[form]
    found = unpack_scales([stream(form, rows)], form, len(rows))
    assert list(zip(found.bias, found.scale, found.shift, strict=True)) == rows
    assert {array.dtype.name for array in (found.bias, found.scale, found.shift)} == {"int64"}


@pytest.mark.parametrize("depth", [1, 2, 4, 5])
def test_two_streams_take_turns(depth: int) -> None:
    rows = ROWS[ScaleFormat.BIAS_40][:depth]
    streams = [stream(ScaleFormat.BIAS_40, rows[0::2]), stream(ScaleFormat.BIAS_40, rows[1::2])]
    found = unpack_scales(streams, ScaleFormat.BIAS_40, depth)
    assert list(zip(found.bias, found.scale, found.shift, strict=True)) == rows


def test_how_much_of_each_stream_is_read() -> None:
    assert channel_counts(5, 1) == (5,)
    assert channel_counts(5, 2) == (3, 2)
    assert channel_counts(1, 2) == (1, 0)
    assert scale_bytes(5, 2) == (30, 20)


@pytest.mark.parametrize("form", ScaleFormat)
def test_bits_beside_the_fields_are_ignored(form: ScaleFormat) -> None:
    bias_bytes, scale_bytes_ = BYTES[form]
    data = bytearray(entry(form, (-5, 6, 7)))
    data[bias_bytes + scale_bytes_] |= 0xC0
    if form is not ScaleFormat.BIAS_40:
        data[bias_bytes + scale_bytes_ - 1] |= 0x80
        data[9] = 0xFF
    found = unpack_scales([np.frombuffer(bytes(data), np.uint8)], form, 1)
    assert (found.bias[0], found.scale[0], found.shift[0]) == (-5, 6, 7)
