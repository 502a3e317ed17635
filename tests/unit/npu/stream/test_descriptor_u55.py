"""What Ethos-U55's and Ethos-U65's registers say about an operation: cores, tables, scales, strided DMA."""

import numpy as np
import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    ElementwiseMode,
    Lut,
    PoolMode,
    ScaleFormat,
    ScaleStreams,
    Stream,
    WeightStreams,
)
from ethosu_sdk.npu.program import segment
from tests.tables import each
from tests.unit.npu.machine import U55_128, U65_256, U65_512
from tests.unit.npu.stream.decoded import PER_CHANNEL, block_op, refused, u55
from tests.unit.npu.streams import (
    CONV,
    DEPTHWISE,
    DMA_START,
    ELEMENTWISE,
    GLOBAL_SCALE,
    POOL,
    Setting,
    precision,
    stream,
)

SCALE_A, SCALE_B = 1 << 8, 2 << 8  # IFM_PRECISION.scale_mode
U55_32, U55_64, U55_256 = (NpuConfig.for_target("ethos-u55", macs) for macs in (32, 64, 256))


def block(changes: dict[str, Setting], opcode: int, mode: int = 0, config: NpuConfig = U55_128) -> BlockOp:
    return block_op(u55(changes), opcode, mode, config)


def dma(changes: dict[str, Setting], config: NpuConfig = U65_256) -> DmaOp:
    settings: dict[str, Setting] = {"DMA0_SRC": 0x10, "DMA0_DST": 0x20, "DMA0_LEN": 6, **changes}
    (op,) = segment(stream((settings, DMA_START, 0)), config).operations
    assert isinstance(op, DmaOp)
    return op


SECOND_CORE: dict[str, Setting] = {
    "WEIGHT1_BASE": 0x1_0000_0070,
    "WEIGHT1_LENGTH": 32,
    "SCALE1_BASE": 0xD0,
    "SCALE1_LENGTH": 40,
}


@pytest.mark.parametrize("changes", [{}, {"WEIGHT1_LENGTH": 0, "SCALE1_LENGTH": 0}])
def test_an_empty_second_stream_leaves_one_core(changes: dict[str, Setting]) -> None:
    op = block({**PER_CHANNEL, **changes}, CONV, config=U65_512)
    assert op.weights is not None
    assert op.scales is not None
    assert (len(op.weights.streams), len(op.scales.streams)) == (1, 1)


@pytest.mark.parametrize("config", [U55_32, U55_128, U65_256])
def test_one_core_does_not_read_the_second_streams(config: NpuConfig) -> None:
    op = block({**PER_CHANNEL, **SECOND_CORE}, DEPTHWISE, config=config)
    assert op.weights == WeightStreams((Stream(0, 0x40, 48),))
    assert op.scales == ScaleStreams((Stream(0, 0x90, 50),), ScaleFormat.BIAS_40)


@each(
    ("config", "micro_block", "lut"),
    [
        (U55_32, (1, 1, 4), 14336),
        (U55_64, (1, 1, 8), 14336),
        (U55_128, (1, 2, 8), 22528),
        (U55_256, (2, 2, 8), 47104),
        (U65_256, (2, 2, 8), 47104),
        (U65_512, (2, 2, 8), 47104),  # of one core
    ],
)
@each("slot", [0, 7])
def test_micro_blocks_and_tables(
    config: NpuConfig, micro_block: tuple[int, int, int], lut: int, slot: int
) -> None:
    op = block({"ACTIVATION": 16 + slot}, POOL, config=config)
    assert op.micro_block == micro_block
    assert op.output.lut == Lut(lut + 256 * slot, np.dtype("<i1"), np.dtype("<i1"))


@pytest.mark.parametrize(
    ("ofm_precision", "index", "result"),
    [
        (precision(8, ofm=True), "<i1", "<i1"),
        (precision(8, signed=False, ofm=True), "<u1", "<u1"),
        (precision(16, ofm=True), "<i2", "<i2"),
        (precision(32, ofm=True), "<i1", "<i4"),  # indexed as if the OFM had 8 bits
    ],
)
def test_tables_follow_the_ofm(ofm_precision: int, index: str, result: str) -> None:
    op = block({"OFM_PRECISION": ofm_precision | GLOBAL_SCALE, "ACTIVATION": 18}, POOL)
    assert op.output.lut == Lut(22528 + 512, np.dtype(index), np.dtype(result))


