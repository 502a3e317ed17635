"""Bursts and transactions, worked out by hand."""

from dataclasses import replace

import pytest

from ethosu_sdk.npu import timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, Kind
from ethosu_sdk.npu.timing.systems import Memory
from ethosu_sdk.npu.timing.traffic import Transfer, bursts, has_burst_length, transfers
from ethosu_sdk.npu.timing.units import Stream
from tests.published_systems import system_of
from tests.tables import each
from tests.unit.npu.timing.test_timing import CHANNELS, U85, feature_map, layer

DRAM = system_of("u85-256", "Dedicated").priced
MEMORY = DRAM.arena  # bursts of 128 bytes


def depthwise(depth: int) -> BlockOp:
    return layer(Kind.DEPTHWISE, (16, 16), 3, (16, 16, depth), (1, 2, 16), 1312)


def moved(op: BlockOp, stream: Stream) -> Transfer:
    (found,) = (row for row in transfers(op, U85) if row.stream is stream)
    return found


@each(
    ("beats", "run_bytes", "expected"),
    [
        (100, 0, {8: 12, 4: 1}),  # one piece: 1,600 bytes
        (100, 1600, {8: 12, 4: 1}),
        (100, 16, {1: 100}),
        (100, 20, {2: 50}),  # two beats each
        (9, 32, {2: 4, 1: 1}),
        (80, 160, {8: 8, 2: 8}),  # eight pieces of ten beats
        (3, 4096, {3: 1}),  # shorter than a piece
    ],
)
def test_pieces_are_cut_into_bursts(beats: int, run_bytes: int, expected: dict[int, int]) -> None:
    assert bursts([Transfer(1, Stream.IFM, beats, run_bytes)], MEMORY, U85) == expected


def test_channels_of_a_block_are_pieces_in_a_feature_map_without_bricks() -> None:
    assert moved(depthwise(CHANNELS), Stream.OFM).run_bytes == 16 * CHANNELS
    assert moved(depthwise(32), Stream.OFM).run_bytes == 32
    assert moved(depthwise(32), Stream.IFM).run_bytes == 16  # depthwise reads 16 channels at a time
    bricks = replace(depthwise(32), ofm=replace(feature_map(16, 16), bricks=True))
    assert moved(bricks, Stream.OFM).run_bytes == 16 * 16  # a row of a block, 16 channels of each element


def test_transactions_wait_for_the_latency_as_many_as_are_under_way() -> None:
    """12 writes under way for 125 cycles each: 2,048 of one beat take 21,333 cycles at least.

    Published: the operation takes 30,068 cycles (campaigns/fidelity/data/single_operators.csv).
    """
    (row,) = timing.price([depthwise(16)], U85, DRAM)
    assert row.elapsed > 2048 * 125 / 12
    assert row.elapsed == pytest.approx(30068, rel=0.12)
    whole = replace(depthwise(16), ofm=replace(feature_map(16, 16), bricks=True))
    assert timing.price([whole], U85, DRAM)[0].elapsed < row.elapsed
    # Files that give no number of transactions: Vela takes one.
    single = {name: replace(MEMORY, max_reads=1, max_writes=1) for name in ("arena", "cache")}
    slow = timing.price([depthwise(16)], U85, replace(DRAM, **single))[0].elapsed
    needed = 7.5 * 125 / 128  # bytes per cycle, latency, bytes of a burst
    assert slow == pytest.approx(2048 * 125 / needed, rel=0.3)


def test_bursts_are_sixteen_words_and_not_shorter_than_a_beat() -> None:
    """1,280 bytes of scales are five times 16 words, each of which waits for the latency of 250 cycles."""
    op = layer(Kind.DEPTHWISE, (1, 1), 1, (1, 1, CHANNELS), (1, 2, 16), 160)
    (row,) = timing.price([op], U85, DRAM)
    assert row.elapsed > 5 * 250
    near = replace(DRAM, constants=replace(DRAM.constants, read_latency_cycles=0))
    assert timing.price([op], U85, near)[0].elapsed < row.elapsed - 4 * 250
    byte: Memory = replace(MEMORY, burst_bytes=1)
    assert has_burst_length(MEMORY, U85)
    assert not has_burst_length(byte, U85)
    eight = replace(MEMORY, burst_bytes=8)
    assert has_burst_length(eight, NpuConfig.for_target("ethos-u55", 128))
    assert not has_burst_length(eight, U85)
