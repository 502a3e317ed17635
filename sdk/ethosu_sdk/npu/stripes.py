"""The rows of an OFM in parts, and what of the IFM each part needs.

What is computed has eight bytes for each element and exists several times over; what is stored has one to four. So an
operation is computed in stripes of rows, which are stored together when the last one is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.npu.arrays import Array
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.geometry import ceil_div
from ethosu_sdk.npu.operation import BlockOp, Kind, Padding
from ethosu_sdk.npu.ops.window import upscaled

_STRIPE_ELEMENTS = 1 << 21  # some tens of milliseconds
_MOST_ROW_ELEMENTS = 1 << 24  # of one OFM row, or of the IFM rows under the kernel: 128 MiB for each copy


@dataclass(frozen=True)
class Rows:
    """Rows `start` to `stop` of an OFM, the last one not included."""

    start: int
    stop: int

    @property
    def part(self) -> slice:
        """The same, to index an array with."""
        return slice(self.start, self.stop)


def stripes(op: BlockOp) -> Iterator[Rows]:
    """The rows of `op`'s OFM in parts. UnsupportedCommand when a single row is more than a host should hold."""
    height, width, depth = op.shape
    _, columns, channels = op.ifm_shape
    under_kernel = (
        columns * channels * (1 if _by_rows(op) else min(op.kernel.dilated_height, op.ifm_shape[0]))
    )
    largest = max(width * depth, under_kernel)
    if largest > _MOST_ROW_ELEMENTS:
        raise UnsupportedCommand(
            "SET_OFM_WIDTH_M1", op.offset, width - 1, f"a row that takes {largest:,} elements at once"
        )
    step = max(1, _STRIPE_ELEMENTS // max(1, width * depth, columns * channels * op.kernel.stride_y))
    for start in range(0, height, step):
        yield Rows(start, min(start + step, height))


def _by_rows(op: BlockOp) -> bool:
    return op.kind in (Kind.ELEMENTWISE, Kind.RESIZE, Kind.MATMUL)


def window(op: BlockOp, stored: Array, rows: Rows) -> tuple[Array, Padding]:
    """What of the IFM is under the kernel at `rows`: its elements, upscaled, zero point subtracted, and the padding.

    `stored` is the IFM as it is in memory.
    """
    height, width, _ = op.ifm_shape
    top = rows.start * op.kernel.stride_y - op.padding.top
    bottom = (rows.stop - 1) * op.kernel.stride_y + op.kernel.dilated_height - op.padding.top
    first, last = (min(max(row, 0), height) for row in (top, bottom))
    above = min(max(0, -top), bottom - top)
    padding = Padding(above, op.padding.left, bottom - top - above - (last - first), op.padding.right)
    factor = 2 if op.upscale else 1
    start = first // factor
    wide = widened(op, stored[start : ceil_div(last, factor)])
    wide = upscaled(wide, op.upscale, factor * wide.shape[0], width)
    skipped = first - start * factor
    return wide[skipped : skipped + last - first], padding


def widened(op: BlockOp, stored: Array) -> Array:
    """Elements of the IFM without their zero point, in a type that holds them."""
    wide: Array = stored.astype(np.int32 if op.ifm.dtype.itemsize < 4 else np.int64)
    wide -= op.ifm.zero_point
    return wide
