"""The stages of one operation, the part of each that does not overlap with others, and what the MACs wait for.

Blocks pass through fetching, MAC unit, output unit and writing, each of which works on another block: the slowest
stage sets the pace. What the first block waits for before the MAC unit begins (`begin`) and what the last one needs
behind it (`end`) comes on top.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.npu.config import NpuConfig, volume
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Kind
from ethosu_sdk.npu.timing import constants, fitted, units
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.npu.timing.traffic import Transfer, times_read
from ethosu_sdk.npu.timing.units import Stream, bus_rate, read_rate, write_rate

_WEIGHTS = (Stream.WEIGHTS, Stream.FAST_WEIGHTS)


@dataclass(frozen=True)
class Stages:
    """Cycles of an operation.

    `begin` until the first IFM block is there, `weights` until the first weights are, which can be earlier than the
    operation before ends (not where they are `serial`); `body` of computing, `end` behind it. Of the first block,
    `first_mac` are those of computing and `first_scales` those until its scales are there, which its output needs;
    `scales` until all are. `mac`, `output` and `decoder` are those of the units, `transfer` those of the busiest
    memory: each for itself. `latency` is that of the slowest read, `last_mac` the computing of the last block where
    that waits for all weights. `needs` are the cycles for which it keeps the memory of each port busy. Of `body`,
    `refetch` are waits for IFM blocks that were not kept, and `pieces` those for pieces of weights. `slowest` is the
    stream that moves longest.
    """

    begin: int
    body: int
    end: int
    weights: int = 0
    latency: int = 0
    last_mac: int = 0
    first_mac: int = 0
    first_scales: int = 0
    scales: int = 0
    serial: bool = False
    blocks: int = 1
    mac: int = 0
    output: int = 0
    decoder: int = 0
    transfer: int = 0
    needs: tuple[float, ...] = ()
    refetch: int = 0
    pieces: int = 0
    slowest: Stream | None = None
    ifm_bits: int = 0

    @property
    def total(self) -> int:
        """Cycles of the operation by itself."""
        return self.ended(0, 0, 0)

    def ended(self, issued: int, free: int, scaled: int) -> int:
        """When the operation ends whose command was read at `issued`.

        Its IFM may be fetched from `free` on, its scales from `scaled` on.
        """
        fetched = (
            max(free + self.latency + self.transfer, issued + self.latency + self.decoder) + self.last_mac
        )
        return max(self._put_out(issued, free, scaled), fetched, scaled + self.scales) + self.end

    def behind(self, issued: int, free: int, scaled: int) -> int:
        """Cycles by which the output unit, or the scales that it needs, hold up the MAC unit."""
        done = max(self._put_out(issued, free, scaled), scaled + self.scales)
        return max(0, done - self._ready(issued, free) - self.mac - self.refetch - self.pieces)

    def _ready(self, issued: int, free: int) -> int:
        """When the MAC unit can begin."""
        if self.serial:
            return free + self.weights + self.begin
        return max(free + self.begin, issued + self.weights)

    def _put_out(self, issued: int, free: int, scaled: int) -> int:
        """When the last block is computed and the output unit can go on with it."""
        output = max(self._ready(issued, free) + self.first_mac, scaled + self.first_scales)
        return output + self.body - self.first_mac


def copied(op: DmaOp, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> Stages:
    """A DMA transfer: its latency, and the slower of its two sides."""
    each = busy(moved, config, system)
    latency = 0 if op.source_region is None else system.memory(op.source_region).read_latency_cycles
    slowest = int(max(each.values(), default=op.length))
    return Stages(latency, slowest, 0, latency=latency, transfer=slowest, needs=_needs(each))


def chained(
    op: BlockOp,
    moved: Sequence[Transfer],
    config: NpuConfig,
    system: SystemConfig,
    followers: Sequence[BlockOp],
) -> Stages:
    """A block operation, with those that go on with its results through chaining buffers."""
    mac = sum(units.mac_cycles(part, config) for part in (op, *followers))
    output = sum(units.output_cycles(part, config) for part in (op, *followers))
    decoder = units.decoder_cycles(op, config)
    each = busy(moved, config, system)
    transfer = max(each.values(), default=0.0)
    count = volume(units.counts(op))
    first, last = _shares(op, config)
    # The first block is computed before the output unit starts, the last one is put out when nothing is computed.
    fit = fitted.FITTED[config.generation]
    body = max(mac, first * mac + (1.0 - last) * output) + fit.block_cycles * count
    refetch, pieces = _refetch(op, config, system), _waits_for_pieces(moved, config, system)
    latency, fetched = _fetched(moved, _WEIGHTS, count, config, system, fit.first_weights_bytes)
    # Ethos-U85 starts an OFM block when all of its weights are decoded.
    waits_for_whole_blocks = config.generation == "u85" and op.weights is not None and not op.weights.fast
    return Stages(
        weights=int(latency + max(fetched, decoder / count)),
        begin=int(
            _first_ifm(op, moved, config, system)
            + fit.operation_cycles
            + fit.operation_trips * system.command_stream.read_latency_cycles
        ),
        body=int(body) + refetch + pieces,
        end=int(last * output + _last_write(last, moved, config, system)),
        latency=max(
            (system.memory(row.region).read_latency_cycles for row in moved if not row.stream.is_write),
            default=0,
        ),
        last_mac=int(last * mac) if waits_for_whole_blocks else 0,
        first_mac=int(first * mac),
        first_scales=int(sum(_fetched(moved, [Stream.SCALES], count, config, system))),
        scales=int(sum(_fetched(moved, [Stream.SCALES], 1, config, system))),
        serial=op.kind is Kind.DEPTHWISE,
        blocks=count,
        mac=mac,
        output=int(output),
        decoder=decoder,
        transfer=int(transfer),
        needs=_needs(each),
        refetch=refetch,
        pieces=pieces,
        slowest=_slowest(moved, config, system),
        ifm_bits=8 * op.ifm.dtype.itemsize,
    )


def _refetch(op: BlockOp, config: NpuConfig, system: SystemConfig) -> int:
    """Cycles of waiting for IFM blocks that Ethos-U85 did not keep for the next OFM block in depth."""
    if config.generation == "u55" or not op.takes_all_channels:
        return 0
    if units.subkernels(op) > 1 or times_read(op, config) <= 1:
        return 0
    down, across, deep = units.counts(op)
    memory = system.memory(op.ifm.region)
    waited = memory.read_latency_cycles + fitted.FITTED["u85"].read_pipeline_cycles
    return int((deep - 1) * down * across * waited)


def _waits_for_pieces(moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> int:
    """Cycles of waiting for the next piece of encoded weights."""
    waits = 0
    for transfer in moved:
        if transfer.stream in _WEIGHTS:
            wait = system.memory(transfer.region).read_latency_cycles - constants.HIDDEN_PIECE_WAIT
            size = transfer.beats * config.beat_bytes
            waits += size // constants.WEIGHT_PIECE_BYTES[config.generation] * max(0, wait)
    return waits


def _slowest(moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> Stream | None:
    """The stream that moves longest; scales, which have their own place in the schedule, are none of them."""
    cycles: defaultdict[Stream, float] = defaultdict(float)
    for transfer in moved:
        if transfer.stream is not Stream.SCALES:
            size = transfer.beats * config.beat_bytes
            cycles[transfer.stream] += size / _rate(transfer, system.memory(transfer.region), config)
    return max(cycles, key=lambda stream: cycles[stream], default=None)


def _rate(transfer: Transfer, memory: Memory, config: NpuConfig) -> float:
    if transfer.stream.is_write:
        return write_rate(memory, transfer.run_bytes)
    rate = read_rate(memory, transfer.stream, config, transfer.run_bytes)
    if not transfer.words:
        return rate
    usual = constants.IFM_WORD_CYCLES[config.generation]
    word_cycles = constants.IFM_WORD_CYCLES_2048 if config.macs == 2048 else usual
    return min(rate, transfer.beats * config.beat_bytes / (transfer.words * word_cycles))


def _needs(each: dict[Memory, float]) -> tuple[float, ...]:
    """Cycles by port: each port has one memory."""
    needs = [0.0, 0.0]
    for memory, cycles in each.items():
        needs[memory.interface] += cycles
    return tuple(needs)


def busy(moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> dict[Memory, float]:
    """Cycles for which an operation's transfers keep each memory busy: all together, or the slowest stream.

    Scales, which few buffers make slow, count in the former alone: :attr:`Stages.scales` is when they are there.
    """
    reads: defaultdict[Memory, float] = defaultdict(float)
    total: defaultdict[Memory, float] = defaultdict(float)
    streams: defaultdict[tuple[Memory, Stream], float] = defaultdict(float)
    for transfer in moved:
        memory, stream = system.memory(transfer.region), transfer.stream
        size = transfer.beats * config.beat_bytes
        total[memory] += size / memory.bytes_per_cycle
        if not stream.is_write:
            reads[memory] += size / bus_rate(memory, config)
        if stream is not Stream.SCALES:
            streams[memory, stream] += size / _rate(transfer, memory, config)
    slowest: defaultdict[Memory, float] = defaultdict(float)
    for (memory, _), cycles in streams.items():
        slowest[memory] = max(slowest[memory], cycles)
    return {memory: max(cycles, reads[memory], slowest[memory]) for memory, cycles in total.items()}


def _first_ifm(op: BlockOp, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> float:
    """Cycles until the first IFM block is there."""
    down, across, deep = units.counts(op)
    parts = down * across * float(deep)
    if op.takes_all_channels:
        blocks = max(1.0, op.ifm_depth / units.ifm_block_depth(op, config))
        parts = down * across * times_read(op, config) * blocks
    cycles, latency = 0.0, 0
    for transfer in moved:
        if transfer.stream in (Stream.IFM, Stream.IFM_STREAM):
            memory = system.memory(transfer.region)
            size = transfer.beats * config.beat_bytes / parts
            if config.generation == "u85" and transfer.stream is Stream.IFM_STREAM:
                size = min(size, 16 * constants.READ_BUFFERS[config.macs].ifm_stream)
            cycles = max(cycles, size / _rate(transfer, memory, config))
            latency = max(latency, memory.read_latency_cycles)
    return latency + cycles


def _fetched(
    moved: Sequence[Transfer],
    streams: Sequence[Stream],
    parts: int,
    config: NpuConfig,
    system: SystemConfig,
    most_bytes: float = math.inf,
) -> tuple[int, float]:
    """(latency, cycles) of reading one of `parts` of `streams`, of each transfer at most so many bytes."""
    cycles, latency = 0.0, 0
    for transfer in moved:
        if transfer.stream in streams:
            memory = system.memory(transfer.region)
            size = min(most_bytes, transfer.beats * config.beat_bytes / parts)
            cycles += size / read_rate(memory, transfer.stream, config)
            latency = memory.read_latency_cycles
    return latency, cycles


def _last_write(share: float, moved: Sequence[Transfer], config: NpuConfig, system: SystemConfig) -> float:
    for transfer in moved:
        if transfer.stream is Stream.OFM:
            memory = system.memory(transfer.region)
            size = share * transfer.beats * config.beat_bytes
            return memory.write_latency_cycles + size / write_rate(memory, transfer.run_bytes)
    return 0.0


def _shares(op: BlockOp, config: NpuConfig) -> tuple[float, float]:
    """The first and the last OFM block's share of the OFM, or that of what an elementwise operation streams."""
    first = last = 1.0
    for size, block in zip(op.shape, op.block, strict=True):
        first *= min(block, size) / size
        last *= (size % block or min(block, size)) / size
    if op.kind is Kind.ELEMENTWISE and config.generation == "u85":
        size = volume(op.shape) * op.ofm.dtype.itemsize
        streamed = 16 * constants.READ_BUFFERS[config.macs].ifm_stream / size
        return min(first, streamed), min(last, streamed)
    return first, last


