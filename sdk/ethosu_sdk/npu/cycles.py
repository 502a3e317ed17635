"""Cycle estimate of operations, from their descriptors alone.

The formulas are those of ethos-u-vela 5.1.0's performance estimates: what hardware needs differs, and depends on
memories that nobody models here. Every figure made from this is marked `modelled`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ethosu_sdk.npu import cycles_compute as compute
from ethosu_sdk.npu import cycles_geometry as geometry
from ethosu_sdk.npu import cycles_transfer as transfer
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_geometry import Geometry
from ethosu_sdk.npu.cycles_weights import decode_cycles
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Kind, Operation, PoolMode
from ethosu_sdk.npu.system_config import SystemConfig, default_for

_COMMAND_UNITS = 4  # blocks are handed out by a unit that takes a quarter of what they wait for


@dataclass(frozen=True)
class Estimate:
    """Cycles of one operation and its number of multiply-accumulates.

    `total_cycles` is the greater of `npu_cycles`, what computing takes with the first read and the last write, and
    `transfer_cycles`, how long the busiest memory is busy. `mac_cycles`, `output_cycles` and
    `weight_decode_cycles` are those of the three units, each for itself.
    """

    total_cycles: int
    mac_cycles: int
    macs: int
    npu_cycles: int = 0
    output_cycles: int = 0
    weight_decode_cycles: int = 0
    transfer_cycles: int = 0


@dataclass(frozen=True)
class Place:
    """Where an operation stands among its neighbours.

    `chained` are the operations that go on with its results through chaining buffers; `made` is the number of OFM
    channels that operations before have made of the same layer, which is cut in depth.
    """

    chained: tuple[BlockOp, ...] = ()
    made: int = 0


@dataclass(frozen=True)
class _Compute:
    """Cycles of an operation without its transfers: in all, of the MAC unit, of the output unit."""

    total: int
    mac: int
    output: int


def estimate(
    op: Operation, config: NpuConfig, system: SystemConfig | None = None, place: Place | None = None
) -> Estimate:
    """The estimate for `op` on `config`; `system` None stands for the family's default."""
    system, place = system or default_for(config.npu), place or Place()
    deadline.check()
    if isinstance(op, DmaOp):
        moved = transfer.dma_cycles(op, system, config)
        return Estimate(moved, 0, 0, transfer_cycles=moved)
    op = _as_priced(op)
    moved = _transfer_cycles(op, config, system, place)
    cycles = _compute(op, config, system, place)
    return Estimate(
        total_cycles=max(cycles.total, moved),
        mac_cycles=cycles.mac,
        macs=compute.macs(op),
        npu_cycles=cycles.total,
        output_cycles=cycles.output,
        weight_decode_cycles=decode_cycles(op, system, config),
        transfer_cycles=moved,
    )


def estimates(
    operations: Sequence[Operation], config: NpuConfig, system: SystemConfig | None = None
) -> tuple[Estimate, ...]:
    """The estimates for the operations of a stream, where chains and the parts of cut layers are recognised.

    A chain's cost stands with its first operation, the others have none. The parts of a layer that is cut in depth
    cost together what the whole layer costs.
    """
    return tuple(
        Estimate(0, 0, compute.macs(op) if isinstance(op, BlockOp) else 0)
        if place is None
        else estimate(op, config, system, place)
        for op, place in zip(operations, places(operations), strict=True)
    )


def places(operations: Sequence[Operation]) -> list[Place | None]:
    """The place of each operation; None for those that belong to a chain that has begun before."""
    found: list[Place | None] = [Place() for _ in operations]
    before: BlockOp | None = None
    head, made = 0, 0
    for index, op in enumerate(operations):
        deadline.check()
        if isinstance(op, DmaOp):
            continue
        begun = found[head]
        if before is not None and before.ofm.chain is not None and begun is not None:
            found[head] = Place((*begun.chained, op), begun.made)
            found[index] = None
        else:
            made = made + before.shape[2] if before is not None and _continues(before, op) else 0
            head, found[index] = index, Place(made=made)
        before = op
    return found


