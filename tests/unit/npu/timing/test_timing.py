"""Prices of single operations against published runs of Arm's FVP (campaigns/fidelity/data/single_operators.csv).

Blocks and sizes of weights are those that Vela 5.0.0 chooses for these layers; commands are a few beats more.
"""

import time
from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk.npu import timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    FeatureMap,
    Kernel,
    Kind,
    Output,
    Padding,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Shape,
    Stream,
    Wait,
    WeightStreams,
)
from ethosu_sdk.npu.timing.systems import SystemConfig, memory_map
from tests.published_systems import system_of
from tests.unit.npu.operations import operation

U85 = NpuConfig.for_target("ethos-u85", 256)
DRAM = memory_map("ethos-u85", "Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram")
CONSTANTS, ARENA, CACHE = 0, 1, 2
CHANNELS = 128


WITHOUT_LATENCY = system_of("u85-256", "Dedicated", zero_latency=True).priced


def feature_map(height: int, width: int) -> FeatureMap:
    row = width * CHANNELS
    return FeatureMap(
        ARENA,
        (0, 0, 0, 0),
        height,
        height,
        width,
        row,
        CHANNELS,
        1,
        np.dtype("int8"),
        bricks=False,
        zero_point=0,
    )


def layer(
    kind: Kind, size: tuple[int, int], kernel: int, block: Shape, micro: Shape, encoded: int
) -> BlockOp:
    height, width = size
    border = kernel // 2
    by_parts = kind is Kind.CONV and kernel > 1
    return operation(
        kind,
        (height, width, CHANNELS),
        feature_map(height, width),
        feature_map(height, width),
        kernel=Kernel(kernel, kernel, 1, 1, 1, 1, part_kernel_first=by_parts),
        padding=Padding(border, border, border, border),
        weights=WeightStreams((Stream(CONSTANTS, 0, encoded),), fast=by_parts),
        scales=ScaleStreams((Stream(CONSTANTS, 0, 1280),), ScaleFormat.BIAS_32),
        output=Output(True, None, 0, Rounding.DOUBLE, (-128, 127)),
        block=block,
        micro_block=micro,
    )


CONV_1X1 = layer(Kind.CONV, (6, 6), 1, (6, 6, 48), (2, 2, 8), 16400)
SQUARE = layer(Kind.CONV, (6, 6), 3, (6, 6, 48), (2, 2, 8), 163872)
FLAT = layer(Kind.CONV, (12, 3), 3, (12, 4, 32), (1, 4, 8), 163872)
COLUMN = layer(Kind.CONV, (36, 1), 3, (36, 2, 16), (2, 2, 8), 163872)
DEPTHWISE = layer(Kind.DEPTHWISE, (6, 6), 3, (6, 6, 112), (1, 2, 16), 1312)


# Cycles without latency of the memories, cycles from DRAM, and beats that the hardware reads.
@pytest.mark.parametrize(
    ("op", "plain", "from_dram", "read"),
    [
        pytest.param(CONV_1X1, 3645, 5909, 1412, id="1x1"),
        pytest.param(SQUARE, 24731, 30946, 10917, id="6x6"),
        pytest.param(FLAT, 31458, 35394, 11061, id="12x3"),
        pytest.param(COLUMN, 44483, 49370, 11637, id="36x1"),
        pytest.param(DEPTHWISE, 2790, 5507, 468, id="depthwise"),
    ],
)
def test_prices_are_those_of_published_runs(op: BlockOp, plain: int, from_dram: int, read: int) -> None:
    (row,) = timing.price([op], U85, WITHOUT_LATENCY)
    assert row.elapsed == pytest.approx(plain, rel=0.10)
    system = system_of("u85-256", "Dedicated").priced
    (row,) = timing.price([op], U85, system)
    assert timing.started(system) + row.elapsed == pytest.approx(from_dram, rel=0.10)
    (row,) = timing.price([op], U85, DRAM)
    commands = 19  # 300 bytes
    assert beats(row, is_write=False) + commands == pytest.approx(read, abs=1)
    assert beats(row, is_write=True) == 288


def beats(row: timing.Priced, *, is_write: bool) -> int:
    return sum(moved.beats for moved in row.transfers if moved.stream.is_write is is_write)


def test_latency_waits_and_overlap_change_the_price() -> None:
    slow, quick = (timing.price([SQUARE], U85, system)[0].elapsed for system in (DRAM, WITHOUT_LATENCY))
    assert slow > quick
    beside = elapsed(COPY, SQUARE)
    assert max(elapsed(COPY), elapsed(SQUARE)) <= beside < elapsed(COPY) + elapsed(SQUARE)
    assert elapsed(COPY, SQUARE, waits=(Wait(1, "OP_DMA_WAIT", 0),)) > beside
    free = replace(SQUARE, blockdep=3)
    assert elapsed(SQUARE, free) < elapsed(SQUARE, SQUARE) <= 2 * elapsed(SQUARE)


def elapsed(*operations: BlockOp | DmaOp, waits: tuple[Wait, ...] = ()) -> int:
    return timing.price(operations, U85, DRAM, waits)[-1].elapsed


COPY = DmaOp(0, CONSTANTS, 0, CACHE, 0, 16384)


def test_other_families_and_hostile_sizes_are_priced_in_no_time() -> None:
    huge = replace(
        SQUARE,
        shape=(65536, 65536, 128),
        block=(1, 1, 8),
        kernel=replace(SQUARE.kernel, height=65536, width=65536),
    )
    begin = time.process_time()
    elapsed(huge)
    assert time.process_time() - begin < 1
    config = NpuConfig.for_target("ethos-u65", 512)
    system: SystemConfig | None = None
    assert timing.price([COPY], config, system)[0].elapsed > 0
