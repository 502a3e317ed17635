"""IFM preparation that convolution and pooling share: upscaling, padding, windows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.arrays import Array
from ethosu_sdk.npu.operation import Kernel, Padding

UPSCALE_NONE, UPSCALE_NEAREST, UPSCALE_ZEROS = 0, 1, 2


def upscaled(values: Array, mode: int, height: int, width: int) -> Array:
    """`values` doubled along height and width, by repetition or with zeros between, cut to the size."""
    if mode == UPSCALE_NONE:
        return values
    if mode == UPSCALE_NEAREST:
        return values.repeat(2, 0).repeat(2, 1)[:height, :width]
    result = np.zeros((2 * values.shape[0], 2 * values.shape[1], values.shape[2]), values.dtype)
    result[::2, ::2] = values
    return result[:height, :width]


def padded(values: Array, padding: Padding, fill: int) -> Array:
    """`values` with rows and columns of `fill` around."""
    if not padding.any:
        return values
    border = ((padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
    return np.pad(values, border, constant_values=fill)


def windows(values: Array, kernel: Kernel) -> Array:
    """A view of (OFM height, OFM width, depth, kernel height, kernel width)."""
    spans = (kernel.dilated_height, kernel.dilated_width)
    view = np.lib.stride_tricks.sliding_window_view(values, spans, axis=(0, 1))  # type: ignore[call-overload]
    return np.asarray(
        view[:: kernel.stride_y, :: kernel.stride_x, :, :: kernel.dilation_y, :: kernel.dilation_x]
    )


def taps(values: Array, kernel: Kernel, axis: int) -> Iterator[Array]:
    """Along axis 0 or 1: for each of the kernel's elements, a view of what it meets at all OFM positions."""
    size, stride, dilation = (
        (kernel.height, kernel.stride_y, kernel.dilation_y),
        (kernel.width, kernel.stride_x, kernel.dilation_x),
    )[axis]
    count = (values.shape[axis] - (size - 1) * dilation - 1) // stride + 1
    for element in range(size):
        deadline.check()
        part = slice(element * dilation, element * dilation + (count - 1) * stride + 1, stride)
        yield values[part] if axis == 0 else values[:, part]
