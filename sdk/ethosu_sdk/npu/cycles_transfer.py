"""What an operation moves to and from memory, and the cycles that this takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_geometry import (
    SUBKERNEL,
    Geometry,
    ceil_div,
    clipped,
    divided,
    is_per_channel_pool,
    round_up,
    volume,
)
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Kind, Shape
from ethosu_sdk.npu.performance_tables import READ_BUFFERS
from ethosu_sdk.npu.system_config import Memory, SystemConfig

_BRICK = 16
_UTILISATION = 0.8  # of a port's transactions, and again of the time, on Ethos-U85
_READ_BUFFER_BYTES = 16


class Channel(Enum):
    """The parts of an Ethos-U85 that access memory; READ_BUFFERS limits those that read."""

    COPY = "copy"
    IFM_STREAM = "ifm_stream"
    WEIGHTS = "weights"
    FAST_WEIGHTS = "fast_weights"
    IFM = "ifm"
    SCALES = "scales"
    WRITE = "write"


@dataclass(frozen=True)
class Transfer:
    """`size` bytes that one channel moves, inflated where bursts are short."""

    memory: Memory
    channel: Channel
    size: int


@dataclass(frozen=True)
class _Part:
    """A feature map with its whole shape and the block in which it is moved."""

    feature_map: FeatureMap
    memory: Memory
    shape: Shape
    block: Shape


def bandwidth(memory: Memory, channel: Channel, config: NpuConfig) -> float:
    """Bytes per cycle that `channel` moves.

    On Ethos-U85 transactions under way and read buffers limit it. Single precision, as in Vela.
    """
    if config.generation == "u55":
        return memory.bytes_per_cycle
    if channel is Channel.WRITE:
        limit, under_way, latency = float("inf"), memory.max_writes, memory.write_latency_cycles
    else:
        buffers = getattr(READ_BUFFERS[config.macs], channel.value)
        limit = buffers / max(memory.burst_bytes // _READ_BUFFER_BYTES, 1)
        under_way, latency = memory.max_reads, memory.read_latency_cycles
    transactions = min(np.float32(limit), np.float32(under_way * memory.ports * _UTILISATION))
    if not latency:
        return memory.bytes_per_cycle
    by_latency = np.float32(
        float(np.float32(memory.burst_bytes) * transactions / np.float32(latency)) * _UTILISATION
    )
    return min(memory.bytes_per_cycle, float(by_latency))


def _inflated(part: _Part, size: int, cores: int, *, reading: bool) -> int:
    """`size` as if every burst were a whole one.

    Vela takes rows for contiguous when their stride equals the block's depth, whatever they hold.
    """
    feature_map, shape, block = part.feature_map, part.shape, part.block
    itemsize = feature_map.dtype.itemsize
    _, block_width, block_depth = block
    bits = 8 * itemsize
    if feature_map.bricks:
        if shape[1] * itemsize * _BRICK == block_depth:
            burst = bits * block_width * block_depth
        else:
            burst = _BRICK * bits * block_width * (1 if reading else cores)
    elif shape[2] * itemsize == block_depth and (reading or block_depth <= _BRICK):
        burst = bits * block_width * block_depth
    elif reading:
        burst = bits * block_depth
    else:
        burst = min(512, _BRICK * bits * cores, block_depth * bits)
    return size * part.memory.burst_bytes // max(1, min(part.memory.burst_bytes, burst // 8))


def _cycles(size: int, bytes_per_cycle: float) -> int:
    return int(np.float32(size) / np.float32(bytes_per_cycle))


def block_read_cycles(op: BlockOp, geometry: Geometry, system: SystemConfig, config: NpuConfig) -> int:
    """Cycles until the first IFM block is there; with two operands, the slower one."""
    cycles = 0
    for part in _read(op, geometry, system):
        size = volume(clipped(part.shape, part.block)) * op.ifm.dtype.itemsize
        moved = _inflated(part, size, config.cores, reading=True)
        cycles = max(cycles, part.memory.read_latency_cycles + _cycles(moved, part.memory.bytes_per_cycle))
    return cycles


def block_write_cycles(op: BlockOp, geometry: Geometry, system: SystemConfig, config: NpuConfig) -> int:
    """Cycles until the last OFM block is written."""
    part = _written(op, geometry, system)
    size = volume(geometry.clipped) * op.ofm.dtype.itemsize
    moved = _inflated(part, size, config.cores, reading=False)
    return part.memory.write_latency_cycles + _cycles(moved, part.memory.bytes_per_cycle)


def _memory(feature_map: FeatureMap, system: SystemConfig) -> Memory:
    return system.arena if feature_map.chain is not None else system.memory(feature_map.region)


def _written(op: BlockOp, geometry: Geometry, system: SystemConfig) -> _Part:
    return _Part(op.ofm, _memory(op.ofm, system), geometry.ofm, geometry.block)


def _read(op: BlockOp, geometry: Geometry, system: SystemConfig) -> Iterator[_Part]:
    if op.kind is not Kind.ELEMENTWISE:
        yield _Part(op.ifm, _memory(op.ifm, system), geometry.ifm, geometry.ifm_block)
        if op.ifm2 is not None:
            yield _Part(op.ifm2, _memory(op.ifm2, system), _ifm2_shape(op), geometry.ifm_block)
        return
    for operand in op.operands:
        if operand.scalar is not None:  # Vela prices it as the constant that it was
            yield _Part(operand.feature_map, system.constants, (1, 1, 1), geometry.block)
            continue
        height, width, depth = (
            1 if repeated else size for size, repeated in zip(op.shape, operand.broadcast, strict=True)
        )
        memory = _memory(operand.feature_map, system)
        yield _Part(operand.feature_map, memory, (height, width, depth), geometry.block)


def _ifm2_shape(op: BlockOp) -> Shape:
    """A MATMUL's matrix is as high as its OFM, has a column per OFM channel and the IFM's channels."""
    return (op.shape[0], op.shape[2], op.ifm_depth) if op.kind is Kind.MATMUL else op.shape


def transfers(op: BlockOp, geometry: Geometry, system: SystemConfig, config: NpuConfig) -> list[Transfer]:
    """All that `op` moves. Chained feature maps stay inside the NPU."""
    found = [
        Transfer(part.memory, channel, _inflated(part, size, config.cores, reading=reading))
        for part, channel, size, reading in _moved(op, geometry, system, config)
        if part.feature_map.chain is None
    ]
    blocks = divided(geometry.ofm, geometry.clipped)
    fetches = blocks[0] * blocks[1]  # the weights come once for every block across the OFM
    if op.weights is not None:
        channel = Channel.FAST_WEIGHTS if op.weights.fast else Channel.WEIGHTS
        for stream in op.weights.streams:
            found.append(Transfer(system.memory(stream.region), channel, fetches * stream.length))
        for stream in op.scales.streams if op.scales is not None else ():
            found.append(Transfer(system.memory(stream.region), Channel.SCALES, fetches * stream.length))
    return found


def _moved(
    op: BlockOp, geometry: Geometry, system: SystemConfig, config: NpuConfig
) -> Iterator[tuple[_Part, Channel, int, bool]]:
    """(feature map, channel, bytes, whether they are read)"""
    for index, part in enumerate(_read(op, geometry, system)):
        size = _read_elements(op, geometry, part, index, config) * part.feature_map.dtype.itemsize
        streamed = op.kind in (Kind.ELEMENTWISE, Kind.RESIZE) or (op.kind is Kind.MATMUL and index == 1)
        yield part, Channel.IFM_STREAM if streamed else Channel.IFM, size, True
    if not op.is_partial:
        size = volume(_stored(geometry.ofm, op.ofm)) * op.ofm.dtype.itemsize
        yield _written(op, geometry, system), Channel.WRITE, size, False


def _stored(shape: Shape, feature_map: FeatureMap) -> Shape:
    """`shape` with the channels that bricks are filled up with."""
    return (shape[0], shape[1], round_up(shape[2], _BRICK)) if feature_map.bricks else shape


def _read_elements(op: BlockOp, geometry: Geometry, part: _Part, index: int, config: NpuConfig) -> int:
    """Elements that are read of an operand: of an IFM once per OFM block and part of the kernel."""
    if op.kind is Kind.ELEMENTWISE:
        if part.shape == (1, 1, 1) and op.operands[index].scalar is not None:
            return 0
        return volume(_stored(geometry.ofm if config.generation == "u55" else part.shape, part.feature_map))
    if op.kind is Kind.RESIZE or index == 1:
        return volume(_stored(part.shape, part.feature_map))
    down, across, deep = divided(geometry.ofm, geometry.clipped)
    if op.kind is Kind.DEPTHWISE or is_per_channel_pool(op):
        deep = 1
    kernel_parts = ceil_div(op.kernel.height, SUBKERNEL) * ceil_div(op.kernel.width, SUBKERNEL)
    rows, columns, _ = geometry.clipped_ifm
    depth = _stored(geometry.ifm, part.feature_map)[2]
    return rows * columns * depth * kernel_parts * down * across * deep


def access_cycles(moved: list[Transfer], config: NpuConfig) -> dict[Memory, int]:
    """Cycles that each memory is busy: with all bytes, or on Ethos-U85 with the busiest channel."""
    by_memory: defaultdict[Memory, defaultdict[Channel, int]] = defaultdict(lambda: defaultdict(int))
    for transfer in moved:
        by_memory[transfer.memory][transfer.channel] += transfer.size
    return {
        memory: max(
            _cycles(sum(channels.values()), memory.bytes_per_cycle),
            *(_cycles(size, bandwidth(memory, channel, config)) for channel, size in channels.items()),
        )
        for memory, channels in by_memory.items()
    }


def dma_cycles(op: DmaOp, system: SystemConfig, config: NpuConfig) -> int:
    """Cycles of a DMA transfer: those of its slower side. The NPU's own memory takes a byte per cycle."""
    size = op.length * op.counts[0] * op.counts[1]
    source = system.memory(op.source_region)
    read = _cycles(size, bandwidth(source, Channel.COPY, config)) + source.read_latency_cycles
    if op.target_region is None:
        # Ethos-U55 and Ethos-U65 are charged the source's write latency.
        latency = source.write_latency_cycles if config.generation == "u55" else 0
        return max(read, size + latency)
    target = system.memory(op.target_region)
    waits = source if config.generation == "u55" else target
    written = _cycles(size, bandwidth(target, Channel.WRITE, config))
    return max(read, written + waits.write_latency_cycles)
