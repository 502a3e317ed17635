"""Cycles of the NPU's units, each for itself: MAC unit, output unit, weight decoder."""

from __future__ import annotations

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.geometry import ceil_div, round_up, volume
from ethosu_sdk.npu.operation import BlockOp, ElementwiseMode, Kind, PoolMode
from ethosu_sdk.npu.timing import blocks
from ethosu_sdk.npu.timing.constants import (
    DECODER_BYTES_PER_CYCLE,
    DECODER_WEIGHTS_PER_CYCLE,
    DEPTH_FIRST,
    FAST_WEIGHTS_PER_CYCLE,
    MAC_DEPTH,
    PART_KERNEL_DEPTH_U85,
    POOL_CYCLES,
    STEP_ELEMENTS_U55,
)
from ethosu_sdk.npu.timing.tables import DIVISION_CYCLES, OUTPUT_U55, OUTPUT_U85

_TURNED = frozenset(
    {(1, 0, 2), (1, 2, 0), (2, 1, 0)}
)  # orders of the OFM's axes that put columns before rows
_COLUMNS = 1  # the axis of `Output.reverse`


def macs(op: BlockOp) -> int:
    """Multiply-accumulates of weights or of a matrix; pooling has none."""
    if op.kind in (Kind.POOL, Kind.ELEMENTWISE, Kind.RESIZE):
        return 0
    depth = op.ifm_depth if op.takes_all_channels else 1
    count = op.kernel.height * op.kernel.width * volume(op.shape) * depth
    return count // 2 if op.weights is not None and op.weights.sparse else count


def mac_cycles(op: BlockOp, config: NpuConfig) -> int:
    """Cycles in which the MAC unit works: a step per micro-block and kernel element, for each MAC_DEPTH channels."""
    if op.kind is Kind.ELEMENTWISE:
        return 0
    steps = _elements(op, config) * op.ifm.dtype.itemsize
    if op.takes_all_channels:
        by_parts = op.kind is Kind.CONV and op.kernel.part_kernel_first
        least = DEPTH_FIRST
        if by_parts:
            least = PART_KERNEL_DEPTH_U85 if config.generation == "u85" else MAC_DEPTH
        steps *= round_up(op.ifm_depth, least) // MAC_DEPTH
    cores = 1 if config.generation == "u85" else config.cores
    cycles = ceil_div(blocks.micro_blocks(op, config) * steps, cores)
    return cycles // 2 if op.weights is not None and op.weights.sparse else cycles


def _elements(op: BlockOp, config: NpuConfig) -> int:
    """Cycles that a micro-block takes to walk the kernel."""
    elements = op.kernel.height * op.kernel.width
    if op.kind is Kind.RESIZE:
        return 1
    if op.kind is Kind.POOL and op.mode is not PoolMode.REDUCE_SUM:
        return POOL_CYCLES * elements
    walked_first = op.kind is Kind.DEPTHWISE or (op.kind is Kind.CONV and op.kernel.part_kernel_first)
    if walked_first and config.generation == "u55":
        return round_up(elements, STEP_ELEMENTS_U55)
    return elements


def output_cycles(op: BlockOp, config: NpuConfig) -> float:
    """Cycles of the output unit for all elements of the OFM."""
    if op.is_partial:
        return 0.0
    rate = _rate_u85(op, config) if config.generation == "u85" else _rate_u55(op, config)
    return rate * volume(op.shape)


def _rate_u55(op: BlockOp, config: NpuConfig) -> float:
    table = OUTPUT_U55[config.npu, config.macs]
    elementwise = op.kind is Kind.ELEMENTWISE
    if elementwise and op.ifm.dtype.itemsize == 4:
        return table.binary_32 if len(op.operands) > 1 else table.unary_32
    if op.mode is ElementwiseMode.MUL:
        return table.mul_to_32 if op.ofm.dtype.itemsize == 4 else table.wide
    if not elementwise and op.accumulator_bits == 40:
        return table.wide
    if op.mode in (ElementwiseMode.ADD, ElementwiseMode.SUB):
        return table.add
    return table.max_pool if op.mode is PoolMode.MAX else table.other


def _rate_u85(op: BlockOp, config: NpuConfig) -> float:
    """The result passes the output unit once: what takes longest of computing, looking up and turning it counts."""
    table = OUTPUT_U85[config.macs]
    output = op.output
    turns = output.transpose in _TURNED or output.reverse == _COLUMNS
    has_pass = output.lut is not None or output.transpose is not None or output.reverse is not None
    passing = (table.turned if turns else table.table) if has_pass else 0.0
    itemsize = (op.ofm.dtype if output.lut is None else output.lut.index).itemsize
    if op.mode is ElementwiseMode.DIV:
        cycles = DIVISION_CYCLES
    elif (op.ofm.chain is not None or has_pass) and 4 in (itemsize, op.ifm.dtype.itemsize):
        cycles = table.chained_32
    elif itemsize == 8:
        cycles = table.to_64
    elif len(op.operands) > 1 and op.ifm.dtype.itemsize == 4:
        cycles = table.binary_32 if itemsize == 4 else table.chained_32
    else:
        cycles = {1: table.to_8, 2: table.to_16, 4: table.to_32}[itemsize]
    return max(cycles, passing)


def decoder_cycles(op: BlockOp, config: NpuConfig) -> int:
    """Cycles in which the weight decoder works: for every block across the OFM it decodes all weights.

    Encoded bytes limit it, and the number of weights where they are encoded in few bits.
    """
    if op.weights is None or not op.weights.streams:
        return 0
    down, across, _ = blocks.counts(op)
    weights = (
        op.kernel.height * op.kernel.width * op.shape[2] * (op.ifm_depth if op.takes_all_channels else 1)
    )
    if op.weights.fast:
        return down * across * (weights // FAST_WEIGHTS_PER_CYCLE // config.cores)
    size = sum(stream.length for stream in op.weights.streams)
    once = max(size / DECODER_BYTES_PER_CYCLE, weights / DECODER_WEIGHTS_PER_CYCLE)
    return int(down * across * once / config.cores)