def test_scalars_are_signed_as_the_second_operand_is() -> None:
    constant: dict[str, Setting] = {"IFM2_BROADCAST": 1 << 7, "IFM2_SCALAR": 0xFFFE}
    assert block(constant, ELEMENTWISE).operands[1].scalar == -2
    unsigned: dict[str, Setting] = {**constant, "IFM2_PRECISION": precision(8, signed=False)}
    assert block(unsigned, ELEMENTWISE).operands[1].scalar == 0xFFFE


@pytest.mark.parametrize("side", ["TOP", "LEFT", "BOTTOM", "RIGHT"])
def test_averages_divide_where_there_is_padding(side: str) -> None:
    kernel: dict[str, Setting] = {"KERNEL_HEIGHT_M1": 1, "KERNEL_WIDTH_M1": 1}
    assert not block(kernel, POOL, PoolMode.AVERAGE.value).divides
    assert block({**kernel, f"IFM_PAD_{side}": 1}, POOL, PoolMode.AVERAGE.value).divides
    assert not block({**kernel, f"IFM_PAD_{side}": 1}, POOL, PoolMode.MAX.value).divides


@pytest.mark.parametrize(("number", "bits"), [(0, 32), (1, 40)])
def test_accumulators(number: int, bits: int) -> None:
    op = block({"ACC_FORMAT": number}, POOL)
    assert (op.accumulator_bits, op.accumulates) == (bits, False)
    # Elementwise operations do not read the register.
    assert block({"ACC_FORMAT": 3}, ELEMENTWISE).accumulator_bits == 32


PLANES: dict[str, Setting] = {
    "DMA0_DST_REGION": 2 << 9,
    "DMA0_SIZE0": 3,
    "DMA0_SIZE1": 4,
    "DMA0_SKIP0": 0,
    "DMA0_SKIP1": 100,
}


def test_planes_whose_rows_have_gaps_are_refused() -> None:
    with pytest.raises(UnsupportedCommand, match="SET_DMA0_SKIP0 = 0xa"):
        dma({**PLANES, "DMA0_SKIP0": 10})


@pytest.mark.parametrize("missing", ["DMA0_SIZE0", "DMA0_SIZE1", "DMA0_SKIP0", "DMA0_SKIP1"])
def test_strided_copies_need_their_registers(missing: str) -> None:
    with pytest.raises(CommandError, match=missing):
        dma({name: value for name, value in PLANES.items() if name != missing})


@each(
    ("changes", "opcode", "mode", "config", "name", "value"),
    [
        # Shapes of copies that Ethos-U55 or nobody has.
        ({"DMA0_DST_REGION": 1 << 9}, DMA_START, 0, U55_128, "SET_DMA0_DST_REGION", 1 << 9),
        ({"DMA0_DST_REGION": 2 << 9}, DMA_START, 0, U55_256, "SET_DMA0_DST_REGION", 2 << 9),
        ({"DMA0_DST_REGION": 3 << 9}, DMA_START, 0, U65_512, "SET_DMA0_DST_REGION", 3 << 9),
        ({"DMA0_SRC_REGION": 1 << 9}, DMA_START, 0, U65_512, "SET_DMA0_SRC_REGION", 1 << 9),
        # The operand without the wide scale has another scale than the one that is shifted in.
        (
            {"IFM_PRECISION": precision(8, extra=SCALE_A), "OPA_SCALE": (1 << 30, 31), "OPB_SCALE": (5, 0)},
            ELEMENTWISE,
            1,
            U55_128,
            "SET_OPB_SCALE",
            5,
        ),
        ({"IFM_PRECISION": precision(8, extra=3 << 8)}, ELEMENTWISE, 2, U55_128, "SET_IFM_PRECISION", 0x301),
        # Modes of Ethos-U85.
        ({}, ELEMENTWISE, ElementwiseMode.LSR.value, U65_256, "NPU_OP_ELEMENTWISE", 10),
        ({}, ELEMENTWISE, ElementwiseMode.GT.value, U55_128, "NPU_OP_ELEMENTWISE", 19),
        ({}, POOL, PoolMode.SUM.value, U65_512, "NPU_OP_POOL", 3),
        ({}, POOL, PoolMode.MIN.value, U55_128, "NPU_OP_POOL", 5),
        ({"ACC_FORMAT": 2}, CONV, 0, U65_512, "SET_ACC_FORMAT", 2),
        ({"ACTIVATION": 3}, CONV, 0, U65_512, "SET_ACTIVATION", 3),
    ],
)
def test_what_is_not_executed_is_named(
    changes: dict[str, Setting], opcode: int, mode: int, config: NpuConfig, name: str, value: int
) -> None:
    assert refused(u55(changes), opcode, mode, config) == (name, value)
