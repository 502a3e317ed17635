"""The command stream's registers: they keep their values from operation to operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ethosu_sdk.npu.decode import Command
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import (
    SCALES_OPERANDS,
    UNARY,
    UNSCALED,
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kernel,
    Kind,
    OperandScaling,
    Output,
    Padding,
    PoolMode,
    Rounding,
    SecondOperand,
    Stream,
)

# Registers that Vela 5.1.0 leaves unset where they do not matter; they read as 0. Any other register that an
# operation needs must have been set.
MAY_BE_UNSET = frozenset(
    {
        "ACTIVATION",
        "IFM_UPSCALE",
        "IFM_REGION",
        "IFM2_REGION",
        "OFM_REGION",
        "IFM_DEPTH_M1",
        "IFM_ZERO_POINT",
        "IFM2_ZERO_POINT",
        "OFM_ZERO_POINT",
        "IFM_PAD_TOP",
        "IFM_PAD_LEFT",
        "IFM_PAD_RIGHT",
        "IFM_PAD_BOTTOM",
        "KERNEL_STRIDE",
        "KERNEL_WIDTH_M1",
        "KERNEL_HEIGHT_M1",
        "OPA_SCALE",
        "OPB_SCALE",
        "WEIGHT_REGION",
        "SCALE_REGION",
        "DMA0_SRC_REGION",
        "DMA0_DST_REGION",
        *(f"{name}_BASE{tile}" for name in ("IFM", "IFM2", "OFM") for tile in range(4)),
        *(f"{name}_STRIDE_{axis}" for name in ("IFM", "IFM2", "OFM") for axis in "YXC"),
        *(
            f"{name}_{size}_M1"
            for name in ("IFM", "IFM2", "OFM")
            for size in ("HEIGHT0", "HEIGHT1", "WIDTH0")
        ),
    }
)

_DTYPES = {
    (0, 0): "<u1",
    (1, 0): "<i1",
    (0, 1): "<u2",
    (1, 1): "<i2",
    (1, 2): "<i4",
}
_ROUNDING = {0: Rounding.DOUBLE, 2: Rounding.NATURAL}
_ADDRESS_BITS = 40
_LUT_FUNCTIONS = range(16, 24)
_ACCUMULATOR_BITS = {0: 32, 1: 40}
# When one operand of ADD or SUB has the wide scale, the hardware shifts the other left by this much, per element
# size in bytes. It is in no register: ethos-u-vela 5.1.0 chooses its scales for it.
_PARTNER_SHIFT = {1: 19, 2: 14}


def signed(value: int, bits: int) -> int:
    """`value` of `bits` bits, read as two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


