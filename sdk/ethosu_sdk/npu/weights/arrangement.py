"""Weights: from decoded streams to arrays that the operators can use.

A stream must decode to exactly as many weights as its order has, with zeros in all places that pad it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.arrays import Places, Weights
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import WeightOrderError
from ethosu_sdk.npu.geometry import subkernel
from ethosu_sdk.npu.operation import BlockOp, Kind
from ethosu_sdk.npu.weights.fill import Filler
from ethosu_sdk.npu.weights.order import OrderKey, Walk, path_u55, share, subkernels, walk_u55
from ethosu_sdk.npu.weights.order_u85 import path_u85, walk_u85

__all__ = ["OrderKey", "arrange", "order_key", "stream_sizes"]


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


@dataclass(frozen=True)
class _Channels:
    """The channels of one stream: OFM channels from `first` on, every `step`-th of them, `count` in all."""

    first: int
    step: int
    count: int


def _streams(key: OrderKey) -> tuple[tuple[Walk, _Channels], ...]:
    """The walk of each group of streams that is arranged together, and its channels."""
    if key.generation == "u85":
        return ((walk_u85(key), _Channels(0, 1, key.depth)),)
    return tuple(
        (walk_u55(key, core), _Channels(core, key.cores, share(key.depth, core, key.cores)))
        for core in range(key.cores)
    )


def stream_sizes(key: OrderKey, offset: int) -> tuple[int, ...]:
    """How many weights each stream of an operation holds, padding included.

    Worked out without building anything: registers may claim any size. WeightOrderError, which names the operation
    at byte `offset`, for an order that does not exist.
    """
    sizes = []
    for walk, channels in _streams(key):
        if walk.ofm_micro % (walk.lane * walk.cores) or not (walk.ofm_block or not channels.count):
            raise WeightOrderError(
                f"the operation at byte {offset} divides OFM blocks of {key.block_depth} channels, in steps of "
                f"{key.ofm_micro_depth}, between {key.cores} cores"
            )
        if walk.interleaved and key.depthwise:
            raise WeightOrderError(f"the operation at byte {offset} is depthwise and has fast weights")
        size = _size(key, walk, channels.count)
        sizes += [size] if walk.interleaved or key.generation == "u55" else [size // walk.cores] * walk.cores
    return tuple(sizes)


def _size(key: OrderKey, walk: Walk, depth: int) -> int:
    """Weights in the streams of a walk, all cores that share its micro-blocks together."""
    whole, rest = divmod(depth, max(1, walk.ofm_block))
    ofm_steps = whole * walk.ofm_steps(walk.ofm_block) + walk.ofm_steps(rest)
    # A whole IFM block is a whole number of micro-blocks.
    ifm_steps = walk.ifm_steps(key.ifm_depth)
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
    for data, (walk, channels) in zip(groups, _streams(key), strict=True):
        if channels.count:
            placed += Filler(walk, kernel).fill(data, weights[channels.first :: channels.step])
    if placed != sum(int(np.count_nonzero(stream)) for stream in used):
        raise WeightOrderError(f"the weights of the operation at byte {offset} are not in the expected order")
    return weights.reshape(key.depth, key.height, key.width, key.ifm_depth)


def _kernel_places(key: OrderKey) -> tuple[Places, ...]:
    """For each sub-kernel, the places of its elements in the kernel, row by row numbered."""
    is_u85 = key.generation == "u85"
    return tuple(
        np.array(
            [
                (part.y + row) * key.width + part.x + column
                for row, column in (path_u85(part, key.stride_y, key.stride_x) if is_u85 else path_u55(part))
            ],
            np.intp,
        )
        for part in subkernels(key, columns_first=is_u85)
    )
