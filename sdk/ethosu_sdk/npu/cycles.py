"""Cycle estimate of an operation, from its descriptor alone.

The formulas are those of ethos-u-vela 5.1.0's performance estimate for Ethos-U55: what hardware needs differs, and
depends on memories that nobody models here. Every figure made from this is marked `modelled`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kind,
    Operation,
    PoolMode,
    Shape,
)


@dataclass(frozen=True)
class MemorySpeed:
    """One memory as an AXI port sees it: bytes per NPU cycle, read latency in cycles, burst in bytes."""

    bytes_per_cycle: float
    latency_cycles: int
    burst_bytes: int


# vela.ini of ethos-u-vela 5.1.0, Ethos_U55_High_End_Embedded: SRAM on port 0, off-chip flash on port 1.
SRAM = MemorySpeed(8.0, 32, 32)
FLASH = MemorySpeed(1.0, 64, 128)
_CONSTANTS_REGION = 0

# Output cycles per element, by the kind of work: 32-bit unary, 32-bit binary, MUL to 32 bits, MUL or 40-bit
# accumulators, (unused), ADD and SUB, max pooling, anything else.
_OUTPUT_CYCLES = {
    32: (2.0, 3.0, 3.0, 3.0, 4.0, 6.0, 1.0, 2.0),
    64: (1.0, 1.5, 1.5, 1.5, 2.0, 3.0, 0.5, 1.0),
    128: (0.75, 1.25, 0.75, 0.75, 1.0, 1.5, 0.25, 0.5),
    256: (0.625, 1.125, 0.5, 0.375, 0.5, 0.75, 0.125, 0.25),
}
_LEAST_OUTPUT_CYCLES = 1.0
_MICRO_BLOCK: dict[int, Shape] = {32: (1, 1, 4), 64: (1, 1, 8), 128: (1, 2, 8), 256: (2, 2, 8)}
_SUBKERNEL = 8


@dataclass(frozen=True)
class Estimate:
    """Cycles of one operation: in all, of the MAC unit, and the number of multiply-accumulates."""

    total_cycles: int
    mac_cycles: int
    macs: int


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)


def _speed(region: int | None) -> MemorySpeed:
    return FLASH if region == _CONSTANTS_REGION else SRAM


def _volume(shape: Shape) -> int:
    return shape[0] * shape[1] * shape[2]


def _clipped(shape: Shape, limit: Shape) -> Shape:
    return min(shape[0], limit[0]), min(shape[1], limit[1]), min(shape[2], limit[2])


def estimate(op: Operation, config: NpuConfig) -> Estimate:
    """The estimate for `op` on `config`."""
    if isinstance(op, DmaOp):
        return Estimate(_dma_cycles(op), 0, 0)
    if op.kind is Kind.ELEMENTWISE:
        return Estimate(_elementwise_cycles(op, config), 0, 0)
    return _kernel_estimate(op, config)


def _dma_cycles(op: DmaOp) -> int:
    slowest = max((_speed(region) for region in (op.source_region, op.target_region)), key=_slowness)
    return slowest.latency_cycles + math.ceil(op.length / slowest.bytes_per_cycle)


def _slowness(speed: MemorySpeed) -> float:
    return 1 / speed.bytes_per_cycle


def _output_cycles_per_element(op: BlockOp, config: NpuConfig) -> float:
    row = _OUTPUT_CYCLES[config.macs // config.cores]
    return max(row[_output_kind(op)], _LEAST_OUTPUT_CYCLES)


def _output_kind(op: BlockOp) -> int:
    elementwise = op.kind is Kind.ELEMENTWISE
    is_mul = op.mode is ElementwiseMode.MUL
    if elementwise and op.ifm.dtype.itemsize == 4:
        return 1 if op.ifm2 is not None else 0
    if is_mul and op.ofm.dtype.itemsize == 4:
        return 2
    if is_mul or (not elementwise and op.accumulator_bits == 40):
        return 3
    if op.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        return 5
    return 6 if op.mode is PoolMode.MAX else 7


def _transfer_cycles(
    feature_map: FeatureMap, block: Shape, shape: Shape, length: int, *, reading: bool
) -> int:
    """Cycles to move `length` bytes of a feature map block by block, inflated by short bursts.

    Vela takes rows for contiguous when their stride equals the block's depth, whatever they hold.
    """
    bits = 8 * feature_map.dtype.itemsize
    _, block_width, block_depth = block
    _, width, depth = shape
    if feature_map.bricks:
        contiguous = width * bits * 16 // 8 == block_depth
        burst = bits * block_width * block_depth if contiguous else 16 * bits * block_width
    else:
        contiguous = depth * bits // 8 == block_depth
        if reading:
            burst = bits * block_width * block_depth if contiguous else bits * block_depth
        elif block_depth <= 16 and contiguous:
            burst = bits * block_width * block_depth
        else:
            burst = min(512, 16 * bits, block_depth * bits)
    speed = _speed(feature_map.region)
    burst_bytes = max(1, min(speed.burst_bytes, burst // 8))
    return speed.latency_cycles + int(length * speed.burst_bytes // burst_bytes / speed.bytes_per_cycle)


def _elementwise_cycles(op: BlockOp, config: NpuConfig) -> int:
    height, width, depth = op.shape
    per_element = _output_cycles_per_element(op, config)
    elements = height * width * (_ceil(depth, 16) * 16 if op.ofm.bricks else depth)
    moved = max(
        _transfer_cycles(
            part,
            op.block,
            op.shape,
            _volume(_clipped(op.shape, op.block)) * part.dtype.itemsize,
            reading=part is op.ifm,
        )
        for part in (op.ofm, op.ifm)
    )
    commands = (moved / _volume(op.block) + per_element) / 4 * elements
    return max(math.ceil(per_element * elements), math.ceil(commands))


def _kernel_estimate(op: BlockOp, config: NpuConfig) -> Estimate:
    block = _clipped(op.shape, op.block)
    micro = _MICRO_BLOCK[config.macs // config.cores]
    micros: Shape = (_ceil(block[0], micro[0]), _ceil(block[1], micro[1]), _ceil(block[2], micro[2]))
    ifm_block = _ifm_block(op, micro)
    ifm_shape = _ifm_shape(op)
    mac = _mac_cycles_per_block(op, config, micros, _clipped(ifm_shape, ifm_block))
    blocks = _volume(
        (_ceil(op.shape[0], micro[0]), _ceil(op.shape[1], micro[1]), _ceil(op.shape[2], micro[2]))
    )
    count = blocks / _volume(micros)
    output = _output_block_cycles(op, config, block)
    read = _transfer_cycles(
        op.ifm,
        ifm_block,
        ifm_shape,
        _volume(_clipped(ifm_shape, ifm_block)) * op.ifm.dtype.itemsize,
        reading=True,
    )
    write = _transfer_cycles(
        op.ofm, op.block, op.shape, _volume(block) * op.ofm.dtype.itemsize, reading=False
    )
    overlap = abs(write - read) if count > 1 else 0
    command = (overlap + mac + output) / 4
    by_mac, by_output = max(mac, command), max(output, command)
    total = int(by_mac * count) + by_output if by_mac > by_output else by_output * count + by_mac
    return Estimate(int(total + read + write), int(mac * count), _macs(op))


def _macs(op: BlockOp) -> int:
    if op.kind is Kind.POOL:
        return 0
    depth = op.ifm_depth if op.kind is Kind.CONV else 1
    return op.kernel.height * op.kernel.width * _volume(op.shape) * depth


def _ifm_shape(op: BlockOp) -> Shape:
    """The IFM as stored. Its tile tells of rows and columns that a stride leaves out at the end."""
    factor = 2 if op.upscale else 1
    rows, columns, _ = op.ifm_shape
    return (
        max(_ceil(rows, factor), op.ifm.height0),
        max(_ceil(columns, factor), op.ifm.width0),
        op.ifm_depth,
    )


def _ifm_block(op: BlockOp, micro: Shape) -> Shape:
    factor = 2 if op.upscale else 1
    kernel = op.kernel
    rows = _ceil((op.block[0] - 1) * kernel.stride_y + min(kernel.dilated_height, _SUBKERNEL), factor)
    columns = _ceil((op.block[1] - 1) * kernel.stride_x + min(kernel.dilated_width, _SUBKERNEL), factor)
    return _ceil(rows, micro[0]) * micro[0], _ceil(columns, micro[1]) * micro[1], _ifm_block_depth(op)


def _ifm_block_depth(op: BlockOp) -> int:
    per_channel = op.kind is Kind.DEPTHWISE or (op.kind is Kind.POOL and op.mode is not PoolMode.REDUCE_SUM)
    if per_channel:
        return op.block[2]
    narrow = op.kernel.part_kernel_first or op.ifm.dtype.itemsize == 2
    return _ceil(min(op.ifm_depth, 16 if narrow else 32), 8) * 8


def _output_block_cycles(op: BlockOp, config: NpuConfig, block: Shape) -> float:
    cycles = math.ceil(_output_cycles_per_element(op, config) * _volume(block))
    if op.kind is Kind.POOL or op.scales is None:
        return cycles
    # Ten bytes of scale and bias per channel, fetched with the memory's latency in bursts of 256 bytes.
    return max(cycles, 10 * block[2] * _speed(op.scales.region).latency_cycles / 256)


def _subkernels(size: int) -> Iterator[tuple[int, int]]:
    """(elements, how many) of the parts that a kernel's height or width is walked in."""
    if size >= _SUBKERNEL:
        yield _SUBKERNEL, size // _SUBKERNEL
    if size % _SUBKERNEL:
        yield size % _SUBKERNEL, 1


