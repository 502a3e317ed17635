"""What an operation moves, as the hardware's counters see it: beats per region, direction and purpose; AXI bursts.

It follows from the command stream's own blocks. An IFM is read with its halo, and again for every OFM block in depth
unless the NPU can keep it. Weights and scales are read again for every block across the OFM, an OFM is written once,
with the channels that fill its bricks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, gcd

from ethosu_sdk.npu.config import BRICK, NpuConfig, ceil_div, round_up
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Kind, Operation, Shape
from ethosu_sdk.npu.timing import units
from ethosu_sdk.npu.timing.constants import (
    DEPTHWISE_CHANNELS_U85,
    IFM_WORD_BYTES,
    KEPT_IFM_BLOCKS_U55,
    KEPT_IFM_BLOCKS_U85,
)
from ethosu_sdk.npu.timing.systems import Memory
from ethosu_sdk.npu.timing.units import Stream


@dataclass(frozen=True)
class Transfer:
    """`beats` of `stream` to or from `region`; a region of None is the NPU's own memory, which has no port.

    They are moved in pieces of `run_bytes` that lie one behind the other in memory; 0 stands for one piece. `words`
    are those that enter the IFM buffer: at least one a pixel.
    """

    region: int | None
    stream: Stream
    beats: int
    run_bytes: int = 0
    words: int = 0


def transfers(op: Operation, config: NpuConfig) -> tuple[Transfer, ...]:
    """All that `op` moves through the AXI ports. Chained feature maps stay inside of the NPU."""
    if isinstance(op, DmaOp):
        found = list(_copied(op, config.beat_bytes))
    else:
        found = [*_read(op, config), *_constants(op, config)]
        if op.ofm.chain is None and not op.is_partial:
            run = _run(op.ofm, min(op.block[1], op.shape[1]), op.shape[2], op.block[2])
            found.append(Transfer(op.ofm.region, Stream.OFM, _beats(op.ofm, *op.stored_shape, config), run))
    return tuple(transfer for transfer in found if transfer.beats)


def _copied(op: DmaOp, beat: int) -> Iterator[Transfer]:
    beats = op.counts[0] * op.counts[1] * ceil_div(op.length, beat)
    if op.source_region is not None:
        yield Transfer(op.source_region, Stream.COPY, beats, op.length)
    if op.target_region is not None:
        yield Transfer(op.target_region, Stream.COPY_WRITE, beats, op.length)
    if op.index is not None:
        yield Transfer(op.index.region, Stream.COPY, ceil_div(4 * op.counts[1], beat) * op.counts[0])


def _constants(op: BlockOp, config: NpuConfig) -> Iterator[Transfer]:
    if op.weights is None:
        return
    beat = config.beat_bytes
    down, across, _ = units.counts(op)
    stream = Stream.FAST_WEIGHTS if op.weights.fast else Stream.WEIGHTS
    for weights in op.weights.streams:
        yield Transfer(weights.region, stream, down * across * ceil_div(weights.length, beat))
    for scales in op.scales.streams if op.scales is not None else ():
        yield Transfer(scales.region, Stream.SCALES, down * across * ceil_div(scales.length, beat))


def _read(op: BlockOp, config: NpuConfig) -> Iterator[Transfer]:
    if op.kind is Kind.ELEMENTWISE:
        for operand in op.operands:
            if operand.scalar is None:
                height, width, depth = (
                    1 if repeated else size
                    for size, repeated in zip(op.shape, operand.broadcast, strict=True)
                )
                yield _whole(operand.feature_map, (height, width, depth), config)
        return
    if op.kind is Kind.RESIZE:
        yield _whole(op.ifm, op.ifm_shape, config)
    elif op.ifm.chain is None:
        times = times_read(op, config)
        beats, words = int(_ifm_beats(op, config) * times), int(_ifm_words(op, config) * times)
        yield Transfer(op.ifm.region, Stream.IFM, beats, _ifm_run(op, config), words)
    if op.ifm2 is not None:
        shape = (op.shape[0], op.shape[2], op.ifm_depth) if op.kind is Kind.MATMUL else op.shape
        yield _whole(op.ifm2, shape, config)


def _whole(feature_map: FeatureMap, shape: Shape, config: NpuConfig) -> Transfer:
    beats = 0 if feature_map.chain is not None else _beats(feature_map, *shape, config)
    return Transfer(feature_map.region, Stream.IFM_STREAM, beats)


def _ifm_beats(op: BlockOp, config: NpuConfig) -> int:
    """Beats of reading the IFM once: rows that are not made of bricks begin and end within a beat."""
    rows = sum(count for _, count in units.ifm_spans(op, 0, config))
    columns = units.ifm_spans(op, 1, config)
    if op.ifm.bricks:
        return _beats(op.ifm, rows, sum(count for _, count in columns), _ifm_depth(op), config)
    pixel = _ifm_depth(op) * op.ifm.dtype.itemsize
    spans = [(first * pixel, count * pixel) for first, count in columns if count]
    return ceil(rows * sum(_row_beats(op.ifm.stride_y, *span, config.beat_bytes) for span in spans))


def _ifm_words(op: BlockOp, config: NpuConfig) -> int:
    rows, columns = (sum(count for _, count in units.ifm_spans(op, axis, config)) for axis in (0, 1))
    return rows * columns * ceil_div(_ifm_depth(op) * op.ifm.dtype.itemsize, IFM_WORD_BYTES)


def _row_beats(stride: int, first: int, length: int, beat: int) -> float:
    """Beats of `length` bytes from byte `first` of a row on, on average over rows that are `stride` bytes apart."""
    step = gcd(stride, beat)
    begins = range(first % step, beat, step) if step < beat else (first % beat,)
    return sum(ceil_div(begin + length, beat) for begin in begins) / len(begins)


def _ifm_run(op: BlockOp, config: NpuConfig) -> int:
    columns = max((count for _, count in units.ifm_spans(op, 1, config)), default=1)
    part = units.ifm_block_depth(op, config)
    if op.kind is Kind.DEPTHWISE and config.generation == "u85" and op.block[2] < op.shape[2]:
        part = DEPTHWISE_CHANNELS_U85
    return _run(op.ifm, columns, _ifm_depth(op), part)


def _run(feature_map: FeatureMap, columns: int, depth: int, part: int) -> int:
    """Bytes in a row of a block that lie one behind the other: `part` channels of `depth` are moved at a time."""
    size = (BRICK if feature_map.bricks else min(part, depth)) * feature_map.dtype.itemsize
    return size * columns if feature_map.bricks or size == feature_map.stride_x else size


def _ifm_depth(op: BlockOp) -> int:
    return op.ifm_depth if op.takes_all_channels else op.shape[2]


def _beats(feature_map: FeatureMap, rows: int, columns: int, depth: int, config: NpuConfig) -> int:
    """Beats of so many rows, columns and channels: bricks are moved whole, rows without them to the byte."""
    stored = round_up(depth, BRICK) if feature_map.bricks else depth
    return ceil_div(rows * columns * stored * feature_map.dtype.itemsize, config.beat_bytes)


def times_read(op: BlockOp, config: NpuConfig) -> float:
    """How often an IFM is read, on average, for OFM blocks that differ in depth alone.

    Ethos-U55 and Ethos-U65 have room for the block in use and the next: of more blocks, none is left when its turn
    comes again. Ethos-U85 keeps some of them. No IFM is kept where parts of the kernel take turns.
    """
    if not op.takes_all_channels:
        return 1.0
    parts = ceil_div(op.ifm_depth, units.ifm_block_depth(op, config))
    if units.subkernels(op) > 1:
        read_again = 1.0
    elif config.generation == "u55":
        read_again = float(parts > KEPT_IFM_BLOCKS_U55)
    else:
        read_again = max(0, parts - KEPT_IFM_BLOCKS_U85) / parts
    return 1.0 + (units.counts(op)[2] - 1) * read_again


def has_burst_length(memory: Memory, config: NpuConfig) -> bool:
    """Whether the system configuration says how long a burst is. Without that key, Vela takes a byte."""
    return memory.burst_bytes >= config.beat_bytes


def bursts(moved: Iterable[Transfer], memory: Memory, config: NpuConfig) -> Counter[int]:
    """Beats of a burst → bursts, of what is moved to or from `memory`.

    Each piece that lies in one is cut into bursts of the system's length, and what is left of it is a shorter one.
    """
    longest = memory.burst_bytes // config.beat_bytes
    found: Counter[int] = Counter()
    for transfer in moved:
        piece = min(transfer.beats, ceil_div(transfer.run_bytes, config.beat_bytes)) or transfer.beats
        pieces, last = divmod(transfer.beats, piece)
        for beats, count in ((piece, pieces), (last, 1)):
            whole, rest = divmod(beats, longest)
            found[longest] += count * whole
            found[rest] += count
    del found[0]
    return +found
