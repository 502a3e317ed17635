"""Cycles of the NPU's units and of its memory ports, each for itself, and the blocks that an operation works in."""

from __future__ import annotations

import math
from enum import Enum

from ethosu_sdk.npu.config import NpuConfig, ceil_div, most_ifm_block_channels, round_up, subkernel, volume
from ethosu_sdk.npu.operation import BlockOp, ElementwiseMode, Kind, PoolMode, Shape
from ethosu_sdk.npu.timing import constants, fitted
from ethosu_sdk.npu.timing.systems import Memory

_MOST_EXTENTS = 4096  # along an axis that are worked out one by one: streams may be hostile


class Stream(Enum):
    """What the bytes are for."""

    COPY = "copy"
    COPY_WRITE = "copy_write"
    IFM = "ifm"
    IFM_STREAM = "ifm_stream"
    WEIGHTS = "weights"
    FAST_WEIGHTS = "fast_weights"
    SCALES = "scales"
    OFM = "ofm"

    @property
    def is_write(self) -> bool:
        """Whether these bytes are written."""
        return self in (Stream.OFM, Stream.COPY_WRITE)


def bus_rate(memory: Memory, config: NpuConfig) -> float:
    """Bytes per cycle that all reads of `memory` reach together."""
    if config.generation == "u55":
        return memory.bytes_per_cycle
    return min(memory.bytes_per_cycle, constants.READ_EFFICIENCY * memory.ports * config.beat_bytes)


def read_rate(memory: Memory, stream: Stream, config: NpuConfig, run_bytes: int = 0) -> float:
    """Bytes per cycle that `stream` reads, in pieces of `run_bytes` that lie one behind the other (0: in one piece).

    The stream's read buffers limit it: each waits for the memory's latency.
    """
    waited = memory.read_latency_cycles + fitted.FITTED[config.generation].read_pipeline_cycles
    if config.generation == "u55":
        words = constants.READ_WORDS_U55 * (config.cores if stream is Stream.WEIGHTS else 1)
        latency = float(memory.read_latency_cycles)
        return min(
            memory.bytes_per_cycle,
            _run_rate(memory, run_bytes, memory.max_reads, latency),
            words * 16 / waited,
        )
    buffers = constants.READ_BUFFERS[config.macs]
    own = {
        Stream.IFM: buffers.ifm,
        Stream.IFM_STREAM: buffers.ifm_stream,
        Stream.FAST_WEIGHTS: buffers.fast_weights,
        Stream.SCALES: buffers.scales,
    }
    return min(
        bus_rate(memory, config),
        _run_rate(memory, run_bytes, memory.max_reads, waited),
        (1.0 if stream is Stream.SCALES else constants.READ_EFFICIENCY)
        * own.get(stream, buffers.weights)
        * 16
        / waited,
    )


def write_rate(memory: Memory, run_bytes: int = 0) -> float:
    """Bytes per cycle that are written, in pieces of `run_bytes`."""
    waited = float(memory.write_latency_cycles)
    return min(memory.bytes_per_cycle, _run_rate(memory, run_bytes, memory.max_writes, waited))


def _run_rate(memory: Memory, run_bytes: int, most: int, waited: float) -> float:
    """Bytes per cycle of transactions that are shorter than a burst: each is under way for `waited` cycles.

    There are `most` of them per port, and at least as many as the memory needs to reach its rate with whole bursts.
    """
    if not waited or not 0 < run_bytes < memory.burst_bytes:
        return math.inf
    under_way = max(most * memory.ports, memory.bytes_per_cycle * waited / memory.burst_bytes)
    return under_way * run_bytes / waited


def _micro_block(op: BlockOp) -> Shape:
    """One row of four instead of two rows of two, where the OFM has but one row of an even number of columns."""
    height, width, depth = op.micro_block
    if height == 2 and op.kind is Kind.CONV and op.kernel.height == 1 and op.shape[0] == 1:
        return (1, 4, depth) if op.shape[1] % 2 == 0 else op.micro_block
    return height, width, depth


