"""Registers and the operations that are made of them: what persists, what must be set, what is refused by name."""

from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk.errors import InputError
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
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
from tests.unit.npu.machine import U55_128
from tests.unit.npu.streams import (
    BRICKS,
    CONV,
    DMA_START,
    ELEMENTWISE,
    GLOBAL_SCALE,
    NATURAL,
    POOL,
    STOP,
    Setting,
    feature_map,
    ofm,
    one,
    precision,
    setting,
    stream,
    transfer,
)

SHAPE = (3, 4, 5)


def pool(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    return {
        **feature_map("IFM", 0x100, SHAPE, 8),
        **ofm(0x200, SHAPE, 8, GLOBAL_SCALE | NATURAL),
        "OFM_SCALE": (1, 0),
        "ACC_FORMAT": 0,
        **(changes or {}),
    }


def elementwise(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    return {**pool(), **feature_map("IFM2", 0x300, SHAPE, 8), "IFM2_BROADCAST": 0, **(changes or {})}


def convolution(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    weights: dict[str, Setting] = {
        "WEIGHT_BASE": 0x40,
        "WEIGHT_LENGTH": 48,
        "SCALE_BASE": 0x90,
        "SCALE_LENGTH": 50,
    }
    return {**pool(), "OFM_PRECISION": precision(8, ofm=True), **weights, **(changes or {})}


def block(registers: dict[str, Setting], opcode: int, mode: int = 0) -> BlockOp:
    (op,) = segment(stream((registers, opcode, mode)), U55_128).operations
    assert isinstance(op, BlockOp)
    return op


def test_a_pool_with_every_register() -> None:
    op = block(
        pool(
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


def test_kernels_are_given_dilated() -> None:
    kernel = block(
        convolution({"KERNEL_HEIGHT_M1": 4, "KERNEL_WIDTH_M1": 2, "KERNEL_STRIDE": 1 << 4 | 1 << 2}), CONV
    ).kernel
    assert kernel == Kernel(3, 3, 1, 1, 2, 1, True)
    assert (kernel.dilated_height, kernel.dilated_width) == (5, 3)


def test_weights_and_scales_are_streams() -> None:
    op = block(convolution({"WEIGHT_REGION": 2, "SCALE_REGION": 4, "IFM_DEPTH_M1": 16}), CONV)
    assert op.weights is not None
    assert op.scales is not None
    assert op.weights == WeightStreams((Stream(2, 0x40, 48),))
    assert op.scales == ScaleStreams((Stream(4, 0x90, 50),), ScaleFormat.BIAS_40)
    assert (op.output.scale, op.ifm_depth, op.name) == (None, 17, "CONV")


def test_unsigned_types_have_unsigned_zero_points_and_limits() -> None:
    op = block(
        pool(
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


def test_32_bit_results_are_clamped_only_where_a_range_is_named() -> None:
    wide: dict[str, Setting] = {"OFM_PRECISION": precision(32, ofm=True, extra=GLOBAL_SCALE)}
    assert block(pool(wide), POOL).output.clamp is None
    assert block(pool({**wide, "ACTIVATION": 3 << 12}), POOL).output.clamp == (-128, 127)


def test_elementwise_operations_without_scaling() -> None:
    plain: dict[str, Setting] = {"OFM_PRECISION": precision(8, ofm=True)}
    assert not block(elementwise(plain), ELEMENTWISE, ElementwiseMode.MIN.value).output.scaled
    assert block(elementwise(), ELEMENTWISE, ElementwiseMode.MUL.value).output.scaled
    assert not block(elementwise(), ELEMENTWISE, ElementwiseMode.SHL.value).output.scaled


def test_the_second_operand() -> None:
    op = block(elementwise({"IFM2_BROADCAST": 1 << 7 | 1 << 6 | 5, "IFM2_SCALAR": -9}), ELEMENTWISE, 0)
    assert op.ifm2 is not None
    # The order is reversed: operand A is IFM2.
    first, second = op.operands
    assert (first.scalar, first.broadcast, first.feature_map) == (-9, (True, False, True), op.ifm2)
    assert (second.scalar, second.broadcast, second.feature_map) == (None, (False, False, False), op.ifm)
    assert op.ifm2.bases[0] == 0x300
    unary = block(elementwise(), ELEMENTWISE, ElementwiseMode.ABS.value)
    assert (unary.ifm2, len(unary.operands)) == (None, 1)


def test_registers_keep_their_values() -> None:
    data = stream(
        (pool(), POOL, 0), ({}, POOL, 1), ({"OFM_ZERO_POINT": 3}, POOL, 0), ({"IFM_BASE0": 4}, POOL, 0)
    )
    first, second, third, fourth = segment(data, U55_128).operations
    assert isinstance(first, BlockOp)
    assert second == replace(first, offset=second.offset, mode=PoolMode.AVERAGE)
    assert third == replace(first, offset=third.offset, ofm=replace(first.ofm, zero_point=3))
    assert isinstance(fourth, BlockOp)
    assert (fourth.ofm.zero_point, fourth.ifm.bases[0]) == (3, 4)


def test_copies() -> None:
    settings = transfer((0, 0x1_0000_0010), (1 << 8, 0x5800), 256)
    found = segment(stream((settings, DMA_START, 0)), U55_128).operations
    assert isinstance(found[0], DmaOp)
    assert (found[0].source_region, found[0].source) == (0, 0x1_0000_0010)
    assert (found[0].target_region, found[0].target, found[0].length) == (None, 0x5800, 256)


@pytest.mark.parametrize(
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
    settings = {name: value for name, value in pool().items() if name != missing}
    with pytest.raises(CommandError, match=f"needs {missing}, which was never set") as raised:
        segment(stream((settings, POOL, 0)), U55_128)
    assert raised.value.offset == len(stream((settings, POOL, 0))) - 8


@pytest.mark.parametrize(
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
    assert_refused(pool({name: value}), POOL, 0, (name, value, reason))


@pytest.mark.parametrize(("opcode", "mode"), [(POOL, 3), (POOL, 7), (ELEMENTWISE, 10), (ELEMENTWISE, 63)])
def test_modes_that_do_not_exist_are_refused_by_name(opcode: int, mode: int) -> None:
    name = "OP_POOL" if opcode == POOL else "OP_ELEMENTWISE"
    assert_refused(elementwise(), opcode, mode, (name, mode, "mode"))


def assert_refused(
    registers: dict[str, Setting], opcode: int, mode: int, expected: tuple[str, int, str]
) -> None:
    name, value, reason = expected
    data = stream((registers, opcode, mode))
    with pytest.raises(UnsupportedCommand, match=reason) as raised:
        segment(data, U55_128)
    error = raised.value
    assert error.name.endswith(name)
    assert (error.offset, error.value) == (len(data) - 8, value)
    assert f"{error.value:#x}" in error.message
    assert str(error.offset) in error.message


def test_nothing_behind_the_stop_is_read() -> None:
    data = stream((pool(), POOL, 0))
    program = segment(data + b"\xff" * 4, U55_128)
    assert (len(program.operations), program.end, program.branch) == (1, len(data), None)
    with pytest.raises(CommandError, match=f"at byte {len(data)}"):
        segment(data.replace(STOP, one(0x012)) + b"\xff" * 4, U55_128)


@pytest.mark.parametrize("data", [b"", one(0x012), setting("OFM_SCALE", (1, 2))])
def test_streams_without_a_stop_are_errors(data: bytes) -> None:
    with pytest.raises(CommandError, match="NPU_OP_STOP") as raised:
        segment(data, U55_128)
    assert raised.value.offset == len(data)
    assert isinstance(raised.value, InputError)


def test_waits_do_nothing() -> None:
    assert segment(one(0x011, 1) + one(0x012, 3) + STOP, U55_128).operations == ()


def test_masks_of_interrupts_add_up() -> None:
    assert segment(one(0x001, 0x0003) + one(0x001, 0x0100) + one(0x000, 0x8000), U55_128).irq_mask == 0x8103


def test_registers_can_go_on_from_what_was_set_before() -> None:
    """A segment behind a branch starts from the registers as the one before left them."""
    before = segment(stream((pool(), POOL, 0)), U55_128)
    rest = stream(({"OFM_ZERO_POINT": 3}, POOL, 0))
    first = before.operations[0]
    (op,) = segment(rest, U55_128, 0, before.registers).operations
    assert isinstance(first, BlockOp)
    assert op == replace(first, offset=op.offset, ofm=replace(first.ofm, zero_point=3))