@dataclass(frozen=True)
class Stalls:
    """Cycles in which the MAC unit has work and waits. Each cycle has one cause: the one that is removed last."""

    weights: int = 0
    accumulators: int = 0
    ifm: int = 0

    def __add__(self, other: Stalls) -> Stalls:
        accumulators = self.accumulators + other.accumulators
        return Stalls(self.weights + other.weights, accumulators, self.ifm + other.ifm)


def stalls(stages: Stages, mac_free: int, issued: int, fetched: int, scaled: int, ended: int) -> Stalls:
    """The stalls of an operation; none where the MAC unit has no part in it.

    The MAC unit is free for it at `mac_free`, its command is read at `issued`, its IFM is fetched from `fetched` and
    its scales from `scaled` on, while the operation before is still computed, and it ends at `ended`.
    """
    if not stages.mac:
        return Stalls()
    begin = max(mac_free, issued)
    left = ended - stages.end - begin - stages.mac
    ifm = fetched + stages.begin
    weights = ifm + stages.weights if stages.serial else issued + stages.weights
    # What no unit holds up waits for the slowest of decoder and memory's streams.
    slowest = "accumulators" if stages.slowest is Stream.OFM else "ifm"
    if stages.decoder > stages.transfer or stages.slowest in _WEIGHTS:
        slowest = "weights"
    waits = (
        ("ifm", ifm - begin),
        ("weights", weights - max(ifm, begin)),
        ("ifm", stages.refetch),
        ("weights", stages.pieces),
        ("accumulators", stages.behind(issued, fetched, scaled)),
        (slowest, left),
    )
    found = {"weights": 0, "accumulators": 0, "ifm": 0}
    for cause, cycles in waits:
        part = max(0, min(cycles, left))
        found[cause] += part
        left -= part
    return Stalls(**found)
