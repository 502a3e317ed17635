"""Pooling, from registers to bytes, against plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ethosu_sdk.npu.errors import UnsupportedCommand
from tests.unit.npu.machine import place, run, taken
from tests.unit.npu.streams import GLOBAL_SCALE, NATURAL, POOL, Setting, feature_map, ofm, stream
from tests.unit.npu.test_rounding import apply_scale_32, reciprocal_average

MAX, AVERAGE, REDUCE_SUM = range(3)
IFM_BASE, OFM_BASE = 0x1000, 0x3000
Window = list[int]


def pool(
    mode: int,
    ifm: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int, int, int],
    changes: dict[str, Setting],
    depth: int | None = None,
) -> list[int]:
    """The OFM as a flat list; int8, zero points 0, scale 1."""
    top, left, bottom, right = pad
    rows = (ifm.shape[0] + top + bottom - kernel[0]) // stride[0] + 1
    columns = (ifm.shape[1] + left + right - kernel[1]) // stride[1] + 1
    shape = (rows, columns, depth or ifm.shape[2])
    settings: dict[str, Setting] = {
        **feature_map("IFM", IFM_BASE, (ifm.shape[0], ifm.shape[1], ifm.shape[2]), 8),
        **ofm(OFM_BASE, shape, 8, GLOBAL_SCALE | NATURAL),
        "IFM_DEPTH_M1": ifm.shape[2] - 1,
        **{f"IFM_PAD_{side}": n for side, n in zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), pad, strict=True)},
        "KERNEL_HEIGHT_M1": kernel[0] - 1,
        "KERNEL_WIDTH_M1": kernel[1] - 1,
        "KERNEL_STRIDE": (stride[1] - 1) | (stride[0] - 1) << 1,
        "ACC_FORMAT": 0,
        "ACTIVATION": 0,
        "OFM_SCALE": (1, 0),
        **changes,
    }
    scratch = place((IFM_BASE, ifm.astype(np.int8)))
    run(stream((settings, POOL, mode)), scratch)
    return taken(scratch, OFM_BASE, shape[0] * shape[1] * shape[2], "<i1")


def windows(
    ifm: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int, int, int],
    compute: Callable[[Window], int],
) -> list[int]:
    """`compute` of the elements under the kernel, padding left out, for every OFM element."""
    height, width, depth = ifm.shape
    top, left, bottom, right = pad
    found = []
    for y in range(-top, height + bottom - kernel[0] + 1, stride[0]):
        for x in range(-left, width + right - kernel[1] + 1, stride[1]):
            rows = range(max(0, y), min(height, y + kernel[0]))
            columns = range(max(0, x), min(width, x + kernel[1]))
            for c in range(depth):
                found.append(compute([int(ifm[i, j, c]) for i in rows for j in columns]))
    return found


IFM = np.random.default_rng(5).integers(-128, 128, (7, 6, 5))
GEOMETRIES = [
    ((2, 2), (2, 2), (0, 0, 0, 0)),
    ((3, 2), (1, 2), (0, 0, 0, 0)),
    ((3, 3), (2, 2), (1, 1, 1, 0)),
    ((2, 3), (1, 1), (1, 0, 0, 2)),
    ((7, 6), (1, 1), (0, 0, 0, 0)),
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_maxima_leave_padding_out(
    geometry: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]],
) -> None:
    """All values are negative: padding that counted as 0 would win."""
    ifm = -1 - abs(IFM) // 2
    changes: dict[str, Setting] = {"IFM_ZERO_POINT": -7, "OFM_ZERO_POINT": -9}
    expected = windows(ifm, *geometry, lambda window: max(-128, max(window) + 7 - 9))
    assert pool(MAX, ifm, *geometry, changes) == expected


@pytest.mark.parametrize("geometry", [row for row in GEOMETRIES if row[2] == (0, 0, 0, 0)])
def test_averages_without_padding_are_scaled_sums(
    geometry: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]],
) -> None:
    count = geometry[0][0] * geometry[0][1]
    bits = (count - 1).bit_length()
    scale = -(-((1 << (31 + bits)) + (1 << bits)) // count)
    changes: dict[str, Setting] = {"OFM_SCALE": (scale, 31 + bits), "IFM_ZERO_POINT": 3, "OFM_ZERO_POINT": -2}
    expected = windows(
        IFM,
        *geometry,
        lambda window: max(-128, apply_scale_32(sum(window) - 3 * count, scale, 31 + bits, False) - 2),
    )
    assert pool(AVERAGE, IFM, *geometry, changes) == expected


@pytest.mark.parametrize("geometry", [row for row in GEOMETRIES if row[2] != (0, 0, 0, 0)])
def test_averages_with_padding_divide_by_what_is_there(
    geometry: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]],
) -> None:
    expected = windows(
        IFM,
        *geometry,
        lambda window: max(-128, reciprocal_average(sum(window) - 3 * len(window), len(window)) - 2),
    )
    changes: dict[str, Setting] = {"IFM_ZERO_POINT": 3, "OFM_ZERO_POINT": -2}
    assert pool(AVERAGE, IFM, *geometry, changes) == expected


@pytest.mark.parametrize(("value", "expected"), [(5, 3), (-5, -2), (3, 2), (-3, -1), (-1, 0), (1, 1)])
def test_a_scaled_copy_rounds_ties_up(value: int, expected: int) -> None:
    """A 1x1 average is Vela's copy; here it halves."""
    ifm = np.full((1, 1, 1), value)
    changes: dict[str, Setting] = {"OFM_SCALE": (1 << 30, 31)}
    assert pool(AVERAGE, ifm, (1, 1), (1, 1), (0, 0, 0, 0), changes) == [expected]