class Registers:
    """The register file of the command stream. Setting and reading; nothing else changes it."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}

    def set(self, command: Command) -> None:
        """Carry out a SET command."""
        self._commands[command.type.register] = command

    def field(self, register: str, name: str, at: int) -> int:
        """A field, unsigned, for the operation at byte `at`. CommandError when it was never set and must be."""
        command = self._commands.get(register)
        if command is not None:
            return command.field(name)
        if register in MAY_BE_UNSET:
            return 0
        raise CommandError(f"the operation needs {register}, which was never set,", at)

    def size(self, register: str, at: int) -> int:
        """The value of a register that holds its size minus one (``…_M1``)."""
        command = self._commands.get(register)
        if command is None and register not in MAY_BE_UNSET:
            raise CommandError(f"the operation needs {register}, which was never set,", at)
        return 1 if command is None else command.type.fields[0].of(command.bits) + 1

    def address(self, register: str, at: int) -> int:
        """A 40-bit address or stride, signed: reversed feature maps have negative strides."""
        high, low = self.field(register, "addr_hi", at), self.field(register, "addr_lo", at)
        return signed(high << 32 | low, _ADDRESS_BITS)

    def unsupported(self, register: str, at: int, reason: str = "") -> UnsupportedCommand:
        """The error for a register whose value the model does not execute."""
        command = self._commands.get(register)
        return UnsupportedCommand(f"SET_{register}", at, command.bits >> 16 if command else 0, reason)


def _dtype(registers: Registers, prefix: str, at: int) -> np.dtype[Any]:
    register = f"{prefix}_PRECISION"
    key = (
        registers.field(register, "activation_type", at),
        registers.field(register, "activation_precision", at),
    )
    if key not in _DTYPES:
        raise registers.unsupported(register, at, "element type")
    return np.dtype(_DTYPES[key])


def _feature_map(registers: Registers, prefix: str, at: int) -> FeatureMap:
    dtype = _dtype(registers, prefix, at)
    bricks = registers.field(f"{prefix}_PRECISION", "activation_format", at)
    if bricks > 1:
        raise registers.unsupported(f"{prefix}_PRECISION", at, "feature map format")
    zero_point = registers.field(f"{prefix}_ZERO_POINT", "zero_point", at)
    base0, base1, base2, base3 = (registers.address(f"{prefix}_BASE{tile}", at) for tile in range(4))
    return FeatureMap(
        region=registers.field(f"{prefix}_REGION", "region", at),
        bases=(base0, base1, base2, base3),
        height0=registers.size(f"{prefix}_HEIGHT0_M1", at),
        height1=registers.size(f"{prefix}_HEIGHT1_M1", at),
        width0=registers.size(f"{prefix}_WIDTH0_M1", at),
        stride_y=registers.address(f"{prefix}_STRIDE_Y", at),
        stride_x=registers.address(f"{prefix}_STRIDE_X", at),
        stride_c=registers.address(f"{prefix}_STRIDE_C", at),
        dtype=dtype,
        bricks=bricks == 1,
        zero_point=signed(zero_point, 16) if dtype.kind == "i" else zero_point,
    )


def _kernel(registers: Registers, at: int) -> Kernel:
    def stride(name: str) -> int:
        return registers.field("KERNEL_STRIDE", name, at)

    if stride("decomposition"):
        raise registers.unsupported("KERNEL_STRIDE", at, "4x4 decomposition")
    dilation_y, dilation_x = stride("dilation_y") + 1, stride("dilation_x") + 1
    return Kernel(
        height=(registers.size("KERNEL_HEIGHT_M1", at) - 1) // dilation_y + 1,
        width=(registers.size("KERNEL_WIDTH_M1", at) - 1) // dilation_x + 1,
        stride_y=(stride("stride_y_lsb") | stride("stride_y_msb") << 1) + 1,
        stride_x=(stride("stride_x_lsb") | stride("stride_x_msb") << 1) + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        part_kernel_first=bool(stride("weight_order")),
    )


def _padding(registers: Registers, kernel: Kernel, kind: Kind, at: int) -> Padding:
    sides = ("TOP", "LEFT", "BOTTOM", "RIGHT")
    top, left, bottom, right = (registers.field(f"IFM_PAD_{side}", "pad", at) for side in sides)
    if kind is Kind.POOL:
        if kernel.dilation_y > 1 or kernel.dilation_x > 1:
            raise registers.unsupported("KERNEL_STRIDE", at, "dilated pooling")
        # A window of padding alone has no maximum and no average; TOSA 1.0 excludes it as well.
        if max(top, bottom) >= kernel.height or max(left, right) >= kernel.width:
            raise registers.unsupported("IFM_PAD_TOP", at, "pooling windows that lie in the padding")
    return Padding(top, left, bottom, right)


def _rounding(registers: Registers, prefix: str, at: int) -> Rounding:
    mode = registers.field(f"{prefix}_PRECISION", "round_mode", at)
    if mode not in _ROUNDING:
        raise registers.unsupported(f"{prefix}_PRECISION", at, "rounding mode TRUNCATE")
    return _ROUNDING[mode]


def _output(
    registers: Registers,
    kind: Kind,
    mode: PoolMode | ElementwiseMode | None,
    dtype: np.dtype[Any],
    at: int,
) -> Output:
    function = registers.field("ACTIVATION", "activation_function", at)
    if function and function not in _LUT_FUNCTIONS:
        raise registers.unsupported("ACTIVATION", at, "hardware tanh or sigmoid")
    clip_range = registers.field("ACTIVATION", "activation_clip_range", at)
    low = registers.field("ACTIVATION_MIN", "clip_boundary", at)
    high = registers.field("ACTIVATION_MAX", "clip_boundary", at)
    if dtype.kind == "i":
        low, high = signed(low, 16), signed(high, 16)
    is_global = bool(registers.field("OFM_PRECISION", "scale_mode", at))
    return Output(
        scaled=mode not in UNSCALED and (is_global or kind is not Kind.ELEMENTWISE),
        scale=registers.field("OFM_SCALE", "scale", at) if is_global else None,
        shift=registers.field("OFM_SCALE", "shift", at) if is_global else 0,
        rounding=_rounding(registers, "OFM", at),
        # 32-bit results are not clamped unless a range is named.
        clamp=(low, high) if dtype.itemsize <= 2 or clip_range else None,
        lut=function - _LUT_FUNCTIONS.start if function else None,
    )


def _operand_scaling(registers: Registers, dtype: np.dtype[Any], at: int) -> OperandScaling | None:
    """How ADD and SUB scale operands of `dtype`; None for 32 bits, which are taken as they are."""
    if dtype.itemsize not in _PARTNER_SHIFT:
        return None
    mode = registers.field("IFM_PRECISION", "scale_mode", at)
    if mode > 2:
        raise registers.unsupported("IFM_PRECISION", at, "operand scale mode")
    scale = registers.field("OPA_SCALE", "scale", at)
    partner = _PARTNER_SHIFT[dtype.itemsize]
    # Vela writes the low bits of the other operand's scale, which the hardware does not read in these modes. Any
    # scale but the implied one gives a result that is neither Vela's intention nor known.
    if mode and registers.field("OPB_SCALE", "scale", at) != (1 << partner) & 0xFFFF:
        raise registers.unsupported("OPB_SCALE", at, "scale of the operand that the hardware only shifts")
    return OperandScaling(
        wide={0: None, 1: "a", 2: "b"}[mode],
        scale_a=scale if mode else scale & 0xFFFF,
        scale_b=registers.field("OPB_SCALE", "scale", at),
        shift=registers.field("OPA_SCALE", "shift", at),
        rounding=_rounding(registers, "IFM", at),
        partner_shift=partner,
    )


def _second_operand(registers: Registers, at: int) -> SecondOperand:
    def bit(name: str) -> bool:
        return bool(registers.field("IFM2_BROADCAST", name, at))

    feature_map = _feature_map(registers, "IFM2", at)
    scalar = None
    if bit("broadcast_constant"):
        value = registers.field("IFM2_SCALAR", "scalar", at)
        scalar = signed(value, 16) if feature_map.dtype.kind == "i" else value
    return SecondOperand(
        feature_map,
        (bit("broadcast_h"), bit("broadcast_w"), bit("broadcast_c")),
        scalar,
        bit("operand_order"),
    )


def _stream(registers: Registers, prefix: str, at: int) -> Stream:
    return Stream(
        registers.field(f"{prefix}_REGION", "region", at),
        registers.address(f"{prefix}_BASE", at),
        registers.field(f"{prefix}_LENGTH", "length", at),
    )


def _mode(command: Command, kind: Kind) -> PoolMode | ElementwiseMode | None:
    at = command.offset
    try:
        if kind is Kind.POOL:
            return PoolMode(command.field("pooling_mode"))
        if kind is Kind.ELEMENTWISE:
            return ElementwiseMode(command.field("elementwise_mode"))
    except ValueError as error:
        raise UnsupportedCommand(f"NPU_{command.type.name}", at, command.bits >> 16, "mode") from error
    return None


def block_operation(registers: Registers, command: Command, kind: Kind) -> BlockOp:
    """The block operation that `command` starts with the registers as they are now."""
    at = command.offset
    mode = _mode(command, kind)
    ifm, ofm = _feature_map(registers, "IFM", at), _feature_map(registers, "OFM", at)
    output = _output(registers, kind, mode, ofm.dtype, at)
    accumulator = registers.field("ACC_FORMAT", "acc_format", at) if kind is not Kind.ELEMENTWISE else 0
    if accumulator not in _ACCUMULATOR_BITS:
        raise registers.unsupported("ACC_FORMAT", at, "accumulator format")
    kernel = _kernel(registers, at)
    has_weights = kind in (Kind.CONV, Kind.DEPTHWISE)
    is_elementwise = kind is Kind.ELEMENTWISE
    return BlockOp(
        offset=at,
        kind=kind,
        mode=mode,
        shape=(
            registers.size("OFM_HEIGHT_M1", at),
            registers.size("OFM_WIDTH_M1", at),
            registers.size("OFM_DEPTH_M1", at),
        ),
        ifm=ifm,
        ifm_depth=registers.size("IFM_DEPTH_M1", at),
        ofm=ofm,
        kernel=kernel,
        padding=_padding(registers, kernel, kind, at),
        upscale=registers.field("IFM_UPSCALE", "mode", at),
        weights=_stream(registers, "WEIGHT", at) if has_weights else None,
        scales=_stream(registers, "SCALE", at) if output.scaled and output.scale is None else None,
        output=output,
        operands=_operand_scaling(registers, ifm.dtype, at) if mode in SCALES_OPERANDS else None,
        ifm2=_second_operand(registers, at) if is_elementwise and mode not in UNARY else None,
        block=(
            registers.size("OFM_BLK_HEIGHT_M1", at),
            registers.size("OFM_BLK_WIDTH_M1", at),
            registers.size("OFM_BLK_DEPTH_M1", at),
        ),
        accumulator_bits=_ACCUMULATOR_BITS[accumulator],
    )


def dma_operation(registers: Registers, command: Command) -> DmaOp:
    """The copy that `command` starts. Only one-dimensional copies: Ethos-U55 has no others."""
    at = command.offset
    regions: list[int | None] = []
    for name in ("DMA0_SRC", "DMA0_DST"):
        if registers.field(f"{name}_REGION", "stride_mode", at):
            raise registers.unsupported(f"{name}_REGION", at, "strided DMA")
        internal = registers.field(f"{name}_REGION", "region_mode", at)
        regions.append(None if internal else registers.field(f"{name}_REGION", "region", at))
    return DmaOp(
        offset=at,
        source_region=regions[0],
        source=registers.address("DMA0_SRC", at),
        target_region=regions[1],
        target=registers.address("DMA0_DST", at),
        length=registers.address("DMA0_LEN", at),
    )
