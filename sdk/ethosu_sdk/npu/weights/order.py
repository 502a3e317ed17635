"""How a weight stream walks through the kernels; the walk of Ethos-U55 and Ethos-U65.

A stream is a nest of loops, outermost first: OFM blocks; IFM blocks; sub-kernels; IFM micro-blocks; OFM
micro-blocks; kernel elements; groups of IFM channels; OFM channels; IFM channels. The order is that of the weight
encoders of ethos-u-vela 5.1.0. Walks differ in the sizes of these loops and in their paths through a sub-kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ethosu_sdk.npu.geometry import ceil_div, subkernel
from ethosu_sdk.targets import Generation

# The kernel is walked in parts of at most 8x8, dilation included.
_IFM_MICRO_DEPTH = 8


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

    @property
    def count(self) -> int:
        """Weights of the operation, without what pads its streams."""
        return self.depth * self.height * self.width * self.ifm_depth


@dataclass(frozen=True)
class Subkernel:
    """A part of the kernel: where it starts, and its rows and columns."""

    y: int
    x: int
    rows: int
    columns: int


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

    def ofm_steps(self, depth: int) -> int:
        """OFM micro-blocks of a block of `depth` channels."""
        return ceil_div(depth, self.ofm_micro)

    def ifm_steps(self, depth: int) -> int:
        """IFM micro-blocks of a block of `depth` channels."""
        return ceil_div(depth, self.ifm_micro)


def walk_u55(key: OrderKey, core: int) -> Walk:
    """The walk of one core's stream on Ethos-U55 and Ethos-U65.

    Core c of n has every n-th OFM channel from c on and takes its share of each OFM block.
    """
    narrow = key.part_kernel_first or key.ifm_bits == 16
    block = 1 if key.depthwise else 16 if narrow else 32
    group = 1 if key.depthwise else _IFM_MICRO_DEPTH
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


def path_u55(part: Subkernel) -> Iterator[tuple[int, int]]:
    """The rows and columns of a sub-kernel in the order of the stream: row by row."""
    for row in range(part.rows):
        for column in range(part.columns):
            yield row, column


def share(total: int, core: int, cores: int) -> int:
    """How many of `total` channels core `core` has when the cores take turns."""
    return (total + cores - 1 - core) // cores


def subkernels(key: OrderKey, columns_first: bool) -> Iterator[Subkernel]:
    """The parts of the kernel in the order of the stream."""
    high, wide = subkernel(key.dilation_y), subkernel(key.dilation_x)
    rows = [(start, min(high, key.height - start)) for start in range(0, key.height, high)]
    columns = [(start, min(wide, key.width - start)) for start in range(0, key.width, wide)]
    if columns_first:
        yield from (Subkernel(y, x, high, wide) for x, wide in columns for y, high in rows)
    else:
        yield from (Subkernel(y, x, high, wide) for y, high in rows for x, wide in columns)
