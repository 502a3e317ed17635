"""Copying a decoded weight stream to its kernels, a rectangular piece at a time.

Where a stream's loops are regular, a piece of it is an array with one axis per loop: to arrange its weights is to
transpose that array. Regular are all OFM blocks of the same depth that take the IFM blocks in the same direction,
with all IFM blocks of the same depth, for one sub-kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.arrays import Places, Weights
from ethosu_sdk.npu.geometry import ceil_div
from ethosu_sdk.npu.weights.order import Walk

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
class _Run:
    """Equal IFM blocks that follow each other: first channel, how many blocks, channels of each."""

    first: int
    blocks: int
    depth: int


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
        return walk.ofm_steps(depth) * walk.ifm_steps(ifm_depth) * steps * walk.ofm_micro * walk.ifm_micro

    def _fill_blocks(self, data: Weights, targets: Weights, left: Sequence[int], backwards: bool) -> int:
        """From (streams, OFM blocks, weights of a block) to (OFM blocks, OFM, kernel, IFM).

        `left` are the channels from the start of each block to the end of the weights.
        """
        streams, blocks, _ = data.shape
        count = position = 0
        runs = list(_runs(targets.shape[3], self.walk.ifm_block))
        for run in reversed(runs) if backwards else runs:
            length = run.blocks * self._length(targets.shape[1], run.depth) // streams
            part = data[..., position : position + length].reshape(streams, blocks, run.blocks, -1)
            position += length
            channels = slice(run.first, run.first + run.blocks * run.depth)
            count += self._fill_run(
                part[:, :, ::-1] if backwards else part, targets[..., channels], run, left
            )
        return count

    def _fill_run(self, data: Weights, targets: Weights, run: _Run, left: Sequence[int]) -> int:
        """From (streams, OFM blocks, IFM blocks, weights) to (OFM blocks, OFM, kernel, IFM)."""
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
            deadline.check()
            batches = ceil_div(places.size, walk.batch)
            outer = (walk.ifm_steps(run.depth), walk.ofm_steps(depth), batches, walk.cores // len(data))
            length = math.prod(outer) * math.prod(inner)
            piece = data[..., position : position + length].reshape(*data.shape[:3], *outer, *inner)
            position += length
            elements = piece[..., : walk.batch, :, :, :, :].transpose(_WANTED)
            flat = elements.reshape(
                len(targets), -1, batches * walk.batch, run.blocks * outer[0] * walk.ifm_micro
            )
            inside = flat[:, :, : places.size, : targets.shape[3]]
            targets[:, :, places] = inside[:, :depth]
            count += int(np.count_nonzero(inside[:, :depth]))
            if depth % walk.ofm_micro:
                # The last micro-block reaches into the next OFM block, which has these channels again.
                again = (np.count_nonzero(inside[block, depth:end]) for block, end in enumerate(left))
                count += int(sum(again))
        return count


def _runs(depth: int, block: int) -> Iterator[_Run]:
    """The IFM blocks of `depth` channels: whole ones, then what is left."""
    whole, rest = divmod(depth, block)
    if whole:
        yield _Run(0, whole, block)
    if rest:
        yield _Run(whole * block, 1, rest)
