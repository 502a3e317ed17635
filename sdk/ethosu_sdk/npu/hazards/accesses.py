"""What operations read and write, and where two of them would disturb each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards.blocks import Part, ifm_blocks, inputs, last_ofm_blocks, stored
from ethosu_sdk.npu.hazards.ranges import Runs, Span, bytes_of, overlap, runs, whole
from ethosu_sdk.npu.operation import BlockOp, DmaIndex, DmaOp, Kind, Lut, Operation

_NARROW_ENTRIES = 256  # results of a look-up table with 8-bit indices
_WIDE_BYTES = 2048  # of one with 16-bit indices: 512 words
_INDEX_BYTES = 4
# Ethos-U55-32 and -64 set no banks of their shared RAM aside for look-up tables (ethos-u-vela 5.1.0, ethos_u55.cpp).
_SMALL_SHARED_RAM_BYTES = 16 * 1024
_BANK_BYTES = 1024
# By MACs and bits: accumulators of these two take a multiple of so many banks, twice a block (ibid.).
_ACCUMULATOR_BANKS = {(32, 32): 4, (32, 40): 4, (64, 32): 4, (64, 40): 8}
_ACCUMULATOR_CHANNELS = 8  # the depth of a block of accumulators is a multiple of so many


@dataclass(frozen=True)
class Access:
    """Bytes of a region that are read or written; region None is the NPU's own memory."""

    region: int | None
    writes: bool
    runs: Runs


Accesses = tuple[Access, ...]


@dataclass(frozen=True)
class Meeting:
    """Bytes of a region that two operations touch, at least one of them to write."""

    region: int | None
    span: Span
    earlier_writes: bool
    later_writes: bool


def meeting(earlier: Iterable[Access], later: Iterable[Access]) -> Meeting | None:
    """Where two operations would disturb each other if both were at work, if anywhere.

    Regions are taken to lie apart from each other.
    """
    for first, second in itertools.product(earlier, later):
        if first.region == second.region and (first.writes or second.writes):
            common = overlap(first.runs, second.runs)
            if common is not None:
                return Meeting(first.region, common, first.writes, second.writes)
    return None


def accesses(op: Operation, config: NpuConfig) -> Accesses:
    """All that `op` reads and writes."""
    return tuple(_dma(op) if isinstance(op, DmaOp) else _block_operation(op, config))


def first_reads(op: BlockOp, config: NpuConfig, count: int) -> list[Accesses]:
    """What the first `count` blocks of the IFM read, in order."""
    return [_touched(parts, writes=False) for parts in itertools.islice(ifm_blocks(op, config), count)]


def last_writes(op: BlockOp, count: int) -> list[Accesses]:
    """What the last `count` blocks of the OFM write, the very last one first."""
    if not _writes_memory(op):
        return []
    return [_touched([(op.ofm, stored(op, box))], writes=True) for box in last_ofm_blocks(op, count)]


def table_span(lut: Lut) -> Span:
    """The bytes of the NPU's own memory that hold a look-up table."""
    narrow = lut.index.itemsize == 1
    return lut.address, lut.address + (_NARROW_ENTRIES * lut.result.itemsize if narrow else _WIDE_BYTES)


def has_small_memory(config: NpuConfig) -> bool:
    """Whether the shared RAM has no place set aside for look-up tables."""
    return config.generation == "u55" and config.own_bytes <= _SMALL_SHARED_RAM_BYTES


def overwrites_tables(op: BlockOp, config: NpuConfig) -> bool:
    """Whether the operation's own buffers may lie where the look-up tables are.

    Where the shared RAM has no place set aside for tables, an operation that uses none takes all of it.
    """
    return has_small_memory(config) and op.output.lut is None


def accumulators_end(op: BlockOp, config: NpuConfig) -> int:
    """The byte of the shared RAM behind the accumulators; 0 where they cannot reach the look-up tables."""
    if not has_small_memory(config):
        return 0
    start = op.accumulator_bank * _BANK_BYTES
    if op.kind is Kind.ELEMENTWISE:
        return start  # it has none; the IFM's buffers end there
    height, width, depth = op.block
    block_bytes = height * width * _rounded(depth, _ACCUMULATOR_CHANNELS) * op.accumulator_bits // 8
    banks = 2 * (_rounded(block_bytes, _BANK_BYTES) // _BANK_BYTES)
    return start + _rounded(banks, _ACCUMULATOR_BANKS[config.macs, op.accumulator_bits]) * _BANK_BYTES


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step


def _writes_memory(op: BlockOp) -> bool:
    return op.ofm.chain is None and not op.is_partial


def _touched(parts: Iterable[Part], *, writes: bool) -> Accesses:
    return tuple(
        Access(feature_map.region, writes, piece)
        for feature_map, box in parts
        for piece in bytes_of(feature_map, box)
    )


def _span(region: int | None, start: int, length: int, *, writes: bool = False) -> Access:
    return Access(region, writes, Runs(start, (), length))


def _block_operation(op: BlockOp, config: NpuConfig) -> Iterator[Access]:
    yield from _touched(inputs(op, whole(op.shape), (0, op.ifm_depth)), writes=False)
    if _writes_memory(op):
        yield from _touched([(op.ofm, whole(op.stored_shape))], writes=True)
    for part in (op.weights, op.scales):
        for stream in part.streams if part is not None else ():
            if stream.length:
                yield _span(stream.region, stream.address, stream.length)
    if op.output.lut is not None:
        start, end = table_span(op.output.lut)
        yield _span(None, start, end - start)
    elif overwrites_tables(op, config):
        yield _span(None, 0, config.own_bytes, writes=True)


def _dma(op: DmaOp) -> Iterator[Access]:
    planes, rows = op.counts
    if not planes * rows * op.length:
        return
    source_rows = target_rows = rows
    if op.index is not None:
        # Which rows an index names is known only when it is read: all that it may name.
        source_rows = rows if op.index.scatters else op.index.maximum + 1
        target_rows = op.index.maximum + 1 if op.index.scatters else rows
        yield _index(op.index, planes, rows)
    for region, base, strides, count, writes in (
        (op.source_region, op.source, op.source_strides, source_rows, False),
        (op.target_region, op.target, op.target_strides, target_rows, True),
    ):
        yield Access(region, writes, runs(base, zip((planes, count), strides, strict=True), op.length))


def _index(index: DmaIndex, planes: int, rows: int) -> Access:
    axes = ((planes, index.plane_stride),)
    return Access(index.region, False, runs(index.address, axes, _INDEX_BYTES * rows))
