"""Cycles of the MAC unit and of the output unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_geometry import SUBKERNEL, Geometry, ceil_div, is_per_channel_pool, volume
from ethosu_sdk.npu.operation import BlockOp, ElementwiseMode, Kind, PoolMode
from ethosu_sdk.npu.performance_tables import DIVISION_CYCLES, OUTPUT_U55, OUTPUT_U85

_TURNED = frozenset(
    {(1, 0, 2), (1, 2, 0), (2, 1, 0)}
)  # orders of the OFM's axes that put columns before rows
_COLUMNS = 1  # the axis of `Output.reverse`


def output_cycles_per_element(op: BlockOp, chained: Sequence[BlockOp], config: NpuConfig) -> float:
    """Cycles of the output unit per OFM element of `op` and of the operations that are chained to it."""
    if config.generation == "u85":
        return sum(_output_u85(part, config) for part in (op, *chained))
    return _output_u55(op, config)


def _output_u55(op: BlockOp, config: NpuConfig) -> float:
    table = OUTPUT_U55[config.npu, config.macs]
    elementwise = op.kind is Kind.ELEMENTWISE
    if elementwise and op.ifm.dtype.itemsize == 4:
        cycles = table.binary_32 if len(op.operands) > 1 else table.unary_32
    elif op.mode is ElementwiseMode.MUL:
        cycles = table.mul_to_32 if op.ofm.dtype.itemsize == 4 else table.wide
    elif not elementwise and op.accumulator_bits == 40:
        cycles = table.wide
    elif op.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        cycles = table.add
    else:
        cycles = table.max_pool if op.mode is PoolMode.MAX else table.other
    # Vela takes a clamp for cheaper than no activation function; one that is a layer by itself does not count.
    is_clamped = _narrows(op) and op.output.lut is None and not _is_copy(op)
    return cycles if is_clamped else max(cycles, table.least)


def _narrows(op: BlockOp) -> bool:
    """Whether the clamp leaves less than the range of the OFM's type."""
    clamp = op.output.clamp
    if clamp is None or op.ofm.dtype.itemsize > 2:
        return False
    limits = np.iinfo(op.ofm.dtype)
    return clamp != (limits.min, limits.max)


def _output_u85(op: BlockOp, config: NpuConfig) -> float:
    """The result passes the output unit once: what takes longest of computing, looking up and turning it counts."""
    table = OUTPUT_U85[config.macs]
    output = op.output
    turns = output.transpose in _TURNED or output.reverse == _COLUMNS
    has_pass = output.lut is not None or output.transpose is not None or output.reverse is not None
    passing = (table.turned if turns else table.table) if has_pass else 0.0
    if _is_copy(op) and (has_pass or _narrows(op)):
        return max(passing, table.table)
    itemsize = (op.ofm.dtype if output.lut is None else output.lut.index).itemsize
    stays_inside = op.ofm.chain is not None or has_pass
    if op.mode is ElementwiseMode.DIV:
        cycles = DIVISION_CYCLES
    elif stays_inside and 4 in (itemsize, op.ifm.dtype.itemsize):
        cycles = table.chained_32
    elif itemsize == 8:
        cycles = table.to_64
    elif len(op.operands) > 1 and op.ifm.dtype.itemsize == 4:
        cycles = table.binary_32 if itemsize == 4 else table.chained_32
    else:
        cycles = {1: table.to_8, 2: table.to_16, 4: table.to_32}[itemsize]
    return max(cycles, passing)


def _is_copy(op: BlockOp) -> bool:
    """Pooling over 1x1 without scaling: what a clamp, a look-up or a change of the axes becomes that is a layer."""
    scaling = (op.output.scale, op.output.shift) if op.output.scaled else (1, 0)
    return op.kind is Kind.POOL and (op.kernel.height, op.kernel.width) == (1, 1) and scaling == (1, 0)


def mac_cycles_per_block(op: BlockOp, geometry: Geometry, config: NpuConfig) -> int:
    """Cycles of the MAC unit for one OFM block."""
    total = 0
    for width, across in _subkernels(op.kernel.width):
        for height, down in _subkernels(op.kernel.height):
            total += across * down * _subkernel_cycles(op, geometry, config, height * width)
    if op.takes_all_channels:
        total *= ceil_div(op.ifm_depth, geometry.clipped_ifm[2])
    return total if config.generation == "u85" else total // config.cores


def macs(op: BlockOp) -> int:
    """Multiply-accumulates of weights or of a matrix; pooling has none."""
    if op.kind in (Kind.POOL, Kind.ELEMENTWISE, Kind.RESIZE):
        return 0
    depth = op.ifm_depth if op.takes_all_channels else 1
    count = op.kernel.height * op.kernel.width * volume(op.shape) * depth
    return count // 2 if op.weights is not None and op.weights.sparse else count


def _subkernels(size: int) -> Iterator[tuple[int, int]]:
    """(elements, how many) of the parts that a kernel's height or width is walked in."""
    if size >= SUBKERNEL:
        yield SUBKERNEL, size // SUBKERNEL
    if size % SUBKERNEL:
        yield size % SUBKERNEL, 1


def _subkernel_cycles(op: BlockOp, geometry: Geometry, config: NpuConfig, elements: int) -> int:
    down, across, deep = geometry.micros
    pixels = down * across
    itemsize = op.ifm.dtype.itemsize
    is_u85 = config.generation == "u85"
    # A block with few pixels waits for its weights.
    floor = 4 * geometry.micro[2] // (config.cores if is_u85 else 1)
    depth = geometry.clipped_ifm[2]
    part_kernel = op.kind is Kind.CONV and op.kernel.part_kernel_first
    if is_per_channel_pool(op):
        steps = 1
        cycles = max(4, elements) * pixels * deep * (1 if config.macs == 32 else 4 * itemsize)
    elif op.kind is Kind.DEPTHWISE:
        steps = ceil_div(elements, 4)
        cycles = max(floor, 4 * pixels * itemsize) * steps * deep
    elif part_kernel:
        steps = ceil_div(elements, 2 if itemsize == 2 else 4)
        cycles = max(floor, 4 * pixels) * steps * deep * ceil_div(depth, 8)
    else:
        steps = elements
        cycles = max(floor, (depth // 8 if is_u85 else 4) * pixels) * steps * deep
        cycles *= itemsize if is_u85 else 1
    if is_u85 and op.weights is not None and op.weights.sparse:
        cycles //= 2
    return cycles + _delay(op, geometry, config, steps) * (ceil_div(depth, 8) if part_kernel else 1)


def _delay(op: BlockOp, geometry: Geometry, config: NpuConfig, steps: int) -> int:
    """Cycles lost between steps when there is only one micro-block to work on."""
    down, across, deep = geometry.micros
    is_wide = op.accumulator_bits != 32
    is_smallest = config.macs == 32
    lost = 7 if is_smallest and is_wide else 3 if is_smallest else 2
    if is_wide and not is_smallest and config.macs <= 128:
        lost = 3
    delay = 0
    if down * across == 1:
        delay = lost * steps if deep == 1 else lost * (steps - 1) * deep
    if is_smallest and is_wide and deep > 1 and 1 in (down, across):
        delay += lost * deep
    return delay
