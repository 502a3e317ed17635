"""RESIZE: interpolation between the IFM's elements."""

from __future__ import annotations

import numpy as np

from ethosu_sdk.npu.arrays import Array, Int64
from ethosu_sdk.npu.operation import ResizeAxis, ResizeMode


def _places(axis: ResizeAxis, count: int) -> tuple[Int64, Int64]:
    """(IFM position, numerator of the way to the next one) of `count` OFM positions."""
    position = np.arange(count, dtype=np.int64) * axis.step + axis.offset
    return position // axis.denominator, position % axis.denominator


def _interpolated(values: Array, axis_number: int, axis: ResizeAxis, count: int) -> Int64:
    """Along one axis: both neighbours, weighted by their distance; beyond the edge, the edge."""
    first, way = _places(axis, count)
    last = values.shape[axis_number] - 1
    shape = [1, 1, 1]
    shape[axis_number] = count
    weight = way.reshape(shape)
    low = values.take(np.clip(first, 0, last), axis_number)
    high = values.take(np.clip(first + 1, 0, last), axis_number)
    return np.asarray(low * (axis.denominator - weight) + high * weight)


def _nearest(values: Array, axis_number: int, axis: ResizeAxis, count: int) -> Array:
    """Along one axis: the nearer neighbour, at half way the second."""
    first, way = _places(axis, count)
    chosen = np.clip(first + (2 * way >= axis.denominator), 0, values.shape[axis_number] - 1)
    return values.take(chosen, axis_number)


def resize(
    values: Array, mode: ResizeMode, axes: tuple[ResizeAxis, ResizeAxis], height: int, width: int
) -> Int64:
    """`values` (rows, columns, depth) at `height` x `width` positions.

    BILINEAR sums carry both denominators as a factor.
    """
    rows, columns = axes
    if mode is ResizeMode.BILINEAR:
        return _interpolated(_interpolated(values, 0, rows, height), 1, columns, width)
    return _nearest(_nearest(values, 0, rows, height), 1, columns, width).astype(np.int64)
