"""Registers and the operations that are made of them: what persists, what must be set, what is refused by name."""

from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu.errors import CommandError
from ethosu_sdk.npu.operation import (
    BlockOp,
    ElementwiseMode,
    Kernel,
    Kind,
    Lut,
    Padding,
    PoolMode,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Stream,
    WeightStreams,
)
from ethosu_sdk.npu.program import segment
from tests.tables import each
from tests.unit.npu.machine import U55_128
from tests.unit.npu.stream.decoded import PER_CHANNEL, SHAPE, block_op, refused, u55
from tests.unit.npu.streams import (
    BRICKS,
    CONV,
    ELEMENTWISE,
    GLOBAL_SCALE,
    POOL,
    STOP,
    Setting,
    one,
    precision,
    setting,
    stream,
)


def block(registers: dict[str, Setting], opcode: int, mode: int = 0) -> BlockOp:
    return block_op(registers, opcode, mode, U55_128)


def test_a_pool_with_every_register() -> None:
    op = block(
        u55(
            {
                "IFM_PRECISION": precision(16, extra=BRICKS),
                "IFM_REGION": 3,
                "IFM_BASE0": 0x12_3456_7890,
                "IFM_BASE3": -16,
                "IFM_STRIDE_Y": -64,
                "IFM_STRIDE_C": 1 << 38,
                "IFM_HEIGHT1_M1": 1,
                "IFM_ZERO_POINT": -7,
                "OFM_ZERO_POINT": 9,
                "KERNEL_HEIGHT_M1": 4,
                "KERNEL_WIDTH_M1": 1,
                "KERNEL_STRIDE": 1 << 9 | 1 << 6 | 1 << 1,
                "IFM_PAD_TOP": 1,
                "IFM_PAD_LEFT": 0,
                "IFM_PAD_RIGHT": 1,
                "IFM_PAD_BOTTOM": 3,
                "IFM_UPSCALE": 1,
                "ACTIVATION": 18,
                "ACTIVATION_MIN": -5,
                "ACTIVATION_MAX": 6,
                "OFM_SCALE": (0xFFFF_FFFF, 63),
                "ACC_FORMAT": 1,
                "OFM_BLK_HEIGHT_M1": 7,
                "OFM_BLK_WIDTH_M1": 3,
                "OFM_BLK_DEPTH_M1": 31,
            }
        ),
        POOL,
        1,
    )
    assert (op.name, op.kind, op.mode) == ("POOL_AVERAGE", Kind.POOL, PoolMode.AVERAGE)
    assert (op.shape, op.block, op.accumulator_bits, op.upscale) == (SHAPE, (8, 4, 32), 40, 1)
    ifm = op.ifm
    assert (ifm.region, ifm.bases) == (3, (0x12_3456_7890, 0, 0, -16))
    assert (ifm.stride_y, ifm.stride_c, ifm.stride_x) == (-64, 1 << 38, 5)
    assert (ifm.height0, ifm.height1, ifm.width0) == (3, 2, 4)
    assert (ifm.dtype.str, ifm.bricks, ifm.zero_point) == ("<i2", True, -7)
    assert (op.ofm.dtype.str, op.ofm.bricks, op.ofm.zero_point, op.ofm.bases[0]) == ("|i1", False, 9, 0x200)
    assert op.kernel == Kernel(5, 2, 4, 3, 1, 1, False)
    assert op.padding == Padding(1, 0, 3, 1)
    assert (op.output.scale, op.output.shift, op.output.rounding) == (0xFFFF_FFFF, 63, Rounding.NATURAL)
    assert (op.output.clamp, op.output.scaled) == ((-5, 6), True)
    # 24 KiB of shared RAM, the tables in its last 2; function 18 is slot 2.
    assert op.output.lut == Lut(22 * 1024 + 512, np.dtype("<i1"), np.dtype("<i1"))
    assert (op.weights, op.scales, op.ifm2, op.operands) == (None, None, None, ())
    assert (op.accumulates, op.divides, op.resize, op.micro_block) == (False, True, None, (1, 2, 8))


def test_weights_and_scales_are_streams() -> None:
    op = block(u55({**PER_CHANNEL, "WEIGHT_REGION": 2, "SCALE_REGION": 4, "IFM_DEPTH_M1": 16}), CONV)
    assert op.weights is not None
    assert op.scales is not None
    assert op.weights == WeightStreams((Stream(2, 0x40, 48),))
    assert op.scales == ScaleStreams((Stream(4, 0x90, 50),), ScaleFormat.BIAS_40)
    assert (op.output.scale, op.ifm_depth, op.name) == (None, 17, "CONV")


def test_unsigned_types_have_unsigned_zero_points_and_limits() -> None:
    op = block(
        u55(
            {
                "IFM_PRECISION": precision(8, signed=False),
                "OFM_PRECISION": precision(8, signed=False, ofm=True, extra=GLOBAL_SCALE),
                "IFM_ZERO_POINT": 0xFFF0,
                "OFM_ZERO_POINT": 0xFFF1,
                "ACTIVATION_MIN": 0,
                "ACTIVATION_MAX": 0xFFFF,
            }
        ),
        POOL,
    )
    assert (op.ifm.zero_point, op.ofm.zero_point, op.output.clamp) == (0xFFF0, 0xFFF1, (0, 0xFFFF))
    assert op.output.rounding is Rounding.DOUBLE


