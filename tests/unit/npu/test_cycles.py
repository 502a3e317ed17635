"""The cycle estimate of single operations. Expected figures are Vela's own for such layers, or worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk.npu import cycles
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_geometry import volume
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kernel,
    Kind,
    Lut,
    Operand,
    Output,
    Padding,
    PoolMode,
    ResizeAxis,
    ResizeMode,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Shape,
    Stream,
    WeightStreams,
)
from ethosu_sdk.npu.performance_tables import IFM_UNITS
from ethosu_sdk.npu.system_config import default_for, memory_map

U55 = NpuConfig.for_target("ethos-u55", 128)
U85 = NpuConfig.for_target("ethos-u85", 256)
U85_SRAM = memory_map("ethos-u85", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only")
POINT = Kernel(1, 1, 1, 1, 1, 1, part_kernel_first=False)
NOTHING = Padding(0, 0, 0, 0)
WHOLE_RANGE = Output(True, None, 0, Rounding.DOUBLE, (-128, 127))
CONSTANTS, ARENA = 0, 1


def feature_map(
    shape: Shape, *, bricks: bool = False, dtype: str = "int8", chain: int | None = None, base: int = 0
) -> FeatureMap:
    height, width, depth = shape
    size = np.dtype(dtype).itemsize
    strides = (16 * width * -(-depth // 16), 16, 16 * width) if bricks else (width * depth, depth, 1)
    row, column, channel = (size * stride for stride in strides)
    bases = (base, 0, 0, 0)
    return FeatureMap(
        ARENA, bases, height, height, width, row, column, channel, np.dtype(dtype), bricks, 0, chain
    )


def operation(kind: Kind, shape: Shape, ifm: FeatureMap, ofm: FeatureMap, block: Shape) -> BlockOp:
    return BlockOp(
        offset=0,
        kind=kind,
        mode=None,
        shape=shape,
        ifm=ifm,
        ifm_depth=16,
        ofm=ofm,
        kernel=POINT,
        padding=NOTHING,
        upscale=0,
        weights=None,
        scales=None,
        output=WHOLE_RANGE,
        operands=(),
        ifm2=None,
        accumulates=False,
        divides=False,
        resize=None,
        block=block,
        micro_block=(1, 2, 8),
        accumulator_bits=32,
        blockdep=0,
    )


def convolution(depth: int = 48, *, base: int = 0) -> BlockOp:
    """16 to `depth` channels on 14x14, as Vela compiles it for Ethos-U55-128."""
    shape = (14, 14, depth)
    ofm = replace(feature_map((14, 14, 48), bricks=True), bases=(base, 0, 0, 0))
    return replace(
        operation(Kind.CONV, shape, feature_map((14, 14, 16)), ofm, (8, 14, 16)),
        weights=WeightStreams((Stream(CONSTANTS, 0, 976),)),
        scales=ScaleStreams((Stream(CONSTANTS, 976, 480),), ScaleFormat.BIAS_40),
    )


def addition(*, scalar: int | None = None, dtype: str = "int8") -> BlockOp:
    values = feature_map((14, 14, 16), bricks=True, dtype=dtype)
    op = operation(Kind.ELEMENTWISE, (14, 14, 16), values, values, (14, 14, 16))
    return replace(op, mode=ElementwiseMode.ADD, operands=(Operand(values), Operand(values, scalar=scalar)))


def estimates(*operations: BlockOp | DmaOp, config: NpuConfig = U55) -> Sequence[cycles.Estimate]:
    """In SRAM alone on Ethos-U85, so that memory does not hide what is looked for."""
    return cycles.estimates(operations, config, U85_SRAM if config is U85 else None)


def test_a_convolution_costs_what_vela_says() -> None:
    found = cycles.estimate(convolution(), U55)
    assert (found.npu_cycles, found.macs) == (10480, 150528)
    # Vela: 2520 of SRAM, of which 10752 bytes of IFM and 9408 of OFM at 8 per cycle; 2912 of flash, two fetches of
    # 976 bytes of weights and 480 of scales at 1 per cycle.
    assert (found.transfer_cycles, found.total_cycles) == (2912, 10480)
    assert found.weight_decode_cycles == 976 + 64
    # 8 by 7 micro-blocks of 8 channels in 2 steps of depth: 4 cycles each, for 5.25 blocks' worth.
    assert found.mac_cycles == 4 * 8 * 7 * 2 * 5.25
    assert found.output_cycles == 14 * 14 * 48


def small_convolution(
    ifm: FeatureMap, ofm: FeatureMap, shape: Shape, depth: int, block: Shape, kernel: Kernel
) -> BlockOp:
    op = replace(operation(Kind.CONV, shape, ifm, ofm, block), ifm_depth=depth, kernel=kernel)
    weights = WeightStreams((Stream(CONSTANTS, 0, 496),))
    return replace(
        op, weights=weights, scales=ScaleStreams((Stream(CONSTANTS, 496, 128),), ScaleFormat.BIAS_40)
    )


@pytest.mark.parametrize(
    ("target", "op", "expected"),
    [
        (
            ("ethos-u55", 256),
            replace(
                small_convolution(
                    feature_map((1, 40, 6)),
                    feature_map((1, 40, 12)),
                    (1, 40, 12),
                    6,
                    (2, 40, 16),
                    replace(POINT, width=5, part_kernel_first=True),
                ),
                padding=Padding(0, 2, 0, 2),
                micro_block=(2, 2, 8),
            ),
            944,
        ),
        (
            ("ethos-u55", 32),
            replace(
                small_convolution(
                    feature_map((1, 5, 37), dtype="int16"),
                    feature_map((1, 5, 21), dtype="int16"),
                    (1, 5, 21),
                    37,
                    (1, 5, 16),
                    POINT,
                ),
                output=replace(WHOLE_RANGE, clamp=(-(2**15), 2**15 - 1)),
                accumulator_bits=40,
                micro_block=(1, 1, 4),
            ),
            830,
        ),
        (
            ("ethos-u55", 128),
            replace(
                small_convolution(
                    feature_map((1, 2, 12), dtype="int16"),
                    feature_map((1, 2, 48), dtype="int16", bricks=True),
                    (1, 2, 48),
                    12,
                    (1, 2, 48),
                    POINT,
                ),
                output=replace(WHOLE_RANGE, clamp=(-(2**15), 2**15 - 1)),
                accumulator_bits=40,
            ),
            408,
        ),
    ],
    ids=[
        "one row: micro-blocks of four columns",
        "40-bit accumulators of the smallest",
        "12 channels of 16 bits",
    ],
)
def test_rare_cases_cost_what_vela_says(target: tuple[str, int], op: BlockOp, expected: int) -> None:
    assert cycles.estimate(op, NpuConfig.for_target(*target)).npu_cycles == expected


def test_parts_of_a_layer_cost_together_what_the_layer_costs() -> None:
    whole = cycles.estimate(convolution(), U55)
    first = convolution(32)
    second = convolution(16, base=2 * 16 * 14)  # two bricks further on
    copy = DmaOp(0, CONSTANTS, 0, ARENA, 0, 500)
    parts = estimates(first, copy, second)
    assert parts[0].npu_cycles + parts[2].npu_cycles == whole.npu_cycles
    assert parts[0].mac_cycles + parts[2].mac_cycles == whole.mac_cycles
    assert sum(cycles.estimate(op, U55).npu_cycles for op in (first, second)) > whole.npu_cycles


@pytest.mark.parametrize(
    "second",
    [
        convolution(16, base=4096),
        replace(convolution(16, base=448), ifm=feature_map((14, 14, 16), base=64)),
        replace(convolution(16, base=448), block=(8, 14, 8)),
        replace(convolution(16, base=448), kernel=replace(POINT, dilation_x=2)),
    ],
    ids=["elsewhere", "of another IFM", "in other blocks", "with another kernel"],
)
def test_layers_that_follow_each_other_are_not_parts_of_one(second: BlockOp) -> None:
    alone = cycles.estimate(second, U55)
    assert estimates(convolution(32), second)[1] == alone


def test_an_addition_costs_what_vela_says() -> None:
    found = cycles.estimate(addition(), U55)
    assert (found.npu_cycles, found.mac_cycles, found.macs) == (4704, 0, 0)
    assert found.transfer_cycles == 3 * 14 * 14 * 16 // 8


def test_a_scalar_is_not_read() -> None:
    assert cycles.estimate(addition(scalar=3), U55).transfer_cycles == 2 * 14 * 14 * 16 // 8


def test_cycles_do_not_fall_below_the_floor_unless_a_clamp_is_fused() -> None:
    def pooled(output: Output, size: int = 2) -> int:
        kernel = replace(POINT, height=size, width=size)
        values = feature_map((14, 14, 16))
        op = operation(Kind.POOL, (14, 14, 16), values, values, (14, 14, 16))
        op = replace(op, mode=PoolMode.MAX, kernel=kernel, output=output)
        return cycles.estimate(op, U55).output_cycles

    whole = replace(WHOLE_RANGE, scale=1)
    table = Lut(0, np.dtype("int8"), np.dtype("int8"))
    assert pooled(whole) == 14 * 14 * 16
    assert pooled(replace(whole, clamp=(0, 127))) == 14 * 14 * 16 / 4
    assert pooled(replace(whole, clamp=(0, 127), lut=table)) == 14 * 14 * 16
    assert pooled(replace(whole, clamp=(0, 127)), size=1) == 14 * 14 * 16


def test_a_chain_costs_what_its_first_operation_waits_for() -> None:
    head = replace(convolution(), micro_block=(1, 2, 16), ofm=feature_map((14, 14, 48), bricks=True, chain=0))
    last = replace(addition(), shape=head.shape, ofm=feature_map((14, 14, 48), bricks=True), ifm=head.ofm)
    last = replace(last, operands=(Operand(head.ofm), Operand(last.ofm)))
    alone = estimates(head, config=U85)[0]
    chain = estimates(head, last, config=U85)
    assert chain[0].output_cycles == 2 * alone.output_cycles
    # The chained sum brings a second operand and writes the OFM.
    assert chain[0].transfer_cycles > alone.transfer_cycles
    assert (chain[1].total_cycles, chain[1].npu_cycles) == (0, 0)
    assert estimates(head, last, last, config=U85)[2].total_cycles > 0


def test_resize_costs_its_transfers_alone() -> None:
    axis = ResizeAxis(1, 0, 2)
    op = operation(Kind.RESIZE, (14, 14, 16), feature_map((7, 7, 16)), feature_map((14, 14, 16)), (1, 14, 16))
    kernel = replace(POINT, height=7, width=7)
    found = cycles.estimate(
        replace(op, mode=ResizeMode.BILINEAR, resize=(axis, axis), kernel=kernel), U85, U85_SRAM
    )
    assert (found.npu_cycles, found.mac_cycles, found.macs) == (0, 0, 0)
    # The 3136 bytes of OFM: two ports with 8 bursts of 64 bytes each under way, which take 32 cycles, four fifths of
    # that and of the time.
    assert found.total_cycles == found.transfer_cycles == int(3136 / (2 * 8 * 0.8 * 64 / 32 * 0.8))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (DmaOp(0, CONSTANTS, 0, ARENA, 0, 1000), 1064),  # flash: 1 byte per cycle, 64 of latency
        (DmaOp(0, ARENA, 0, ARENA, 0, 1000), 157),  # SRAM: 8 bytes per cycle, 32 of latency
        (DmaOp(0, CONSTANTS, 0, None, 0, 256), 320),
        (DmaOp(0, ARENA, 0, ARENA, 0, 100, counts=(2, 5)), 157),
    ],
)
def test_a_dma_takes_as_long_as_its_slower_side(op: DmaOp, expected: int) -> None:
    found = cycles.estimate(op, U55)
    assert (found.total_cycles, found.npu_cycles) == (expected, 0)


def test_the_system_matters() -> None:
    slow = memory_map("ethos-u55", "Ethos_U55_Deep_Embedded", "Shared_Sram")
    copy = DmaOp(0, CONSTANTS, 0, ARENA, 0, 1000)
    assert cycles.estimate(copy, U55, slow).total_cycles == 2064
    assert cycles.estimate(copy, U55, default_for("ethos-u55")) == cycles.estimate(copy, U55)


def test_micro_blocks_that_vela_never_chooses_have_an_estimate() -> None:
    assert cycles.estimate(replace(convolution(), micro_block=(1, 1, 32)), U85).npu_cycles > 0


@pytest.mark.parametrize("micro_block", IFM_UNITS, ids=str)
def test_units_of_the_ifm_memory_hold_the_same_in_each_shape(micro_block: Shape) -> None:
    macs = 8 * volume(micro_block)
    assert {volume(unit) for unit in IFM_UNITS[micro_block]} == {
        {128: 2, 256: 4, 512: 4, 1024: 8, 2048: 16}[macs]
    }
