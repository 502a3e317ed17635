"""Upscaling, padding and kernel windows."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.npu.operation import Kernel, Padding
from ethosu_sdk.npu.ops.window import (
    UPSCALE_NEAREST,
    UPSCALE_NONE,
    UPSCALE_ZEROS,
    padded,
    taps,
    upscaled,
    windows,
)

SMALL = np.array([[1, 2], [3, 4]])[:, :, None]


def plane(values: NDArray[np.int64]) -> list[list[int]]:
    result: list[list[int]] = values[:, :, 0].tolist()
    return result


@pytest.mark.parametrize(
    ("mode", "size", "expected"),
    [
        (UPSCALE_NONE, (2, 2), [[1, 2], [3, 4]]),
        (UPSCALE_NEAREST, (4, 4), [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]),
        (UPSCALE_NEAREST, (3, 4), [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4]]),
        (UPSCALE_ZEROS, (4, 4), [[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0]]),
        (UPSCALE_ZEROS, (3, 3), [[1, 0, 2], [0, 0, 0], [3, 0, 4]]),
    ],
)
def test_upscaling(mode: int, size: tuple[int, int], expected: list[list[int]]) -> None:
    assert plane(upscaled(SMALL, mode, *size)) == expected


def test_padding_has_four_sides() -> None:
    assert plane(padded(SMALL, Padding(1, 2, 0, 1), 9)) == [
        [9, 9, 9, 9, 9],
        [9, 9, 1, 2, 9],
        [9, 9, 3, 4, 9],
    ]
    assert plane(padded(SMALL, Padding(0, 0, 1, 0), -1)) == [[1, 2], [3, 4], [-1, -1]]
    assert padded(SMALL, Padding(0, 0, 0, 0), 9) is SMALL


@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1), (1, 2)])
def test_windows(stride: tuple[int, int], dilation: tuple[int, int]) -> None:
    values = np.arange(9 * 8 * 2).reshape(9, 8, 2)
    kernel = Kernel(3, 2, *stride, *dilation, False)
    view = windows(values, kernel)
    span_y, span_x = 2 * dilation[0] + 1, dilation[1] + 1
    assert view.shape == ((9 - span_y) // stride[0] + 1, (8 - span_x) // stride[1] + 1, 2, 3, 2)
    for y, x, c, i, j in np.ndindex(*view.shape):
        assert (
            view[y, x, c, i, j] == values[y * stride[0] + i * dilation[0], x * stride[1] + j * dilation[1], c]
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("size", "stride", "dilation"), [(1, 1, 1), (3, 1, 1), (2, 3, 1), (4, 2, 2), (9, 1, 1)]
)
def test_taps_are_what_each_element_of_the_kernel_meets(
    axis: int, size: int, stride: int, dilation: int
) -> None:
    values = np.arange(9 * 9 * 2).reshape(9, 9, 2)
    along = (size, stride, dilation)
    other = (1, 1, 1)
    (height, stride_y, dilation_y), (width, stride_x, dilation_x) = (
        (along, other) if axis == 0 else (other, along)
    )
    found = list(taps(values, Kernel(height, width, stride_y, stride_x, dilation_y, dilation_x, False), axis))
    count = len(range(0, 9 - (size - 1) * dilation, stride))
    assert len(found) == size
    for element, part in enumerate(found):
        assert part.shape[axis] == count
        for position in range(count):
            source = position * stride + element * dilation
            assert part.take(position, axis).tolist() == values.take(source, axis).tolist()
