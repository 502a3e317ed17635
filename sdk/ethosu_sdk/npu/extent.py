"""How far into its regions a command stream writes, because a payload does not state the size of its fast scratch
memory."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.geometry import BRICK
from ethosu_sdk.npu.operation import DmaOp, FeatureMap, Operation, Shape
from ethosu_sdk.npu.program import steps


def written_bytes(stream: bytes, config: NpuConfig) -> dict[int, int]:
    """Region → bytes from its base to behind the last one that `stream` writes. Branches count, taken or not.

    An indexed DMA that scatters writes where data says, which nobody knows beforehand: all rows that its largest
    index allows count. Raises CommandError and UnsupportedCommand as :func:`ethosu_sdk.npu.program.steps` does.
    """
    ends: dict[int, int] = {}
    for _, op in steps(stream, config):
        for region, end in _writes(op):
            ends[region] = max(ends.get(region, 0), end)
    return ends


def _writes(op: Operation | None) -> Iterator[tuple[int, int]]:
    if op is None:
        return
    if not isinstance(op, DmaOp):
        if op.ofm.chain is None:
            yield op.ofm.region, _end(op.ofm, op.stored_shape)
    elif op.target_region is not None:
        planes, rows = op.counts
        if op.index is not None and op.index.scatters:
            rows = op.index.maximum + 1
        steps_taken = zip((planes - 1, rows - 1), op.target_strides, strict=True)
        yield op.target_region, op.target + sum(max(0, n * stride) for n, stride in steps_taken) + op.length


def _end(feature_map: FeatureMap, shape: Shape) -> int:
    """The address behind the last byte of a feature map, in all of its tiles."""
    height, width, depth = shape
    size = feature_map.dtype.itemsize
    left = min(feature_map.width0, width)
    ends = []
    for column, columns in enumerate((left, width - left)):
        upper = min((feature_map.height1 if column else feature_map.height0), height)
        for row, rows in enumerate((upper, height - upper)):
            if rows > 0 and columns > 0:
                base = feature_map.bases[2 * row + column]
                ends.append(base + _reach(feature_map, rows, columns, depth) + size)
    return max(ends)


def _reach(feature_map: FeatureMap, rows: int, columns: int, depth: int) -> int:
    """From the first element of a tile to the one at the highest address, in bytes."""
    size = feature_map.dtype.itemsize
    if not feature_map.bricks:
        channels, along = (depth - 1) * size, feature_map.stride_x
    else:
        whole, rest = divmod(depth - 1, BRICK)
        last = whole * feature_map.stride_c + rest * size
        full = (whole - 1) * feature_map.stride_c + (BRICK - 1) * size if whole else 0
        channels, along = max(last, full), BRICK * size
    return max(0, (rows - 1) * feature_map.stride_y) + max(0, (columns - 1) * along) + channels