def test_a_copy_can_stride() -> None:
    changes: dict[str, Setting] = {"OFM_SCALE": (0x8000_0001, 31)}
    expected = IFM[::2, ::3].reshape(-1).tolist()
    assert (
        pool(AVERAGE, IFM, (1, 1), (2, 3), (0, 0, 0, 0), {**changes, "KERNEL_STRIDE": 1 << 1 | 1 << 6})
        == expected
    )


def test_sums_over_depth() -> None:
    changes: dict[str, Setting] = {"OFM_SCALE": (1 << 30, 33), "IFM_ZERO_POINT": 1, "OFM_ZERO_POINT": 4}
    expected = [
        apply_scale_32(sum(int(v) - 1 for v in IFM[y, x]), 1 << 30, 33, False) + 4
        for y, x in np.ndindex(7, 6)
    ]
    assert pool(REDUCE_SUM, IFM, (1, 1), (1, 1), (0, 0, 0, 0), changes, depth=1) == [
        max(-128, min(127, value)) for value in expected
    ]


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "depth"),
    [
        ((2, 2), (1, 1), (0, 0, 0, 0), 1),
        ((1, 1), (2, 2), (0, 0, 0, 0), 1),
        ((1, 1), (1, 1), (0, 0, 0, 0), 5),
    ],
)
def test_sums_over_depth_of_another_geometry_are_refused(
    kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int, int, int], depth: int
) -> None:
    with pytest.raises(UnsupportedCommand):
        pool(REDUCE_SUM, IFM, kernel, stride, pad, {}, depth=depth)


def test_a_padded_average_with_a_scale_is_refused() -> None:
    with pytest.raises(UnsupportedCommand, match="padded average") as raised:
        pool(AVERAGE, IFM, (2, 2), (1, 1), (1, 1, 0, 0), {"OFM_SCALE": (1 << 30, 31)})
    assert (raised.value.name.endswith("SET_OFM_SCALE"), raised.value.value) == (True, 1 << 30)


@pytest.mark.parametrize("mode", [MAX, AVERAGE])
def test_windows_of_padding_alone_are_refused(mode: int) -> None:
    with pytest.raises(UnsupportedCommand):
        pool(mode, IFM, (2, 2), (1, 1), (2, 0, 0, 0), {})
