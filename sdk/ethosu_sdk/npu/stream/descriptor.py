"""Registers → one frozen descriptor per operation. Here the differences between the families end."""

from __future__ import annotations

from dataclasses import replace

from ethosu_sdk.base.targets import Generation
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaIndex,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kernel,
    Kind,
    Mode,
    Operation,
    Output,
    Padding,
    PoolMode,
    ResizeMode,
    Shape,
)
from ethosu_sdk.npu.stream import u55, u85
from ethosu_sdk.npu.stream.registers import Command, Family, RegisterFile, Registers, feature_map, kernel_of

_FAMILIES: dict[Generation, Family] = {"u55": u55, "u85": u85}
_KINDS = {
    "OP_CONV": Kind.CONV,
    "OP_DEPTHWISE": Kind.DEPTHWISE,
    "OP_POOL": Kind.POOL,
    "OP_ELEMENTWISE": Kind.ELEMENTWISE,
    "OP_RESIZE": Kind.RESIZE,
}
_MODES: dict[Kind, tuple[str, type[PoolMode] | type[ElementwiseMode] | type[ResizeMode]]] = {
    Kind.POOL: ("pooling_mode", PoolMode),
    Kind.ELEMENTWISE: ("elementwise_mode", ElementwiseMode),
    Kind.RESIZE: ("resize_mode", ResizeMode),
}


def describe(register_file: RegisterFile, command: Command) -> Operation:
    """What `command`, an operation, does with the registers as they are now.

    Raises CommandError for registers that were never set, UnsupportedCommand for what this model does not execute.
    """
    name = command.type.name
    registers = register_file.at(command.offset)
    if name == "OP_DMA_START":
        return _dma(registers)
    if name not in _KINDS:
        raise UnsupportedCommand(f"NPU_{name}", command.offset, command.bits >> 16)
    kind = _KINDS[name]
    if kind is Kind.CONV and command.type.fields and command.field("weights_ifm2"):
        kind = Kind.MATMUL
    return _block_operation(registers, command, kind)


def _mode(command: Command, kind: Kind, family: Family) -> Mode | None:
    if kind not in _MODES:
        return None
    name, modes = _MODES[kind]
    value = command.field(name)
    mode = next((mode for mode in family.modes[kind] if mode.value == value), None)
    if mode is None:
        raise UnsupportedCommand(
            f"NPU_{command.type.name}", command.offset, value, f"no such {modes.__name__}"
        )
    return mode


def _block_operation(registers: Registers, command: Command, kind: Kind) -> BlockOp:
    family = _FAMILIES[registers.config.generation]
    mode = _mode(command, kind, family)

    def mapped(prefix: str) -> FeatureMap:
        return feature_map(registers, prefix, family.chain(registers, prefix))

    def shape(prefix: str) -> Shape:
        height, width, depth = (
            registers.size(f"{prefix}_{axis}_M1") for axis in ("HEIGHT", "WIDTH", "DEPTH")
        )
        return height, width, depth

    ofm = mapped("OFM")
    output = family.output(registers, kind, mode, ofm.dtype)
    if registers.config.generation == "u55" and ofm.dtype.itemsize > 2 and output.clamp is None:
        # 32-bit results have no zero point: SOFTMAX of Vela up to 4.x leaves that of its 8-bit elements there.
        ofm = replace(ofm, zero_point=0)
    moves = (output.reverse is not None) + (output.transpose is not None) + (ofm.chain is not None)
    if moves > 1:
        raise registers.unsupported("OFM_PRECISION", "more than one of reversed, transposed and chained")
    accumulator = family.accumulator(registers, kind)
    kernel = kernel_of(registers)
    divides = mode is PoolMode.AVERAGE and family.divides(registers)
    if (mode is PoolMode.MAX or divides) and _is_scale_of_average(output, kernel):
        output = replace(output, scaled=False)
    operands = family.operands(registers, mode) if kind is Kind.ELEMENTWISE and mode is not None else ()
    return BlockOp(
        offset=registers.offset,
        kind=kind,
        mode=mode,
        shape=shape("OFM"),
        ifm=mapped("IFM"),
        ifm_depth=registers.size("IFM_DEPTH_M1"),
        ofm=ofm,
        kernel=kernel,
        padding=_padding(registers, kernel, mode),
        upscale=registers.field("IFM_UPSCALE", "mode"),
        weights=family.weights(registers) if kind in (Kind.CONV, Kind.DEPTHWISE) else None,
        scales=family.scales(registers, accumulator.bits) if output.scaled and output.scale is None else None,
        output=output,
        operands=operands,
        ifm2=mapped("IFM2") if len(operands) > 1 or accumulator.from_ifm2 or kind is Kind.MATMUL else None,
        accumulates=accumulator.from_ifm2,
        divides=divides,
        resize=u85.resize(registers) if kind is Kind.RESIZE else None,
        block=shape("OFM_BLK"),
        micro_block=family.micro_block(registers),
        accumulator_bits=accumulator.bits,
        blockdep=registers.field("BLOCKDEP", "blockdep"),
        continues=accumulator.continues,
        is_partial=accumulator.is_partial,
        accumulator_bank=accumulator.bank,
    )