def _continues(before: BlockOp, op: BlockOp) -> bool:
    """Whether `op` makes the OFM channels that follow those which `before` made."""
    if op.kind is not before.kind or op.kind not in (Kind.CONV, Kind.DEPTHWISE):
        return False
    per_step = 16 if op.ofm.bricks else 1
    channels = before.shape[2] // per_step * op.ofm.stride_c
    same = (op.kernel, op.padding, op.block, op.shape[:2]) == (
        before.kernel,
        before.padding,
        before.block,
        before.shape[:2],
    )
    same_ifm = op.kind is Kind.DEPTHWISE or (op.ifm, op.ifm_depth) == (before.ifm, before.ifm_depth)
    return same and same_ifm and op.ofm == _moved(before.ofm, channels)


def _moved(feature_map: FeatureMap, distance: int) -> FeatureMap:
    """`feature_map` that begins `distance` bytes further on. Bases that are not used stay 0."""
    first, *others = feature_map.bases
    second, third, fourth = (base + distance if base else 0 for base in others)
    return replace(feature_map, bases=(first + distance, second, third, fourth))


def _as_priced(op: BlockOp) -> BlockOp:
    """`op`, or where its accumulators start with IFM2 and nothing is added, as if that were its IFM."""
    if op.mode is PoolMode.NONE and op.ifm2 is not None:
        return replace(op, ifm=op.ifm2, ifm2=None)
    return op


def _transfer_cycles(op: BlockOp, config: NpuConfig, system: SystemConfig, place: Place) -> int:
    moved = [
        row
        for part in (op, *place.chained)
        for row in transfer.transfers(part, geometry.of(part, config), system, config)
    ]
    return max(transfer.access_cycles(moved, config).values(), default=0)


def _compute(op: BlockOp, config: NpuConfig, system: SystemConfig, place: Place) -> _Compute:
    if op.kind is Kind.RESIZE:  # Vela knows no price but that of the transfers
        return _Compute(0, 0, 0)
    if op.kind is Kind.ELEMENTWISE:
        return _elementwise(op, config, system, place)
    if not place.made:
        return _kernel(op, config, system, place)
    height, width, depth = op.shape
    before = _kernel(replace(op, shape=(height, width, place.made)), config, system, place)
    until = _kernel(replace(op, shape=(height, width, place.made + depth)), config, system, place)
    return _Compute(
        max(0, until.total - before.total),
        max(0, until.mac - before.mac),
        max(0, until.output - before.output),
    )


def _elementwise(op: BlockOp, config: NpuConfig, system: SystemConfig, place: Place) -> _Compute:
    blocks = geometry.of(op, config)
    per_element = compute.output_cycles_per_element(op, place.chained, config)
    height, width, depth = blocks.ofm
    elements = height * width * (geometry.round_up(depth, 16) if op.ofm.bricks else depth)
    moved = max(
        transfer.block_write_cycles(op, blocks, system, config),
        transfer.block_read_cycles(op, blocks, system, config),
    )
    output = math.ceil(per_element * elements)
    commands = (moved / geometry.volume(op.block) + per_element) / _COMMAND_UNITS * elements
    return _Compute(max(output, math.ceil(commands)), 0, output)


def _kernel(op: BlockOp, config: NpuConfig, system: SystemConfig, place: Place) -> _Compute:
    blocks = geometry.of(op, config)
    count = blocks.count
    mac = compute.mac_cycles_per_block(op, blocks, config)
    per_element = compute.output_cycles_per_element(op, place.chained, config)
    output = math.ceil(per_element * geometry.volume(blocks.clipped))
    slower_output = max(output, _scale_cycles(op, blocks, system))
    read = transfer.block_read_cycles(op, blocks, system, config)
    write = transfer.block_write_cycles(op, blocks, system, config)
    overlap = abs(write - read) if count > 1 else 0
    command = (overlap + mac + slower_output) / _COMMAND_UNITS
    by_mac, by_output = max(mac, command), max(slower_output, command)
    total = int(by_mac * count) + by_output if by_mac > by_output else by_output * count + by_mac
    return _Compute(int(total) + read + write, int(mac * count), int(output * count))


def _scale_cycles(op: BlockOp, blocks: Geometry, system: SystemConfig) -> float:
    """Ten bytes of scale and bias per channel, fetched with the memory's latency in bursts of 256 bytes."""
    if op.scales is None or op.kind not in (Kind.CONV, Kind.DEPTHWISE):
        return 0.0
    latency = system.memory(op.scales.streams[0].region).read_latency_cycles
    return 10 * blocks.clipped[2] * latency / 256
