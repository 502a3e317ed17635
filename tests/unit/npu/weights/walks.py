"""The order of weight streams once more, as plain loops that go weight by weight."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.npu.weight_order import OrderKey

Place = tuple[int, int, int, int] | None  # OFM channel, row, column, IFM channel; None is padding
Int16 = NDArray[np.int16]


def up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def inside(key: OrderKey, depth: int, place: tuple[int, int, int, int]) -> Place:
    return place if place[0] < depth and place[3] < key.ifm_depth else None


def walk_u55(key: OrderKey, core: int) -> Iterator[Place]:
    """One core of Ethos-U55 or Ethos-U65: channels `core`, `core` + cores, ..."""
    depth = len(range(core, key.depth, key.cores))
    block = len(range(core, key.block_depth, key.cores))
    ifm_block = 16 if key.part_kernel_first or key.ifm_bits == 16 else 32
    for ofm in range(0, depth, block):
        for ifm in range(0, key.ifm_depth, ifm_block):
            for sub_y in range(0, key.height, 8 // key.dilation_y):
                for sub_x in range(0, key.width, 8 // key.dilation_x):
                    clipped = min(block, depth - ofm), min(ifm_block, key.ifm_depth - ifm)
                    for place in walk_u55_part(key, depth, (ofm, sub_y, sub_x, ifm), clipped):
                        yield (place[0] * key.cores + core, *place[1:]) if place else None


def walk_u55_part(
    key: OrderKey, depth: int, start: tuple[int, int, int, int], clipped: tuple[int, int]
) -> Iterator[Place]:
    ofm, sub_y, sub_x, ifm = start
    rows = min(8 // key.dilation_y, key.height - sub_y)
    columns = min(8 // key.dilation_x, key.width - sub_x)
    whole = 16 if key.ifm_bits == 16 else 32
    elements, outer, inner, lanes = rows * columns, range(1), range(0, whole, 8), range(8)
    if key.part_kernel_first:
        elements, outer, inner = (
            up(elements, 2 if key.ifm_bits == 16 else 4),
            range(0, clipped[1], 8),
            range(1),
        )
    if key.depthwise:
        elements, inner, lanes = up(elements, 4), range(1), range(1)
    for ifm_outer in outer:
        for micro in range(0, clipped[0], key.ofm_micro_depth):
            for element in range(elements):
                for ifm_inner in inner:
                    for ofm_lane in range(key.ofm_micro_depth):
                        for ifm_lane in lanes:
                            row, column = divmod(element, columns)
                            place = (
                                ofm + micro + ofm_lane,
                                sub_y + row,
                                sub_x + column,
                                ifm + ifm_outer + ifm_inner + ifm_lane,
                            )
                            yield inside(key, depth, place) if row < rows else None


def walk_u85(key: OrderKey, core: int) -> Iterator[Place]:
    """One core's stream of Ethos-U85, in steps of one kernel element of a micro-block."""
    for step in steps_u85(key, core):
        yield from step


def ifm_block_u85(key: OrderKey) -> int:
    if key.part_kernel_first:
        return 16
    if key.ifm_bits == 32 or (key.macs <= 256 and key.ofm_micro_depth == 16 and not key.sparse):
        return 32
    return 128 if key.sparse and key.ifm_bits == 8 else 64


def steps_u85(key: OrderKey, core: int) -> Iterator[list[Place]]:
    ifm_block = 1 if key.depthwise else ifm_block_u85(key)
    micro_ifm = 8 if key.part_kernel_first and key.ifm_bits == 16 and not key.sparse else ifm_block
    for number, ofm in enumerate(range(0, key.depth, key.block_depth)):
        blocks = list(range(0, key.ifm_depth, ifm_block))
        for ifm in blocks if number % 2 == 0 else blocks[::-1]:
            for sub_x in range(0, key.width, 8 // key.dilation_x):
                for sub_y in range(0, key.height, 8 // key.dilation_y):
                    rows = min(8 // key.dilation_y, key.height - sub_y)
                    columns = min(8 // key.dilation_x, key.width - sub_x)
                    for outer in range(0, min(ifm_block, key.ifm_depth - ifm), micro_ifm):
                        for micro in range(0, min(key.block_depth, key.depth - ofm), key.ofm_micro_depth):
                            yield from micro_block_u85(
                                key,
                                core,
                                (ofm + micro, sub_y, sub_x, ifm + outer),
                                (rows, columns),
                                micro_ifm,
                            )


def micro_block_u85(
    key: OrderKey, core: int, start: tuple[int, int, int, int], size: tuple[int, int], depth: int
) -> Iterator[list[Place]]:
    padding: list[Place] = [None] * (depth * key.ofm_micro_depth // key.cores)
    batch, gap = 1, 0
    if key.part_kernel_first:
        batch = 10 if key.ifm_bits == 16 or key.sparse else 5
    if key.depthwise:
        batch = 10
        gap = 0 if key.ifm_bits != 16 and key.macs <= 256 else 2 if key.macs <= 512 else 6
    done = 0
    for phase_y in range(key.stride_y):
        for phase_x in range(key.stride_x):
            for number, row in enumerate(range(phase_y, size[0], key.stride_y)):
                columns = list(range(phase_x, size[1], key.stride_x))
                for column in columns[::-1] if number % 2 else columns:
                    yield step_u85(key, core, start, (row, column), depth)
                    done += 1
                    if done % batch == 0:
                        yield from [padding] * gap
    if done % batch:
        yield from [padding] * (batch - done % batch + gap)


def step_u85(
    key: OrderKey, core: int, start: tuple[int, int, int, int], element: tuple[int, int], depth: int
) -> list[Place]:
    group = 1 if key.depthwise else 16 if key.sparse else 8
    ofm, y, x, ifm = start
    return [
        inside(key, key.depth, (ofm + four + lane, y + element[0], x + element[1], ifm + first + channel))
        for first in range(0, depth, group)
        for four in range(4 * core, key.ofm_micro_depth, 4 * key.cores)
        for lane in range(4)
        for channel in range(group)
    ]


def walk_fast(key: OrderKey) -> list[Place]:
    """The single stream of the fast format: batches of the cores' streams, one core after the other."""
    batch = (10 if key.ifm_bits == 16 or key.sparse else 5) if key.part_kernel_first else 1
    cores = [list(steps_u85(key, core)) for core in range(key.cores)]
    return [
        place
        for first in range(0, len(cores[0]), batch)
        for steps in cores
        for step in steps[first : first + batch]
        for place in step
    ]


def walks(key: OrderKey) -> list[list[Place]]:
    """Every stream of `key`, place by place."""
    if key.fast:
        return [walk_fast(key)]
    walk: Callable[[OrderKey, int], Iterator[Place]] = walk_u85 if key.generation == "u85" else walk_u55
    return [list(walk(key, core)) for core in range(key.cores)]


def numbered(key: OrderKey) -> Int16:
    """Weights that differ from their neighbours in every direction; none is 0."""
    shape = (key.depth, key.height, key.width, key.ifm_depth)
    return (np.arange(np.prod(shape)) % 509 + 1).astype(np.int16).reshape(shape)


def streams_of(key: OrderKey, weights: Int16) -> list[Int16]:
    return [
        np.array([0 if place is None else weights[place] for place in walk], np.int16) for walk in walks(key)
    ]
