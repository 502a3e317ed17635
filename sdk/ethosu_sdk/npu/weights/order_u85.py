"""How a weight stream of Ethos-U85 walks through the kernels."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.npu.weights.order import OrderKey, Subkernel, Walk

LANE = 4  # OFM channels of a micro-block that one core takes before the next one does
_PART_KERNEL_IFM_BLOCK = 16


def walk_u85(key: OrderKey) -> Walk:
    """The walk of every core's stream, and of the one stream of the fast format."""
    ifm_block = 1 if key.depthwise else _ifm_block(key)
    halved = key.part_kernel_first and key.ifm_bits == 16 and not key.sparse
    return Walk(
        ofm_block=key.block_depth,
        ofm_micro=key.ofm_micro_depth,
        lane=LANE,
        cores=key.cores,
        ifm_block=ifm_block,
        ifm_micro=8 if halved else ifm_block,
        ifm_group=1 if key.depthwise else 16 if key.sparse else 8,
        batch=_batch(key),
        gap=_gap(key) if key.depthwise else 0,
        serpentine=True,
        interleaved=key.fast,
    )


def _ifm_block(key: OrderKey) -> int:
    """Depth of the IFM blocks: no register holds it; ethos-u-vela 5.1.0 chooses it by these rules."""
    if key.part_kernel_first:
        return _PART_KERNEL_IFM_BLOCK
    shallow = key.macs in (128, 256) and key.ofm_micro_depth == 16 and not key.sparse
    if key.ifm_bits == 32 or shallow:
        return 32
    return 128 if key.sparse and key.ifm_bits == 8 else 64


def _batch(key: OrderKey) -> int:
    if key.depthwise:
        return 10
    if key.part_kernel_first:
        return 10 if key.ifm_bits == 16 or key.sparse else 5
    return 1


def _gap(key: OrderKey) -> int:
    """Steps of padding behind each batch of a depthwise stream."""
    if key.ifm_bits != 16 and key.macs <= 256:
        return 0
    return 2 if key.macs <= 512 else 6


def path_u85(part: Subkernel, stride_y: int, stride_x: int) -> Iterator[tuple[int, int]]:
    """The rows and columns of a sub-kernel in the order of the stream.

    Elements that one stride apart belong together, one phase after the other; rows of a phase are taken from left
    to right and from right to left by turns. Depth-first streams walk as if the strides were 1.
    """
    for phase_y in range(stride_y):
        for phase_x in range(stride_x):
            columns = range(phase_x, part.columns, stride_x)
            for index, row in enumerate(range(phase_y, part.rows, stride_y)):
                for column in columns if index % 2 == 0 else reversed(columns):
                    yield row, column
