"""How weight streams walk through the kernels, and decoded streams as the arrays that operators use.

A stream is a nest of loops, outermost first: OFM blocks; IFM blocks; sub-kernels; IFM micro-blocks; OFM micro-blocks;
kernel elements; groups of IFM channels; OFM channels; IFM channels. The order is that of the weight encoders of
ethos-u-vela 5.1.0. Walks differ in the sizes of these loops and in their paths through a sub-kernel. A stream must
decode to exactly as many weights as its order has, with zeros in all places that pad it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.base.targets import Generation
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.config import NpuConfig, ceil_div, ifm_block_channels, subkernel
from ethosu_sdk.npu.errors import WeightOrderError
from ethosu_sdk.npu.operation import BlockOp, Kind, Places, Weights

_KEPT_SIZES = 1024  # of operations


@dataclass(frozen=True)
class OrderKey:
    """Everything that the order of an operation's weight streams depends on.

    `cores` share the OFM channels: one by one on Ethos-U65, in fours on Ethos-U85.
    """

    depth: int  # OFM channels
    height: int
    width: int
    ifm_depth: int  # 1 for depthwise
    block_depth: int
    ofm_micro_depth: int
    depthwise: bool
    part_kernel_first: bool
    ifm_bits: int
    dilation_y: int
    dilation_x: int
    generation: Generation = "u55"
    cores: int = 1
    macs: int = 0  # this and the following matter on Ethos-U85 alone
    stride_y: int = 1
    stride_x: int = 1
    fast: bool = False
    sparse: bool = False


@dataclass(frozen=True)
class Walk:
    """The loops of one core's stream.

    A step of an OFM micro-block is one kernel element for `ifm_micro` IFM channels. The steps of a sub-kernel come
    in batches of `batch`; the last one is filled up, and `gap` steps of padding follow each.
    """

    ofm_block: int
    ofm_micro: int  # OFM channels of a step, of all cores that share it
    lane: int  # OFM channels that follow each other in one core
    cores: int  # that share each OFM micro-block
    ifm_block: int
    ifm_micro: int
    ifm_group: int  # IFM channels that follow each other for one OFM channel
    batch: int
    gap: int
    serpentine: bool  # every second OFM block takes the IFM blocks backwards
    interleaved: bool  # one stream: the cores take turns after each batch

    def steps(self, elements: int) -> int:
        """Steps of a sub-kernel of so many elements, padding included."""
        return ceil_div(elements, self.batch) * (self.batch + self.gap)


def walk_u55(key: OrderKey, core: int) -> Walk:
    """The walk of one core's stream on Ethos-U55 and Ethos-U65.

    Core c of n has every n-th OFM channel from c on and takes its share of each OFM block.
    """
    block = _ifm_block(key)
    group = 1 if key.depthwise else 8
    part_kernel_batch = 2 if key.ifm_bits == 16 else 4
    return Walk(
        ofm_block=share(key.block_depth, core, key.cores),
        ofm_micro=key.ofm_micro_depth,
        lane=key.ofm_micro_depth,
        cores=1,
        ifm_block=block,
        ifm_micro=group if key.part_kernel_first else block,
        ifm_group=group,
        batch=4 if key.depthwise else part_kernel_batch if key.part_kernel_first else 1,
        gap=0,
        serpentine=False,
        interleaved=False,
    )


def walk_u85(key: OrderKey) -> Walk:
    """The walk of every core's stream, and of the one stream of the fast format."""
    ifm_block = _ifm_block(key)
    halved = key.part_kernel_first and key.ifm_bits == 16 and not key.sparse
    part_kernel_batch = 10 if key.ifm_bits == 16 or key.sparse else 5
    return Walk(
        ofm_block=key.block_depth,
        ofm_micro=key.ofm_micro_depth,
        lane=4,  # that one core takes before the next one does
        cores=key.cores,
        ifm_block=ifm_block,
        ifm_micro=8 if halved else ifm_block,
        ifm_group=1 if key.depthwise else 16 if key.sparse else 8,
        batch=10 if key.depthwise else part_kernel_batch if key.part_kernel_first else 1,
        gap=_gap(key) if key.depthwise else 0,
        serpentine=True,
        interleaved=key.fast,
    )