def test_what_is_clamped_and_scaled() -> None:
    wide: dict[str, Setting] = {"OFM_PRECISION": precision(32, ofm=True, extra=GLOBAL_SCALE)}
    assert block(u55(wide), POOL).output.clamp is None
    assert block(u55({**wide, "ACTIVATION": 3 << 12}), POOL).output.clamp == (-128, 127)
    plain: dict[str, Setting] = {"OFM_PRECISION": precision(8, ofm=True)}
    assert not block(u55(plain), ELEMENTWISE, ElementwiseMode.MIN.value).output.scaled
    assert block(u55(), ELEMENTWISE, ElementwiseMode.MUL.value).output.scaled
    assert not block(u55(), ELEMENTWISE, ElementwiseMode.SHL.value).output.scaled


def test_the_second_operand() -> None:
    op = block(u55({"IFM2_BROADCAST": 1 << 7 | 1 << 6 | 5, "IFM2_SCALAR": -9}), ELEMENTWISE, 0)
    assert op.ifm2 is not None
    # The order is reversed: operand A is IFM2.
    first, second = op.operands
    assert (first.scalar, first.broadcast, first.feature_map) == (-9, (True, False, True), op.ifm2)
    assert (second.scalar, second.broadcast, second.feature_map) == (None, (False, False, False), op.ifm)
    assert op.ifm2.bases[0] == 0x300
    unary = block(u55(), ELEMENTWISE, ElementwiseMode.ABS.value)
    assert (unary.ifm2, len(unary.operands)) == (None, 1)


def test_registers_keep_their_values_and_go_on_in_another_segment() -> None:
    data = stream(
        (u55(), POOL, 0), ({}, POOL, 1), ({"OFM_ZERO_POINT": 3}, POOL, 0), ({"IFM_BASE0": 4}, POOL, 0)
    )
    first, second, third, fourth = segment(data, U55_128).operations
    assert isinstance(first, BlockOp)
    assert second == replace(first, offset=second.offset, mode=PoolMode.AVERAGE)
    assert third == replace(first, offset=third.offset, ofm=replace(first.ofm, zero_point=3))
    assert isinstance(fourth, BlockOp)
    assert (fourth.ofm.zero_point, fourth.ifm.bases[0]) == (3, 4)
    # A segment behind a branch starts from the registers as the one before left them.
    before = segment(stream((u55(), POOL, 0)), U55_128)
    rest = stream(({"OFM_ZERO_POINT": 3}, POOL, 0))
    first = before.operations[0]
    (op,) = segment(rest, U55_128, 0, before.registers).operations
    assert isinstance(first, BlockOp)
    assert op == replace(first, offset=op.offset, ofm=replace(first.ofm, zero_point=3))


@each(
    "missing",
    [
        "OFM_HEIGHT_M1",
        "OFM_WIDTH_M1",
        "OFM_DEPTH_M1",
        "OFM_BLK_DEPTH_M1",
        "OFM_PRECISION",
        "IFM_PRECISION",
        "ACTIVATION_MIN",
        "ACTIVATION_MAX",
        "ACC_FORMAT",
        "OFM_SCALE",
    ],
)
def test_registers_that_an_operation_needs_must_be_set(missing: str) -> None:
    settings = {name: value for name, value in u55().items() if name != missing}
    with pytest.raises(CommandError, match=f"needs {missing}, which was never set") as raised:
        segment(stream((settings, POOL, 0)), U55_128)
    assert raised.value.offset == len(stream((settings, POOL, 0))) - 8


@each(
    ("name", "value", "reason"),
    [
        ("IFM_PRECISION", precision(8, extra=2 << 6), "format"),
        ("IFM_PRECISION", 3 << 2, "element type"),
        ("IFM_PRECISION", precision(32, signed=False), "element type"),
        ("OFM_PRECISION", precision(8, ofm=True, extra=1 << 14), "TRUNCATE"),
        ("OFM_PRECISION", precision(8, ofm=True, extra=3 << 14), "rounding"),
        ("ACTIVATION", 3, "tanh"),
        ("ACTIVATION", 4, "sigmoid"),
        ("ACTIVATION", 24, "ACTIVATION"),
        ("ACC_FORMAT", 2, "accumulator"),
        ("KERNEL_STRIDE", 1 << 5, "decomposition"),
    ],
)
def test_what_the_model_lacks_is_refused_by_name(name: str, value: int, reason: str) -> None:
    assert refused(u55({name: value}), POOL, 0, U55_128, reason) == (f"SET_{name}", value)


@pytest.mark.parametrize(("opcode", "mode"), [(POOL, 3), (POOL, 7), (ELEMENTWISE, 10), (ELEMENTWISE, 63)])
def test_modes_that_do_not_exist_are_refused_by_name(opcode: int, mode: int) -> None:
    name = "NPU_OP_POOL" if opcode == POOL else "NPU_OP_ELEMENTWISE"
    assert refused(u55(), opcode, mode, U55_128, "mode") == (name, mode)


def test_waits_do_nothing_and_nothing_behind_the_stop_is_read() -> None:
    data = stream((u55(), POOL, 0))
    program = segment(data + b"\xff" * 4, U55_128)
    assert (len(program.operations), program.end, program.branch) == (1, len(data), None)
    with pytest.raises(CommandError, match=f"at byte {len(data)}"):
        segment(data.replace(STOP, one(0x012)) + b"\xff" * 4, U55_128)
    assert segment(one(0x011, 1) + one(0x012, 3) + STOP, U55_128).operations == ()


@pytest.mark.parametrize("data", [b"", one(0x012), setting("OFM_SCALE", (1, 2))])
def test_streams_without_a_stop_are_errors(data: bytes) -> None:
    with pytest.raises(CommandError, match="NPU_OP_STOP") as raised:
        segment(data, U55_128)
    assert raised.value.offset == len(data)
    assert isinstance(raised.value, InputError)


def test_masks_of_interrupts_add_up() -> None:
    assert segment(one(0x001, 0x0003) + one(0x001, 0x0100) + one(0x000, 0x8000), U55_128).irq_mask == 0x8103