def _whole_units(op: BlockOp, depth: int) -> int:
    """`depth` filled up to the units in which Ethos-U85 keeps the IFM."""
    itemsize = op.ifm.dtype.itemsize
    # Nothing is known about micro-blocks that Vela never chooses.
    units = constants.IFM_UNITS.get(op.micro_block, ((*op.micro_block[:2], 1),) * 3)
    unit = units[(depth * itemsize > 16) + (depth * itemsize > 32)]
    return round_up(depth, unit[2] * 16 // itemsize)


def counts(op: BlockOp) -> Shape:
    """OFM blocks along each axis."""
    (height, width, depth), block = op.shape, op.block
    return ceil_div(height, block[0]), ceil_div(width, block[1]), ceil_div(depth, block[2])


def micro_blocks(op: BlockOp, config: NpuConfig) -> int:
    """Micro-blocks of all OFM blocks: each block is filled up with them for itself."""
    micro = op.micro_block if config.generation == "u85" else _micro_block(op)
    found = 1
    for size, block, part in zip(op.shape, op.block, micro, strict=True):
        whole, rest = divmod(size, block)
        found *= whole * ceil_div(block, part) + ceil_div(rest, part)
    return found


def ifm_spans(op: BlockOp, axis: int, config: NpuConfig) -> list[tuple[int, int]]:
    """The rows (axis 0) or columns (axis 1) of the stored IFM that OFM blocks along that axis read: (first, count).

    Rows that two blocks need (the halo) are read twice. On Ethos-U55 and Ethos-U65, so are those that two parts of a
    kernel need which is larger than 8x8, dilation included. Padding is not read.
    """
    kernel, size = op.kernel, op.ifm_shape[axis]
    stride, dilation = ((kernel.stride_y, kernel.dilation_y), (kernel.stride_x, kernel.dilation_x))[axis]
    length = (kernel.height, kernel.width)[axis]
    before = (op.padding.top, op.padding.left)[axis]
    factor = 2 if op.upscale else 1
    walked = length if config.generation == "u85" else subkernel(dilation)
    count, parts = ceil_div(op.shape[axis], op.block[axis]), ceil_div(length, walked)
    if count * parts > _MOST_EXTENTS:  # no network has so many: the borders do not matter
        span = (op.block[axis] - 1) * stride + min(length, walked) * dilation
        return [(0, count * parts * ceil_div(min(size, span), factor))]
    spans = []
    for start in range(0, op.shape[axis], op.block[axis]):
        end = min(start + op.block[axis], op.shape[axis])
        for part in range(0, length, walked):
            last_element = min(part + walked, length) - 1
            first = max(0, start * stride - before + part * dilation)
            last = min(size, (end - 1) * stride - before + last_element * dilation + 1)
            spans.append((first // factor, max(0, ceil_div(last, factor) - first // factor)))
    return spans


def ifm_block_depth(op: BlockOp, config: NpuConfig) -> int:
    """Channels of an IFM block, where every OFM channel depends on all of them."""
    depth = most_ifm_block_channels(op, config) if op.takes_all_channels else op.block[2]
    if config.generation == "u85":
        return depth if op.kind in (Kind.CONV, Kind.MATMUL) else _whole_units(op, depth)
    if not op.takes_all_channels:
        return depth
    return round_up(min(op.ifm_depth, depth), 4 if op.ifm.dtype.itemsize == 2 else 8)


def subkernels(op: BlockOp) -> int:
    """Parts in which a kernel is walked that is larger than 8x8, dilation included. Each reads its IFM for itself."""
    if op.kind in (Kind.ELEMENTWISE, Kind.RESIZE):
        return 1
    kernel = op.kernel
    high, wide = subkernel(kernel.dilation_y), subkernel(kernel.dilation_x)
    return ceil_div(kernel.height, high) * ceil_div(kernel.width, wide)


# Orders of the OFM's axes that put columns before rows.
_TURNED = frozenset({(1, 0, 2), (1, 2, 0), (2, 1, 0)})


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
        least = constants.DEPTH_FIRST
        if by_parts:
            least = constants.PART_KERNEL_DEPTH_U85 if config.generation == "u85" else constants.MAC_DEPTH
        steps *= round_up(op.ifm_depth, least) // constants.MAC_DEPTH
    cores = 1 if config.generation == "u85" else config.cores
    cycles = ceil_div(micro_blocks(op, config) * steps, cores)
    return cycles // 2 if op.weights is not None and op.weights.sparse else cycles


def _elements(op: BlockOp, config: NpuConfig) -> int:
    """Cycles that a micro-block takes to walk the kernel."""
    elements = op.kernel.height * op.kernel.width
    if op.kind is Kind.RESIZE:
        return 1
    if op.kind is Kind.POOL and op.mode is not PoolMode.REDUCE_SUM:
        return constants.POOL_CYCLES * elements
    walked_first = op.kind is Kind.DEPTHWISE or (op.kind is Kind.CONV and op.kernel.part_kernel_first)
    if walked_first and config.generation == "u55":
        return round_up(elements, constants.STEP_ELEMENTS_U55)
    return elements


def output_cycles(op: BlockOp, config: NpuConfig) -> float:
    """Cycles of the output unit for all elements of the OFM."""
    if op.is_partial:
        return 0.0
    rate = _rate_u85(op, config) if config.generation == "u85" else _rate_u55(op, config)
    return rate * volume(op.shape)


def _rate_u55(op: BlockOp, config: NpuConfig) -> float:
    table = constants.OUTPUT_U55[config.npu, config.macs]
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
    table = constants.OUTPUT_U85[config.macs]
    output = op.output
    turns = output.transpose in _TURNED or output.reverse == 1  # columns
    has_pass = output.lut is not None or output.transpose is not None or output.reverse is not None
    passing = (table.turned if turns else table.table) if has_pass else 0.0
    itemsize = (op.ofm.dtype if output.lut is None else output.lut.index).itemsize
    if op.mode is ElementwiseMode.DIV:
        cycles = constants.DIVISION_CYCLES
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
    down, across, _ = counts(op)
    weights = (
        op.kernel.height * op.kernel.width * op.shape[2] * (op.ifm_depth if op.takes_all_channels else 1)
    )
    if op.weights.fast:
        return down * across * (weights // constants.FAST_WEIGHTS_PER_CYCLE // config.cores)
    size = sum(stream.length for stream in op.weights.streams)
    once = max(size / constants.DECODER_BYTES_PER_CYCLE, weights / constants.DECODER_WEIGHTS_PER_CYCLE)
    return int(down * across * once / constants.DECODERS.get((config.npu, config.macs), config.cores))