def _ifm_block(key: OrderKey) -> int:
    if key.depthwise:
        return 1
    return ifm_block_channels(
        key.generation,
        key.macs,
        key.ofm_micro_depth,
        key.ifm_bits,
        part_kernel_first=key.part_kernel_first,
        sparse=key.sparse,
    )


def share(total: int, core: int, cores: int) -> int:
    """How many of `total` channels core `core` has when the cores take turns."""
    return (total + cores - 1 - core) // cores


def _gap(key: OrderKey) -> int:
    """Steps of padding behind each batch of a depthwise stream."""
    if key.ifm_bits != 16 and key.macs <= 256:
        return 0
    return 2 if key.macs <= 512 else 6


# Copying a decoded weight stream to its kernels, a rectangular piece at a time.
#
# Where a stream's loops are regular, a piece of it is an array with one axis per loop: to arrange its weights is to
# transpose that array. Regular are all OFM blocks of the same depth that take the IFM blocks in the same direction,
# with all IFM blocks of the same depth, for one sub-kernel.

# Axes of a piece as it lies in the stream.
_STREAM, _OFM_BLOCK, _IFM_BLOCK, _IFM_MICRO, _OFM_MICRO, _BATCH, _CORE, _STEP, _GROUP, _LANES, _OFM, _IFM = (
    range(12)
)
# The same as (OFM blocks, OFM, kernel, IFM).
_WANTED = (
    *(_OFM_BLOCK, _OFM_MICRO, _LANES, _STREAM, _CORE, _OFM),
    *(_BATCH, _STEP),
    *(_IFM_BLOCK, _IFM_MICRO, _GROUP, _IFM),
)


@dataclass(frozen=True)
class Filler:
    """Copies streams that follow `walk`. `places` are, for each sub-kernel, its elements' places in the kernel."""

    walk: Walk
    places: Sequence[Places]

    def fill(self, data: Weights, weights: Weights) -> int:
        """Copy `data`, (streams, weights of each), to `weights`, (OFM, kernel, IFM).

        `data` must have the size of the walk. The result is how many non-zero weights were met, padding left out.
        """
        depth, _, ifm_depth = weights.shape
        block = self.walk.ofm_block
        whole = depth // block
        length = self._length(block, ifm_depth) // len(data)
        blocks = data[:, : whole * length].reshape(len(data), whole, length)
        targets = weights[: whole * block].reshape(whole, block, *weights.shape[1:])
        left = range(depth, depth - whole * block, -block)
        turns = min(whole, 2 if self.walk.serpentine else 1)
        count = 0
        for turn in range(turns):
            every = slice(turn, None, turns)
            count += self._fill_blocks(blocks[:, every], targets[every], left[every], backwards=turn == 1)
        if depth > whole * block:
            last, target = data[:, np.newaxis, whole * length :], weights[np.newaxis, whole * block :]
            backwards = self.walk.serpentine and whole % 2 == 1
            count += self._fill_blocks(last, target, [depth - whole * block], backwards)
        return count

    def _length(self, depth: int, ifm_depth: int) -> int:
        """Weights of an OFM block of `depth` channels and so many IFM channels, in all streams."""
        walk = self.walk
        steps = sum(walk.steps(places.size) for places in self.places)
        steps *= ceil_div(depth, walk.ofm_micro) * ceil_div(ifm_depth, walk.ifm_micro)
        return steps * walk.ofm_micro * walk.ifm_micro

    def _fill_blocks(self, data: Weights, targets: Weights, left: Sequence[int], backwards: bool) -> int:
        """From (streams, OFM blocks, weights of a block) to (OFM blocks, OFM, kernel, IFM).

        `left` are the channels from the start of each block to the end of the weights.
        """
        streams, blocks, _ = data.shape
        count = position = 0
        runs = list(_runs(targets.shape[3], self.walk.ifm_block))
        for first, ifm_blocks, depth in reversed(runs) if backwards else runs:
            length = ifm_blocks * self._length(targets.shape[1], depth) // streams
            part = data[..., position : position + length].reshape(streams, blocks, ifm_blocks, -1)
            position += length
            target = targets[..., first : first + ifm_blocks * depth]
            count += self._fill_run(part[:, :, ::-1] if backwards else part, target, depth, left)
        return count

    def _fill_run(self, data: Weights, targets: Weights, ifm_depth: int, left: Sequence[int]) -> int:
        """From (streams, OFM blocks, IFM blocks of `ifm_depth`, weights) to (OFM blocks, OFM, kernel, IFM)."""
        walk = self.walk
        depth = targets.shape[1]
        inner = (
            walk.batch + walk.gap,
            walk.ifm_micro // walk.ifm_group,
            walk.ofm_micro // (walk.lane * walk.cores),
            walk.lane,
            walk.ifm_group,
        )
        count = position = 0
        for places in self.places:
            errors.check()
            batches = ceil_div(places.size, walk.batch)
            outer = (
                ceil_div(ifm_depth, walk.ifm_micro),
                ceil_div(depth, walk.ofm_micro),
                batches,
                walk.cores // len(data),
            )
            length = math.prod(outer) * math.prod(inner)
            piece = data[..., position : position + length].reshape(*data.shape[:3], *outer, *inner)
            position += length
            elements = piece[..., : walk.batch, :, :, :, :].transpose(_WANTED)
            ifm = data.shape[2] * outer[0] * walk.ifm_micro
            flat = elements.reshape(len(targets), -1, batches * walk.batch, ifm)
            inside = flat[:, :, : places.size, : targets.shape[3]]
            targets[:, :, places] = inside[:, :depth]
            count += int(np.count_nonzero(inside[:, :depth]))
            if depth % walk.ofm_micro:
                # The last micro-block reaches into the next OFM block, which has these channels again.
                again = (np.count_nonzero(inside[block, depth:end]) for block, end in enumerate(left))
                count += int(sum(again))
        return count