def _mac_cycles_per_block(op: BlockOp, config: NpuConfig, micros: Shape, ifm_block: Shape) -> float:
    total = 0.0
    for width, across in _subkernels(op.kernel.width):
        for height, down in _subkernels(op.kernel.height):
            cycles = _subkernel_cycles(op, config, micros, ifm_block[2], height * width)
            total += across * down * cycles
    takes_all = op.kind is Kind.CONV or op.mode is PoolMode.REDUCE_SUM
    return total * _ceil(op.ifm_depth, ifm_block[2]) if takes_all else total


def _subkernel_cycles(
    op: BlockOp, config: NpuConfig, micros: Shape, ifm_block_depth: int, elements: int
) -> float:
    across = micros[0] * micros[1]
    bits = 8 * op.ifm.dtype.itemsize
    macs = config.macs // config.cores
    weight_floor = 4 * _MICRO_BLOCK[macs][2]
    depth_steps = _ceil(ifm_block_depth, 8)
    per_channel_pool = op.kind is Kind.POOL and op.mode is not PoolMode.REDUCE_SUM
    part_kernel = op.kernel.part_kernel_first and op.kind is Kind.CONV
    if per_channel_pool:
        steps = 1
        cycles = max(4, elements) * _volume(micros) * (1 if macs == 32 else bits / 2)
    elif op.kind is Kind.DEPTHWISE:
        steps = _ceil(elements, 4)
        cycles = max(weight_floor, 4 * across * bits // 8) * steps * micros[2]
    elif part_kernel:
        steps = _ceil(elements, 2 if bits == 16 else 4)
        cycles = max(weight_floor, 4 * across) * steps * micros[2] * depth_steps
    else:
        steps = elements
        cycles = max(weight_floor, 4 * across) * steps * micros[2]
    delay = _delay(op, macs, across, micros[2], steps)
    return cycles + delay * (depth_steps if part_kernel else 1)


def _delay(op: BlockOp, macs: int, across: int, depth: int, steps: int) -> int:
    """Cycles lost between steps when there is only one micro-block to work on."""
    if across != 1:
        return 0
    wide = op.accumulator_bits == 40
    lost = (7 if wide else 3) if macs == 32 else (3 if wide and macs <= 128 else 2)
    if depth == 1:
        return lost * steps
    return lost * (steps - 1) * depth if steps > 1 else 0