def _is_scale_of_average(output: Output, kernel: Kernel) -> bool:
    """Whether OFM_SCALE divides by the kernel's elements.

    Vela 5.0.0 says so of each pool, of a maximum and of an average that the hardware divides as well: these do not
    read it, or all of that version's would be wrong.
    """
    count = kernel.height * kernel.width
    bits = (count - 1).bit_length()
    whole = 30 if output.shift == 30 + bits else 31
    return (output.scale, output.shift) == (((1 << whole + bits) + (1 << bits)) // count, whole + bits)


def _padding(registers: Registers, kernel: Kernel, mode: Mode | None) -> Padding:
    sides = ("TOP", "LEFT", "BOTTOM", "RIGHT")
    top, left, bottom, right = (registers.field(f"IFM_PAD_{side}", "pad") for side in sides)
    # Of other modes, padding counts as 0.
    excluding = (PoolMode.MAX, PoolMode.MIN, PoolMode.AVERAGE, PoolMode.ARGMAX_X, PoolMode.ARGMAX_Y)
    if mode in excluding:
        if kernel.dilation_y > 1 or kernel.dilation_x > 1:
            raise registers.unsupported("KERNEL_STRIDE", "dilated pooling")
        # A window of padding alone has no maximum and no average; TOSA 1.0 excludes it as well.
        if max(top, bottom) >= kernel.height or max(left, right) >= kernel.width:
            raise registers.unsupported("IFM_PAD_TOP", "pooling windows that lie in the padding")
    return Padding(top, left, bottom, right)


def _dma(registers: Registers) -> DmaOp:
    read = _dma_u85 if registers.config.generation == "u85" else _dma_u55
    op = read(registers)
    if op.length < 0:
        raise registers.unsupported("DMA0_LEN", "negative length")
    return op


def _transfer(registers: Registers) -> DmaOp:
    """One row from source to target: what both command sets have in the same registers."""

    def region(name: str) -> int | None:
        is_own_memory = registers.field(f"{name}_REGION", "region_mode")
        return None if is_own_memory else registers.field(f"{name}_REGION", "region")

    return DmaOp(
        offset=registers.offset,
        source_region=region("DMA0_SRC"),
        source=registers.address("DMA0_SRC"),
        target_region=region("DMA0_DST"),
        target=registers.address("DMA0_DST"),
        length=registers.address("DMA0_LEN"),
    )


def _dma_u55(registers: Registers) -> DmaOp:
    """Rows without gaps, copied to rows followed by gaps; two- and three-dimensional only on Ethos-U65."""
    if registers.field("DMA0_SRC_REGION", "stride_mode"):
        raise registers.unsupported("DMA0_SRC_REGION", "strided source")
    dimensions = registers.field("DMA0_DST_REGION", "stride_mode") + 1
    if dimensions > (1 if registers.config.npu == "ethos-u55" else 3):
        raise registers.unsupported("DMA0_DST_REGION", "strided target")
    length = registers.address("DMA0_LEN")
    rows = registers.field("DMA0_SIZE0", "size") if dimensions > 1 else 1
    planes = registers.field("DMA0_SIZE1", "size") if dimensions > 2 else 1
    row_gap = registers.address("DMA0_SKIP0") if dimensions > 1 else 0
    if dimensions > 2 and row_gap:
        raise registers.unsupported("DMA0_SKIP0", "gaps between the rows of planes")
    plane_gap = registers.address("DMA0_SKIP1") if dimensions > 2 else 0
    return replace(
        _transfer(registers),
        counts=(planes, rows),
        source_strides=(rows * length, length),
        target_strides=(rows * (length + row_gap) + plane_gap, length + row_gap),
    )


def _dma_u85(registers: Registers) -> DmaOp:
    """Rows and planes with strides on both sides; the rows of one side may be numbered by an index."""
    dimensions = registers.field("DMA0_SRC_REGION", "stride_mode") + 1
    if dimensions > 3:
        raise registers.unsupported("DMA0_SRC_REGION", "stride mode")
    gathers = bool(registers.field("DMA0_SRC_REGION", "idx_mode"))
    scatters = bool(registers.field("DMA0_DST_REGION", "idx_mode"))
    if gathers and scatters:
        raise registers.unsupported("DMA0_DST_REGION", "indices on both sides")
    rows = registers.field("DMA0_SIZE0", "size") if dimensions > 1 or gathers or scatters else 1
    if dimensions == 1 and rows != 1:
        raise registers.unsupported("DMA0_SIZE0", "rows of a one-dimensional transfer")

    def strides(side: str, is_indexed: bool) -> tuple[int, int]:
        plane = registers.address(f"DMA0_{side}_STRIDE1") if dimensions > 2 else 0
        return plane, registers.address(f"DMA0_{side}_STRIDE0") if dimensions > 1 or is_indexed else 0

    return replace(
        _transfer(registers),
        counts=(registers.field("DMA0_SIZE1", "size") if dimensions > 2 else 1, rows),
        source_strides=strides("SRC", gathers),
        target_strides=strides("DST", scatters),
        index=_index(registers, dimensions, scatters) if gathers or scatters else None,
    )


def _index(registers: Registers, dimensions: int, scatters: bool) -> DmaIndex:
    rows = registers.field("DMA0_SIZE0", "size")
    skip = registers.address("DMA0_IDX_SKIP1") if dimensions > 2 else 0
    return DmaIndex(
        region=registers.field("DMA0_IDX_REGION", "region"),
        address=registers.address("DMA0_IDX"),
        maximum=registers.field("DMA0_IDX_MAX", "idx_max"),
        plane_stride=4 * rows + skip,
        scatters=scatters,
    )