def _runs(depth: int, block: int) -> Iterator[tuple[int, int, int]]:
    """The IFM blocks of `depth` channels, whole ones and what is left: (first channel, blocks, channels of each)."""
    whole, rest = divmod(depth, block)
    if whole:
        yield 0, whole, block
    if rest:
        yield whole * block, 1, rest


def order_key(op: BlockOp, config: NpuConfig) -> OrderKey:
    """The order of `op`'s weights."""
    assert op.weights is not None
    depthwise = op.kind is Kind.DEPTHWISE
    is_u85 = config.generation == "u85"
    kernel = op.kernel
    part_kernel_first = kernel.part_kernel_first and not depthwise
    strided = is_u85 and (part_kernel_first or depthwise)
    return OrderKey(
        depth=op.shape[2],
        height=kernel.height,
        width=kernel.width,
        ifm_depth=1 if depthwise else op.ifm_depth,
        block_depth=op.block[2],
        ofm_micro_depth=op.micro_block[2],
        depthwise=depthwise,
        part_kernel_first=part_kernel_first,
        ifm_bits=8 * op.ifm.dtype.itemsize,
        dilation_y=kernel.dilation_y,
        dilation_x=kernel.dilation_x,
        generation=config.generation,
        # Without a second stream Ethos-U65 works with one core.
        cores=config.cores if is_u85 else min(config.cores, len(op.weights.streams)),
        macs=config.macs if is_u85 else 0,
        stride_y=kernel.stride_y if strided else 1,
        stride_x=kernel.stride_x if strided else 1,
        fast=op.weights.fast,
        sparse=op.weights.sparse,
    )


def _streams(key: OrderKey) -> tuple[tuple[Walk, slice, int], ...]:
    """For each group of streams that is arranged together: its walk, its OFM channels, and how many they are."""
    if key.generation == "u85":
        return ((walk_u85(key), slice(None), key.depth),)
    return tuple(
        (walk_u55(key, core), slice(core, None, key.cores), share(key.depth, core, key.cores))
        for core in range(key.cores)
    )


def stream_sizes(key: OrderKey, offset: int) -> tuple[int, ...]:
    """How many weights each stream of an operation holds, padding included.

    Worked out without building anything: registers may claim any size. WeightOrderError, which names the operation
    at byte `offset`, for an order that does not exist.
    """
    found = _sizes(key)
    if isinstance(found, str):
        raise WeightOrderError(f"the operation at byte {offset} {found}")
    return found


