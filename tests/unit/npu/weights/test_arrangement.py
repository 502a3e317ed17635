"""The order of weight streams, against walks that are written as plain loops, weight by weight."""

import dataclasses

import numpy as np
import pytest
from ethosu import mlw_codec

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu.weight_order import OrderKey, arrange, stream_sizes
from tests.tables import each
from tests.unit.npu.weights.walks import numbered, streams_of

U55 = OrderKey(
    depth=3,
    height=1,
    width=2,
    ifm_depth=2,
    block_depth=16,
    ofm_micro_depth=8,
    depthwise=False,
    part_kernel_first=False,
    ifm_bits=8,
    dilation_y=1,
    dilation_x=1,
)
U85 = dataclasses.replace(U55, generation="u85", cores=1, macs=128, ofm_micro_depth=16)
CORES = {128: 1, 256: 1, 512: 2, 1024: 4, 2048: 4}


def random_key(seed: int) -> OrderKey:
    """A key of Ethos-U55 and Ethos-U65 (even seeds) or Ethos-U85 (odd ones) that the slow walks can bear.

    Every third has a kernel of several sub-kernels, the others have several IFM blocks.
    """
    generator = np.random.default_rng(seed)

    def among(*choices: int) -> int:
        return int(generator.choice(choices))

    is_u85 = seed % 2 == 1
    kind = among(0, 1, 1, 2, 2)  # depthwise, part-kernel-first, depth-first
    depthwise, part_kernel_first = kind == 0, kind == 1
    macs = among(*CORES) if is_u85 else 0
    cores = CORES[macs] if is_u85 else among(1, 2)
    # Micro-blocks of Ethos-U85 have macs / 8 elements, some of them in height and width.
    micro = max(4 * cores, macs // 8 // among(1, 2, 4)) if is_u85 else among(4, 8) if cores == 1 else 8
    block = micro * among(1, 2) if is_u85 else among(8, 16, 24)
    large = seed % 3 == 0
    side = (7, 8, 9, 10) if large else (1, 2, 3)
    return OrderKey(
        depth=min(140, block * among(1, 2, 3) - among(0, 1, 3)),
        height=among(*side),
        width=among(*side),
        ifm_depth=1 if depthwise else among(1, 7, 8, 9, 17) if large else among(16, 33, 65, 130),
        block_depth=block,
        ofm_micro_depth=micro,
        depthwise=depthwise,
        part_kernel_first=part_kernel_first,
        ifm_bits=among(8, 16, 32) if is_u85 else among(8, 16),
        dilation_y=among(1, 2),
        dilation_x=among(1, 2),
        generation="u85" if is_u85 else "u55",
        cores=cores,
        macs=macs,
        stride_y=among(1, 2, 3) if is_u85 and kind < 2 else 1,
        stride_x=among(1, 2, 3) if is_u85 and kind < 2 else 1,
        fast=is_u85 and kind > 0 and among(0, 0, 1) == 1,
        sparse=is_u85 and kind > 0 and among(0, 0, 1) == 1,
    )


@each("seed", range(108))
def test_streams_come_back_as_the_weights_they_were_made_of(seed: int) -> None:
    key = random_key(seed)
    weights = numbered(key)
    streams = streams_of(key, weights)
    assert tuple(stream.size for stream in streams) == stream_sizes(key, 0)
    np.testing.assert_array_equal(arrange(streams, key, 0), weights)


@each("seed", range(36))
def test_a_weight_in_any_place_of_the_padding_is_an_error(seed: int) -> None:
    key = random_key(seed)
    streams = streams_of(key, numbered(key))
    padding = [
        (number, place) for number, found in enumerate(streams) for place in np.flatnonzero(found == 0)
    ]
    for choice in np.random.default_rng(seed).permutation(len(padding))[:20]:
        number, place = padding[choice]
        streams[number][place] = -1
        with pytest.raises(InputError, match="byte 72 are not in the expected order"):
            arrange(streams, key, 72)
        streams[number][place] = 0


def test_blocks_that_are_no_multiple_of_the_micro_block() -> None:
    """Two cores take four channels each of a block of eight, in steps of eight: they read those of the next block."""
    key = dataclasses.replace(U55, depth=21, block_depth=8, cores=2, ifm_depth=9)
    weights = numbered(key)
    streams = streams_of(key, weights)
    assert sum(stream.size for stream in streams) > 2 * key.depth * key.height * key.width * key.ifm_depth
    np.testing.assert_array_equal(arrange(streams, key, 0), weights)


def places(key: OrderKey, core: int = 0) -> list[int]:
    """For every place of a stream, the number of its weight in (OFM, height, width, IFM), or -1."""
    sizes = stream_sizes(key, 0)
    found = [-1] * sizes[core]
    for place in range(sizes[core]):
        streams = [np.zeros(size, np.int16) for size in sizes]
        streams[core][place] = 1
        try:
            found[place] = int(np.flatnonzero(arrange(streams, key, 0))[0])
        except InputError:
            continue
    return found


def test_a_strided_depthwise_order_of_ethos_u85_by_hand() -> None:
    """One channel of sixteen lanes, 3x3 kernel, stride 2: phase by phase, every second row from right to left."""
    key = dataclasses.replace(
        U85,
        depth=1,
        height=3,
        width=3,
        ifm_depth=1,
        depthwise=True,
        stride_y=2,
        stride_x=2,
        macs=512,
        cores=2,
    )
    stream, other = (places(key, core) for core in (0, 1))
    assert stream[::8] == [0, 2, 8, 6, 1, 7, 3, 5, 4, -1, -1, -1]  # ten steps, and two of padding behind them
    assert set(other) == {-1}


@each("seed", range(24))
def test_streams_of_velas_encoder_come_back(seed: int) -> None:
    """Vela's own order for Ethos-U55 and for a single core of Ethos-U65."""
    generator = np.random.default_rng(seed)
    depthwise = seed % 3 == 2
    key = dataclasses.replace(
        U55,
        depth=int(generator.integers(1, 30)),
        height=int(generator.integers(1, 11)),
        width=int(generator.integers(1, 11)),
        ifm_depth=1 if depthwise else int(generator.integers(1, 40)),
        block_depth=int(generator.choice([8, 16, 32])),
        ofm_micro_depth=4 if seed % 4 == 3 else 8,
        depthwise=depthwise,
        part_kernel_first=seed % 3 == 1,
        ifm_bits=16 if seed % 5 == 4 else 8,
        dilation_y=1 + seed % 2,
        dilation_x=1 + seed // 2 % 2,
    )
    weights = generator.integers(-255, 256, (key.depth, key.height, key.width, key.ifm_depth)).astype(
        np.int16
    )
    weights[generator.random(weights.shape) < 0.3] = 0
    stream, _ = mlw_codec.reorder_encode(
        8,
        key.ofm_micro_depth,
        weights,
        key.block_depth,
        key.depthwise,
        key.part_kernel_first,
        key.ifm_bits,
        8 // key.dilation_y,
        8 // key.dilation_x,
    )
    decoded = np.array(mlw_codec.decode(bytearray(stream)), np.int16)
    np.testing.assert_array_equal(arrange([decoded], key, 0), weights)


@each("change", [-1, 1, 8])
@each("key", [U55, U85])
def test_a_count_that_does_not_fit_is_an_error(key: OrderKey, change: int) -> None:
    (size,) = stream_sizes(key, 72)
    with pytest.raises(
        InputError, match=rf"byte 72 needs {size} weights, but its stream holds {size + change}"
    ):
        arrange([np.zeros(size + change, np.int16)], key, 72)


def test_the_fast_format_may_hold_more_but_not_less() -> None:
    key = dataclasses.replace(U85, fast=True)
    (stream,) = streams_of(key, numbered(key))
    longer = np.concatenate([stream, np.ones(7, np.int16)])
    np.testing.assert_array_equal(arrange([longer], key, 0), numbered(key))
    with pytest.raises(InputError, match=f"its stream holds {stream.size - 1}"):
        arrange([stream[:-1]], key, 0)


def test_streams_that_are_missing_or_empty() -> None:
    key = dataclasses.replace(U85, macs=512, cores=2)
    with pytest.raises(InputError, match="byte 72 needs 2 weight streams, but it has 1"):
        arrange([np.zeros(stream_sizes(key, 0)[0], np.int16)], key, 72)
    key = dataclasses.replace(U55, depth=1, cores=2)
    weights = numbered(key)
    streams = streams_of(key, weights)
    assert stream_sizes(key, 0)[1] == streams[1].size == 0
    np.testing.assert_array_equal(arrange(streams, key, 0), weights)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (dataclasses.replace(U55, block_depth=1, cores=2), "OFM blocks of 1 channels"),
        (dataclasses.replace(U85, ofm_micro_depth=8, cores=4), "in steps of 8, between 4 cores"),
        (dataclasses.replace(U85, depthwise=True, ifm_depth=1, fast=True), "depthwise and has fast weights"),
    ],
    ids=["block", "micro_block", "fast_depthwise"],
)
def test_orders_that_do_not_exist_are_errors(key: OrderKey, message: str) -> None:
    with pytest.raises(InputError, match=message):
        stream_sizes(key, 72)


@pytest.mark.parametrize("key", [U55, U85, dataclasses.replace(U85, fast=True)], ids=["u55", "u85", "fast"])
def test_a_huge_kernel_with_a_short_stream_is_an_error_at_once(key: OrderKey) -> None:
    """Nothing of the size that registers claim is built before the stream is known to have it."""
    huge = dataclasses.replace(key, depth=65536, height=65536, width=65536, ifm_depth=65536, block_depth=1)
    with pytest.raises(InputError, match="its stream holds 4"):
        arrange([np.ones(4, np.int16)], huge, 0)
