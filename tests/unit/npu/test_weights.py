"""Weight order, scales, and weight streams that lie. Vela's own encoder says what the order is."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from ethosu import mlw_codec
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ethosu_sdk.errors import InputError
from ethosu_sdk.npu import weight_stream
from ethosu_sdk.npu.errors import WeightStreamError
from ethosu_sdk.npu.weights import OrderKey, arrange, unpack_scales, weight_order


def key(
    shape: tuple[int, int, int, int],
    block_depth: int = 16,
    part_kernel_first: bool = False,
    depthwise: bool = False,
    ofm_micro_depth: int = 8,
    ifm_bits: int = 8,
    dilation: tuple[int, int] = (1, 1),
) -> OrderKey:
    depth, height, width, ifm_depth = shape
    return OrderKey(
        depth,
        height,
        width,
        ifm_depth,
        block_depth,
        ofm_micro_depth,
        depthwise,
        part_kernel_first,
        ifm_bits,
        *dilation,
    )


def encoded_by_vela(weights: NDArray[np.int64], order: OrderKey) -> bytes:
    stream, _ = mlw_codec.reorder_encode(
        8,
        order.ofm_micro_depth,
        weights.astype(np.int16),
        order.block_depth,
        order.depthwise,
        order.part_kernel_first,
        order.ifm_bits,
        8 // order.dilation_y,
        8 // order.dilation_x,
    )
    return bytes(stream)


@st.composite
def orders(draw: st.DrawFn) -> OrderKey:
    depthwise = draw(st.booleans())
    return key(
        (
            draw(st.integers(1, 40)),
            draw(st.integers(1, 11)),
            draw(st.integers(1, 11)),
            1 if depthwise else draw(st.integers(1, 45)),
        ),
        draw(st.sampled_from([8, 16, 24, 32, 128])),
        not depthwise and draw(st.booleans()),
        depthwise,
        draw(st.sampled_from([4, 8])),
        draw(st.sampled_from([8, 16])),
        draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)])),
    )


@settings(max_examples=60)
@given(orders())
def test_every_weight_stands_once_in_the_order(order: OrderKey) -> None:
    places = weight_order(order)
    count = order.depth * order.height * order.width * order.ifm_depth
    assert sorted(places[places >= 0].tolist()) == list(range(count))
    assert set(places[places < 0].tolist()) <= {-1}


def test_a_small_order_by_hand() -> None:
    """Three OFM channels, 1x2 kernel, two IFM channels, micro-blocks of 4 and 8."""
    places = weight_order(key((3, 1, 2, 2), part_kernel_first=True, ofm_micro_depth=4)).tolist()
    lanes = [
        # kernel element 0: OFM channel 0, 1, 2 and one that does not exist; two IFM channels of eight
        [0, 1, *[-1] * 6],
        [4, 5, *[-1] * 6],
        [8, 9, *[-1] * 6],
        [-1] * 8,
        # kernel element 1
        [2, 3, *[-1] * 6],
        [6, 7, *[-1] * 6],
        [10, 11, *[-1] * 6],
        [-1] * 8,
        # part-kernel-first steps take four kernel elements
        *[[-1] * 8] * 8,
    ]
    assert places == [place for lane in lanes for place in lane]


def test_a_small_depthwise_order_by_hand() -> None:
    places = weight_order(key((2, 1, 3, 1), depthwise=True, ofm_micro_depth=4)).tolist()
    assert places == [0, 3, -1, -1, 1, 4, -1, -1, 2, 5, -1, -1, *[-1] * 4]


def test_depth_first_covers_the_whole_ifm_block() -> None:
    """33 channels: a block of 32 and, for the last one, 32 places more."""
    places = weight_order(key((1, 1, 1, 33), ofm_micro_depth=4))
    assert places.size == 2 * 32 * 4
    assert places[:8].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert places[32:40].tolist() == [8, 9, 10, 11, 12, 13, 14, 15]
    assert places[128:136].tolist() == [32, *[-1] * 7]


@pytest.mark.parametrize("seed", range(24))
def test_streams_of_velas_encoder_come_back(seed: int) -> None:
    generator = np.random.default_rng(seed)
    depthwise = seed % 3 == 2
    order = key(
        (
            int(generator.integers(1, 30)),
            int(generator.integers(1, 11)),
            int(generator.integers(1, 11)),
            1 if depthwise else int(generator.integers(1, 40)),
        ),
        int(generator.choice([8, 16, 32])),
        seed % 3 == 1,
        depthwise,
        4 if seed % 4 == 3 else 8,
        16 if seed % 5 == 4 else 8,
        (1 + seed % 2, 1 + seed // 2 % 2),
    )
    weights = generator.integers(-255, 256, (order.depth, order.height, order.width, order.ifm_depth))
    weights[generator.random(weights.shape) < 0.3] = 0
    (decoded,) = weight_stream.decode([encoded_by_vela(weights, order)])
    np.testing.assert_array_equal(arrange(decoded, order, 0), weights)


def test_several_streams_share_one_trip() -> None:
    lists = [[1, -2, 3], [], [0] * 300, [255, -255]]
    streams = [bytes(mlw_codec.encode(values)) if values else b"" for values in lists]
    assert [found.tolist() for found in weight_stream.decode(streams)] == lists
    assert weight_stream.decode([]) == []


@pytest.mark.parametrize("change", [-1, 1, 8])
def test_a_count_that_does_not_fit_is_an_error(change: int) -> None:
    order = key((3, 1, 2, 2))
    size = weight_order(order).size
    with pytest.raises(InputError, match=rf"byte 72 needs {size} weights, its stream holds {size + change}"):
        arrange(np.zeros(size + change, np.int16), order, 72)


def test_a_weight_in_the_padding_is_an_error() -> None:
    order = key((3, 1, 2, 2))
    places = weight_order(order)
    stream = np.ones(places.size, np.int16)
    stream[places < 0] = 0
    assert (arrange(stream, order, 0) == 1).all()
    stream[np.flatnonzero(places < 0)[-1]] = 1
    with pytest.raises(InputError, match="byte 72 are not in the expected order"):
        arrange(stream, order, 72)


def test_a_huge_kernel_with_a_short_stream_is_an_error_at_once() -> None:
    """Nothing of the size that registers claim is built before the stream is known to have it."""
    with pytest.raises(InputError, match="its stream holds 4"):
        arrange(np.ones(4, np.int16), key((65536, 65536, 65536, 65536), block_depth=1), 0)


GOOD = bytes(mlw_codec.encode(list(range(-100, 100))))


@pytest.mark.parametrize(
    "stream",
    [GOOD[: len(GOOD) // 2], GOOD[:1], bytes(range(1, 255)), bytes(64)],
    ids=["half", "one_byte", "counting", "zeros"],
)
def test_damaged_streams_are_errors_of_the_stream(stream: bytes) -> None:
    """Vela's decoder ends its process on these: this process lives on."""
    with pytest.raises(WeightStreamError, match="weight stream 1 of 2 is damaged"):
        weight_stream.decode([GOOD, stream])
    assert weight_stream.decode([GOOD])[0].tolist() == list(range(-100, 100))


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=1, max_size=64))
def test_any_bytes_decode_or_are_refused(stream: bytes) -> None:
    try:
        (found,) = weight_stream.decode([stream])
    except WeightStreamError:
        return
    assert found.dtype == np.int16


def scale_entry(bias: int, scale: int, shift: int) -> bytes:
    return (bias & (1 << 40) - 1).to_bytes(5, "little") + struct.pack("<IB", scale, shift)


def test_scales_are_ten_bytes_per_channel() -> None:
    rows = [
        (0, 0, 0),
        (-1, 1, 63),
        (-(1 << 39), 0xFFFF_FFFF, 31),
        ((1 << 39) - 1, 0x8000_0000, 32),
        (-12345, 7, 1),
    ]
    data = b"".join(scale_entry(*row) for row in rows)
    found = unpack_scales(np.frombuffer(data + b"\xff" * 10, np.uint8), len(rows))
    assert list(zip(found.bias, found.scale, found.shift, strict=True)) == rows


def test_the_top_bits_of_a_shift_are_not_part_of_it() -> None:
    data = np.frombuffer(scale_entry(1, 2, 0xC5), np.uint8)
    assert unpack_scales(data, 1).shift.tolist() == [5]
