"""The stages of one operation, and what of them nothing hides.

Blocks pass through fetching, MAC unit, output unit and writing, each of which works on another block: the slowest
stage sets the pace. What the first block waits for before the MAC unit begins (`begin`) and what the last one needs
behind it (`end`) comes on top.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Kind
from ethosu_sdk.npu.system_config import Memory, SystemConfig
from ethosu_sdk.npu.timing import blocks, units
from ethosu_sdk.npu.timing.constants import (
    BLOCK_CYCLES,
    FEW_WEIGHTS_TRIPS,
    FIRST_WEIGHTS_BYTES,
    OPERATION_CYCLES,
)
from ethosu_sdk.npu.timing.memories import Stream, read_rate
from ethosu_sdk.npu.timing.traffic import Transfer, beat_bytes, times_read


@dataclass(frozen=True)
class Stages:
    """Cycles of an operation.

    `begin` until the MAC unit starts, `body` of the slowest stage, `end` behind it. `mac`, `output` and `decoder` are
    those of the units, `transfer` those of the busiest memory: each for itself.
    """

    begin: int
    body: int
    end: int
    mac: int = 0
    output: int = 0
    decoder: int = 0
    transfer: int = 0

    @property
    def total(self) -> int:
        """Cycles of the operation by itself."""
        return self.begin + self.body + self.end


def copied(op: DmaOp, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> Stages:
    """A DMA transfer: its latency, and the slower of its two sides."""
    busy = _busy(moved, config, system)
    latency = 0 if op.source_region is None else system.memory(op.source_region).read_latency_cycles
    slowest = int(max(busy.values(), default=op.length))
    return Stages(latency, slowest, 0, transfer=slowest)


def chained(
    op: BlockOp, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig, followers: Sequence[BlockOp] = ()
) -> Stages:
    """A block operation, with those that go on with its results through chaining buffers."""
    mac = sum(units.mac_cycles(part, config) for part in (op, *followers))
    output = sum(units.output_cycles(part, config) for part in (op, *followers))
    decoder = units.decoder_cycles(op, config)
    busy = _busy(moved, config, system)
    transfer = max(busy.values(), default=0.0)
    count = blocks.volume(blocks.counts(op))
    fetched, ready = _first_fetch(op, moved, config, system, mac)
    body = max(ready + mac, output, transfer, decoder) + BLOCK_CYCLES * count
    if times_read(op, config) > 1.0 and config.generation == "u85":
        body += (count - 1) * system.memory(op.ifm.region).read_latency_cycles
    return Stages(
        begin=int(fetched) + OPERATION_CYCLES,
        body=int(body),
        end=int(_last_block(op, output, moved, config, system)),
        mac=mac,
        output=int(output),
        decoder=decoder,
        transfer=int(transfer),
    )


def _busy(moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> dict[Memory, float]:
    """Cycles for which an operation's transfers keep each memory busy."""
    reads: defaultdict[Memory, float] = defaultdict(float)
    total: defaultdict[Memory, int] = defaultdict(int)
    for transfer in moved:
        memory = system.memory(transfer.region)
        size = transfer.beats * beat_bytes(config)
        total[memory] += size
        if not transfer.stream.is_write:
            reads[memory] += size / read_rate(memory, transfer.stream, config)
    return {memory: max(reads[memory], size / memory.bytes_per_cycle) for memory, size in total.items()}


def _first_fetch(
    op: BlockOp, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig, mac: int
) -> tuple[float, float]:
    """Cycles until the first IFM block is there, and those that the MAC unit then still waits for weights."""
    count = blocks.counts(op)
    across = count[0] * count[1]
    ifm = weights = 0.0
    latency = 0
    for transfer in moved:
        memory = system.memory(transfer.region)
        size = transfer.beats * beat_bytes(config)
        if transfer.stream in (Stream.IFM, Stream.IFM_STREAM):
            part = size / (across * times_read(op, config) * (1 if op.takes_all_channels else count[2]))
            ifm = max(ifm, part / read_rate(memory, transfer.stream, config))
            latency = max(latency, memory.read_latency_cycles)
        elif transfer.stream in (Stream.WEIGHTS, Stream.FAST_WEIGHTS):
            part = min(FIRST_WEIGHTS_BYTES, size / (across * count[2]))
            weights += part / read_rate(memory, transfer.stream, config)
            if op.kind is Kind.DEPTHWISE:
                latency += FEW_WEIGHTS_TRIPS * memory.read_latency_cycles
            else:
                latency = max(latency, memory.read_latency_cycles)
    if not mac:
        return latency + ifm, 0.0
    first = units.decoder_cycles(op, config) / max(1, across * count[2])
    return latency + ifm, max(0.0, max(weights, min(first, weights * 4)) - ifm)


def _last_block(
    op: BlockOp, output: float, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig
) -> float:
    """Cycles of the output unit and of writing for the last OFM block."""
    share = 1.0
    for size, block in zip(op.shape, op.block, strict=True):
        share *= (size % block or min(size, block)) / size
    written = 0.0
    for transfer in moved:
        if transfer.stream is Stream.OFM:
            memory = system.memory(transfer.region)
            written = memory.write_latency_cycles + share * transfer.beats * beat_bytes(config) / memory.bytes_per_cycle
    return share * output + written