@functools.lru_cache(_KEPT_SIZES)
def _sizes(key: OrderKey) -> tuple[int, ...] | str:
    """What `stream_sizes` gives, or why it does not."""
    sizes = []
    for walk, _, count in _streams(key):
        if walk.ofm_micro % (walk.lane * walk.cores) or (count and not walk.ofm_block):
            return (
                f"divides OFM blocks of {key.block_depth} channels, in steps of {key.ofm_micro_depth}, between "
                f"{key.cores} cores"
            )
        if walk.interleaved and key.depthwise:
            return "is depthwise and has fast weights"
        size = _size(key, walk, count)
        sizes += [size] if walk.interleaved or key.generation == "u55" else [size // walk.cores] * walk.cores
    return tuple(sizes)


def _size(key: OrderKey, walk: Walk, depth: int) -> int:
    """Weights in the streams of a walk, all cores that share its micro-blocks together."""
    whole, rest = divmod(depth, max(1, walk.ofm_block))
    ofm_steps = whole * ceil_div(walk.ofm_block, walk.ofm_micro) + ceil_div(rest, walk.ofm_micro)
    # A whole IFM block is a whole number of micro-blocks.
    ifm_steps = ceil_div(key.ifm_depth, walk.ifm_micro)
    steps = 0
    for rows, times_y in _lengths(key.height, subkernel(key.dilation_y)):
        for columns, times_x in _lengths(key.width, subkernel(key.dilation_x)):
            steps += times_y * times_x * walk.steps(rows * columns)
    return ofm_steps * ifm_steps * steps * walk.ofm_micro * walk.ifm_micro


def _lengths(total: int, part: int) -> Iterator[tuple[int, int]]:
    """(length, how often) of the parts of a side of the kernel."""
    yield part, total // part
    if total % part:
        yield total % part, 1


def arrange(streams: Sequence[Weights], key: OrderKey, offset: int) -> Weights:
    """Decoded streams as (OFM, height, width, IFM). WeightOrderError when they do not fit the order.

    `offset` is that of the operation, for the message.
    """
    sizes = stream_sizes(key, offset)
    if len(streams) != len(sizes):
        raise WeightOrderError(
            f"the operation at byte {offset} needs {len(sizes)} weight streams, but it has {len(streams)}"
        )
    for stream, size in zip(streams, sizes, strict=True):
        # The fast format fills its last 32 bytes.
        if stream.size < size or (stream.size > size and not key.fast):
            raise WeightOrderError(
                f"the operation at byte {offset} needs {size} weights, but its stream holds {stream.size}"
            )
    weights = np.empty((key.depth, key.height * key.width, key.ifm_depth), np.int16)
    used = [stream[:size] for stream, size in zip(streams, sizes, strict=True)]
    groups = [np.stack(used)] if key.generation == "u85" else [stream[np.newaxis] for stream in used]
    kernel = _kernel_places(key)
    placed = 0
    for data, (walk, channels, count) in zip(groups, _streams(key), strict=True):
        if count:
            placed += Filler(walk, kernel).fill(data, weights[channels])
    if placed != sum(int(np.count_nonzero(stream)) for stream in used):
        raise WeightOrderError(f"the weights of the operation at byte {offset} are not in the expected order")
    return weights.reshape(key.depth, key.height, key.width, key.ifm_depth)


def _kernel_places(key: OrderKey) -> tuple[Places, ...]:
    """For each sub-kernel, in the order of the stream, its elements' places in the kernel, row by row numbered."""
    high, wide = subkernel(key.dilation_y), subkernel(key.dilation_x)
    corners = list(itertools.product(range(0, key.height, high), range(0, key.width, wide)))
    if key.generation == "u85":  # columns first
        corners.sort(key=lambda corner: corner[::-1])
    found = []
    for y, x in corners:
        path = _path(key, min(high, key.height - y), min(wide, key.width - x))
        found.append(np.array([(y + row) * key.width + x + column for row, column in path], np.intp))
    return tuple(found)


def _path(key: OrderKey, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """The rows and columns of a sub-kernel in the order of the stream: on Ethos-U55 and Ethos-U65 row by row.

    On Ethos-U85, elements that one stride apart belong together, one phase after the other; rows of a phase are taken
    from left to right and from right to left by turns. Depth-first streams walk as if the strides were 1.
    """
    if key.generation == "u55":
        yield from itertools.product(range(rows), range(columns))
        return
    for phase_y, phase_x in itertools.product(range(key.stride_y), range(key.stride_x)):
        across = range(phase_x, columns, key.stride_x)
        for index, row in enumerate(range(phase_y, rows, key.stride_y)):
            for column in across if index % 2 == 0 else reversed(across):
                yield row, column
