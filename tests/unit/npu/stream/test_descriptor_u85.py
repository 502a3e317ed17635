"""What Ethos-U85's registers say about an operation."""

import numpy as np
import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError
from ethosu_sdk.npu.operation import BlockOp, ElementwiseMode, Lut, Rounding, Scaling, Stream, WeightStreams
from ethosu_sdk.npu.program import segment
from tests.tables import each
from tests.unit.npu.machine import U85_256
from tests.unit.npu.stream.decoded import PER_CHANNEL, block_op, feature_maps, refused
from tests.unit.npu.streams import (
    CONV,
    DEPTHWISE,
    DMA_START,
    ELEMENTWISE,
    GLOBAL_SCALE,
    NATURAL_85,
    NO_STORAGE,
    POOL,
    RESIZE,
    UNSCALED_85,
    Setting,
    precision,
    stream,
)

CONFIGS = {macs: NpuConfig.for_target("ethos-u85", macs) for macs in (128, 256, 512, 1024, 2048)}


def registers(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    """Registers of which every kind of operation can be made."""
    return {
        **feature_maps(8, GLOBAL_SCALE),
        **UNSCALED_85,
        "IFM_BROADCAST": 0,
        "OP_SCALAR": 0,
        **{f"{name}_BASE": 0x40 + 64 * i for i, name in enumerate(WEIGHTS)},
        **{f"{name}_LENGTH": 16 * (i + 1) for i, name in enumerate(WEIGHTS)},
        "SCALE_BASE": 0x1000,
        "SCALE_LENGTH": 160,
        "RESIZE_X": (0, 1),
        "RESIZE_Y": (0, 1),
        **{f"RESIZE_{axis}_{name}": 0 for axis in "XY" for name in ("SCALE_N_M1", "OFFSET")},
        **(changes or {}),
    }


WEIGHTS = ("WEIGHT", "WEIGHT1", "WEIGHT2", "WEIGHT3")
STREAMS = tuple(Stream(0, 0x40 + 64 * i, 16 * (i + 1)) for i in range(4))


def block(changes: dict[str, Setting], opcode: int, mode: int = 0, config: NpuConfig = U85_256) -> BlockOp:
    return block_op(registers(changes), opcode, mode, config)


def test_scalars_must_be_set_and_bit_31_is_not_part_of_a_scale() -> None:
    assert block({"OFM_SCALE": (0x8000_0003, 4)}, POOL).output.scale == 3
    settings = registers({"IFM2_BROADCAST": 8})
    del settings["OP_SCALAR"]
    with pytest.raises(CommandError, match="needs OP_SCALAR"):
        segment(stream((settings, ELEMENTWISE, 1)), U85_256)
    assert segment(stream(({**settings, "IFM2_BROADCAST": 0}, ELEMENTWISE, 1)), U85_256).operations


NO_INPUT_SCALES = {ElementwiseMode.MUL, ElementwiseMode.DIV, ElementwiseMode.LRELU}


@each("mode", [mode for mode in ElementwiseMode if mode not in NO_INPUT_SCALES])
def test_all_other_modes_have_input_scales(mode: ElementwiseMode) -> None:
    op = block({"IFM_SCALE": (9, 3), "IFM2_SCALE": (9, 3)}, ELEMENTWISE, mode.value)
    assert {operand.scaling for operand in op.operands} == {Scaling(9, 3, Rounding.DOUBLE)}


def test_operations_for_one_operand_and_clamps() -> None:
    for mode in ("ABS", "CLZ", "NOT"):
        op = block({}, ELEMENTWISE, ElementwiseMode[mode].value)
        assert (len(op.operands), op.ifm2) == (1, None)
    limits: dict[str, Setting] = {"ACTIVATION_MIN": -5, "ACTIVATION_MAX": 6}
    assert block(limits, POOL).output.clamp == (-5, 6)
    assert block({**limits, "ACTIVATION": 1}, POOL).output.clamp == (0xFFFB, 6)
    assert block({**limits, "ACTIVATION": 1 << 12}, POOL).output.clamp is None
    words: dict[str, Setting] = {**limits, "OFM_PRECISION": precision(32, ofm=True, extra=GLOBAL_SCALE)}
    assert block(words, POOL).output.clamp == (-5, 6)


@each("prefix", ["IFM", "IFM2"])
@each("how", ["broadcast", "storage"])
@each(
    ("kind", "scalar"),
    [
        (precision(8), -2),
        (precision(8, signed=False), 0xFE),
        (precision(16), -0x1102),
        (precision(16, signed=False), 0xEEFE),
        (precision(32), -0x2345_1102),
    ],
)
def test_either_operand_can_be_the_scalar(prefix: str, how: str, kind: int, scalar: int) -> None:
    """The element that the scalar register's low bits are in the operand's type."""
    changes: dict[str, Setting] = {"OP_SCALAR": 0xDCBA_EEFE, f"{prefix}_PRECISION": kind}
    if how == "broadcast":
        changes[f"{prefix}_BROADCAST"] = 8
    else:
        changes[f"{prefix}_PRECISION"] = kind | NO_STORAGE
    values = [operand.scalar for operand in block(changes, ELEMENTWISE, 1).operands]
    assert values == ([scalar, None] if prefix == "IFM" else [None, scalar])


@each(
    ("function", "index", "result", "table_bytes"),
    [
        (1, "<u1", "<u1", 256),
        (4, "<i1", "<i1", 256),
        (5, "<i1", "<i2", 512),
        (7, "<i1", "<i4", 1024),
        (8, "<i2", "<i2", 2048),
        (9, "<i2", "<i4", 2048),
    ],
)
def test_tables_are_numbered_in_their_own_size(
    function: int, index: str, result: str, table_bytes: int
) -> None:
    for table in (0, 1):
        op = block({"ACTIVATION": function | table << 5}, POOL)
        assert op.output.lut == Lut(table * table_bytes, np.dtype(index), np.dtype(result))


@each("macs", CONFIGS)
@each(("number", "height", "width"), [(0, 1, 1), (1, 1, 2), (2, 1, 4), (3, 2, 2), (4, 2, 4), (5, 4, 4)])
def test_micro_blocks(macs: int, number: int, height: int, width: int) -> None:
    """16, 32, 64, 128 and 256 elements for 128 to 2048 MACs."""
    op = block({"ACC_FORMAT": number << 8}, POOL, config=CONFIGS[macs])
    assert op.micro_block == (height, width, macs // 8 // (height * width))


@pytest.mark.parametrize(("macs", "count"), [(128, 1), (256, 1), (512, 2), (1024, 4), (2048, 4)])
def test_every_decoder_core_has_a_weight_stream(macs: int, count: int) -> None:
    op = block({**PER_CHANNEL, "WEIGHT_FORMAT": 0}, DEPTHWISE, config=CONFIGS[macs])
    assert op.weights == WeightStreams(STREAMS[:count])
    # The fast format has one stream, the biases and scales always have.
    fast = block({**PER_CHANNEL, "WEIGHT_FORMAT": 1 | 1 << 4}, CONV, config=CONFIGS[macs])
    assert fast.weights == WeightStreams(STREAMS[:1], fast=True, sparse=True)
    assert fast.scales is not None
    assert len(fast.scales.streams) == 1


TILE_3X1 = 1 << 14  # activation_storage
IDX = 1 << 11  # idx_mode


@each(
    ("name", "setting", "opcode", "mode"),
    [
        *(("OFM_SCALE", (1, n << 13), POOL, 0) for n in (6, 7)),  # rounding modes
        ("OFM_SCALE", (77, 31 << 6), POOL, 0),  # dbl_rnd
        ("IFM_SCALE", (78, 31 << 6), ELEMENTWISE, 1),
        ("IFM2_SCALE", (79, 31 << 6), ELEMENTWISE, 2),
        ("IFM_PRECISION", precision(8, extra=TILE_3X1), ELEMENTWISE, 1),
        ("IFM2_PRECISION", precision(8, extra=TILE_3X1), ELEMENTWISE, 1),
        ("OFM_PRECISION", precision(8, ofm=True, extra=TILE_3X1), ELEMENTWISE, 1),
        *(("OFM_PRECISION", precision(8, ofm=True, extra=n << 11), POOL, 0) for n in (4, 5)),  # transposes
        ("OFM_PRECISION", precision(8, ofm=True, extra=NO_STORAGE), CONV, 0),  # sums that are brought out
        *(("ACC_FORMAT", n, POOL, 0) for n in (2, 6 << 8, 7 << 8)),
        ("ACC_FORMAT", 3 << 4, CONV, 0),
        *(("ACTIVATION", n, POOL, 0) for n in (2, 3, 6, 12, 31)),
        ("OFM_SCALE", (7, 32), RESIZE, 0),
        ("KERNEL_STRIDE", 1 << 5, CONV, 0),
        ("DMA0_SRC_REGION", 3 << 9, DMA_START, 0),
    ],
)
def test_a_setting_that_is_not_executed_is_named(name: str, setting: Setting, opcode: int, mode: int) -> None:
    value = setting if isinstance(setting, int) else setting[0]
    assert refused(registers({name: setting}), opcode, mode, U85_256) == (f"SET_{name}", value)


@pytest.mark.parametrize(
    ("changes", "opcode", "mode", "name", "value"),
    [
        # Sums that are not brought out, to an OFM that is there.
        ({"ACC_FORMAT": 1 << 6, **PER_CHANNEL}, CONV, 0, "SET_OFM_PRECISION", 1),
        ({}, ELEMENTWISE, 12, "NPU_OP_ELEMENTWISE", 12),
        ({}, ELEMENTWISE, 63, "NPU_OP_ELEMENTWISE", 63),
        ({}, RESIZE, 3, "NPU_OP_RESIZE", 3),
        ({"DMA0_SRC_REGION": IDX, "DMA0_DST_REGION": IDX}, DMA_START, 0, "SET_DMA0_DST_REGION", IDX),
    ],
)
def test_what_is_not_executed_is_named(
    changes: dict[str, Setting], opcode: int, mode: int, name: str, value: int
) -> None:
    assert refused(registers(changes), opcode, mode, U85_256) == (name, value)


@each(
    ("missing", "opcode"),
    [
        ("OFM_SCALE", POOL),
        ("ACC_FORMAT", POOL),
        ("IFM_BROADCAST", ELEMENTWISE),
        ("IFM2_BROADCAST", ELEMENTWISE),
        ("RESIZE_X", RESIZE),
        ("RESIZE_Y_OFFSET", RESIZE),
        ("WEIGHT_BASE", CONV),
        ("SCALE_LENGTH", CONV),
    ],
)
def test_registers_that_an_operation_needs_must_be_set(missing: str, opcode: int) -> None:
    settings = registers({**PER_CHANNEL, "OFM_SCALE": (1, 16 | NATURAL_85)})
    del settings[missing]
    with pytest.raises(CommandError, match=f"needs {missing}, which was never set"):
        segment(stream((settings, opcode, 0)), U85_256)
