"""Pooling, from registers to bytes, against plain loops."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import Kernel, Padding
from ethosu_sdk.npu.ops import argmax
from tests.tables import each
from tests.unit.npu.machine import U55_128, U85_256, place, run, taken
from tests.unit.npu.streams import (
    DOWN_85,
    GLOBAL_SCALE,
    NATURAL,
    NATURAL_85,
    POOL,
    Setting,
    feature_map,
    ofm,
    precision,
    stream,
)
from tests.unit.npu.tosa import apply_scale_32, reciprocal_average

MAX, AVERAGE, REDUCE_SUM, SUM, NONE, MIN, ARGMAX_X, ARGMAX_Y = range(8)
IFM_BASE, OFM_BASE = 0x1000, 0x3000
Window = list[int]
Geometry = tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]


def pool(
    mode: int,
    ifm: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int, int, int],
    changes: Mapping[str, Setting | None],
    depth: int | None = None,
    config: NpuConfig = U55_128,
) -> list[int]:
    """The OFM as a flat list; int8, zero points 0, scale 1, half up. None in `changes` leaves a register unset."""
    top, left, bottom, right = pad
    rows = (ifm.shape[0] + top + bottom - kernel[0]) // stride[0] + 1
    columns = (ifm.shape[1] + left + right - kernel[1]) // stride[1] + 1
    shape = (rows, columns, depth or ifm.shape[2])
    is_u85 = config.npu == "ethos-u85"
    settings: dict[str, Setting] = {
        **feature_map("IFM", IFM_BASE, (ifm.shape[0], ifm.shape[1], ifm.shape[2]), 8),
        **ofm(OFM_BASE, shape, 8, GLOBAL_SCALE | (0 if is_u85 else NATURAL)),
        "IFM_DEPTH_M1": ifm.shape[2] - 1,
        **{f"IFM_PAD_{side}": n for side, n in zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), pad, strict=True)},
        "KERNEL_HEIGHT_M1": kernel[0] - 1,
        "KERNEL_WIDTH_M1": kernel[1] - 1,
        "KERNEL_STRIDE": (stride[1] - 1 & 1)
        | (stride[0] - 1 & 1) << 1
        | (stride[1] - 1 >> 1) << 6
        | (stride[0] - 1 >> 1) << 9,
        "ACC_FORMAT": 0,
        "ACTIVATION": 0,
        "OFM_SCALE": (1, NATURAL_85 if is_u85 else 0),
        **{name: value for name, value in changes.items() if value is not None},
    }
    for name in (name for name, value in changes.items() if value is None):
        del settings[name]
    scratch = place((IFM_BASE, ifm.astype(np.int8)))
    run(stream((settings, POOL, mode)), scratch, config=config)
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
@pytest.mark.parametrize(("mode", "best", "config"), [(MAX, max, U55_128), (MIN, min, U85_256)])
def test_maxima_and_minima_leave_padding_out(
    geometry: Geometry, mode: int, best: Callable[[Window], int], config: NpuConfig
) -> None:
    """All values are negative for maxima and positive for minima: padding that counted as 0 would win."""
    ifm = (1 + abs(IFM) // 2) * (-1 if mode == MAX else 1)
    changes: dict[str, Setting] = {"IFM_ZERO_POINT": -7, "OFM_ZERO_POINT": -9}
    expected = windows(ifm, *geometry, lambda window: max(-128, min(127, best(window) + 7 - 9)))
    assert pool(mode, ifm, *geometry, changes, config=config) == expected


@pytest.mark.parametrize("geometry", [row for row in GEOMETRIES if row[2] == (0, 0, 0, 0)])
def test_averages_without_padding_are_scaled_sums(geometry: Geometry) -> None:
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
def test_averages_with_padding_divide_by_what_is_there(geometry: Geometry) -> None:
    expected = windows(
        IFM,
        *geometry,
        lambda window: max(-128, reciprocal_average(sum(window) - 3 * len(window), len(window)) - 2),
    )
    changes: dict[str, Setting] = {"IFM_ZERO_POINT": 3, "OFM_ZERO_POINT": -2}
    assert pool(AVERAGE, IFM, *geometry, changes) == expected


@each(("value", "expected"), [(5, 3), (-5, -2), (3, 2), (-3, -1), (-1, 0), (1, 1)])
def test_a_scaled_copy_rounds_ties_up(value: int, expected: int) -> None:
    """A 1x1 average is Vela's copy; here it halves."""
    ifm = np.full((1, 1, 1), value)
    changes: dict[str, Setting] = {"OFM_SCALE": (1 << 30, 31)}
    assert pool(AVERAGE, ifm, (1, 1), (1, 1), (0, 0, 0, 0), changes) == [expected]


def test_copies_stride_and_depths_are_the_ofms() -> None:
    changes: dict[str, Setting] = {"OFM_SCALE": (0x8000_0001, 31)}
    expected = IFM[::2, ::3].reshape(-1).tolist()
    assert pool(AVERAGE, IFM, (1, 1), (2, 3), (0, 0, 0, 0), changes) == expected
    # It is the OFM's; Vela leaves another operation's in the register.
    changes: dict[str, Setting] = {"IFM_DEPTH_M1": 60000}
    expected = windows(IFM, (2, 2), (1, 1), (0, 0, 0, 0), max)
    assert pool(MAX, IFM, (2, 2), (1, 1), (0, 0, 0, 0), changes) == expected


def test_sums_are_over_depth_or_windows_where_padding_is_nothing() -> None:
    changes: dict[str, Setting] = {"OFM_SCALE": (1 << 30, 33), "IFM_ZERO_POINT": 1, "OFM_ZERO_POINT": 4}
    expected = [
        apply_scale_32(sum(int(v) - 1 for v in IFM[y, x]), 1 << 30, 33, False) + 4
        for y, x in np.ndindex(7, 6)
    ]
    assert pool(REDUCE_SUM, IFM, (1, 1), (1, 1), (0, 0, 0, 0), changes, depth=1) == [
        max(-128, min(127, value)) for value in expected
    ]
    # The zero point of what is there is subtracted, padding has none.
    geometry: Geometry = ((3, 3), (2, 2), (1, 1, 1, 0))
    changes: dict[str, Setting] = {
        "OFM_SCALE": (1 << 30, 33 | NATURAL_85),
        "IFM_ZERO_POINT": 5,
        "OFM_ZERO_POINT": -2,
    }
    expected = windows(
        IFM,
        *geometry,
        lambda window: max(
            -128, min(127, apply_scale_32(sum(window) - 5 * len(window), 1 << 30, 33, False) - 2)
        ),
    )
    assert pool(SUM, IFM, *geometry, changes, config=U85_256) == expected


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


@each("scale", [None, (7, 3)])
@each(("mode", "pad"), [(MAX, (0, 0, 0, 0)), (MAX, (1, 1, 0, 0)), (AVERAGE, (1, 1, 0, 0))])
def test_without_the_global_scale_a_pool_reads_none(
    mode: int, pad: tuple[int, int, int, int], scale: Setting | None
) -> None:
    """Vela up to 4.x leaves OFM_SCALE as an operation before has set it, or unset."""
    changes: dict[str, Setting | None] = {
        "OFM_PRECISION": precision(8, ofm=True, extra=NATURAL),
        "OFM_SCALE": scale,
    }
    geometry = ((2, 2), (1, 1), pad)
    assert pool(mode, IFM, *geometry, changes) == pool(mode, IFM, *geometry, {"OFM_SCALE": (1, 0)})


@each(("mode", "pad"), [(MAX, (0, 0, 0, 0)), (MAX, (1, 1, 0, 0)), (AVERAGE, (1, 1, 0, 0))])
def test_the_scale_of_an_average_is_not_read_where_nothing_is_to_divide(
    mode: int, pad: tuple[int, int, int, int]
) -> None:
    """Vela 5.0.0 writes it for each pool: here of 2x3 elements."""
    geometry = ((2, 3), (1, 1), pad)
    scale = ((1 << 34) + (1 << 3)) // 6
    assert pool(mode, IFM, *geometry, {"OFM_SCALE": (scale, 34)}) == pool(mode, IFM, *geometry, {})


def test_32_bit_results_have_no_zero_point() -> None:
    """Vela up to 4.x leaves the zero point of 8-bit elements in SOFTMAX's registers."""
    changes: dict[str, Setting] = {
        **feature_map("OFM", OFM_BASE, (IFM.shape[0], IFM.shape[1], 1), 32, GLOBAL_SCALE | NATURAL),
        "OFM_ZERO_POINT": -18,
    }
    settings = {name: value for name, value in changes.items() if name != "OFM_ZERO_POINT"}
    arguments = (REDUCE_SUM, IFM, (1, 1), (1, 1), (0, 0, 0, 0))
    assert pool(*arguments, changes, depth=1) == pool(*arguments, settings, depth=1)


def test_what_no_pool_does_is_refused() -> None:
    with pytest.raises(UnsupportedCommand, match="scaled average") as raised:
        pool(AVERAGE, IFM, (2, 2), (1, 1), (1, 1, 0, 0), {"OFM_SCALE": (1 << 30, 31)})
    assert (raised.value.name.endswith("SET_OFM_SCALE"), raised.value.value) == (True, 1 << 30)
    for mode in (ARGMAX_X, ARGMAX_Y):
        with pytest.raises(UnsupportedCommand, match="ARGMAX"):
            pool(mode, IFM, (2, 2), (1, 1), (0, 0, 0, 0), {}, config=U85_256)
    for mode in (MAX, AVERAGE):
        with pytest.raises(UnsupportedCommand, match="dilated"):
            pool(mode, IFM, (3, 3), (1, 1), (0, 0, 0, 0), {"KERNEL_STRIDE": 1 << 3})


@pytest.mark.parametrize("mode", [MAX, AVERAGE])
def test_windows_of_padding_alone_are_refused(mode: int) -> None:
    with pytest.raises(UnsupportedCommand):
        pool(mode, IFM, (2, 2), (1, 1), (2, 0, 0, 0), {})


@st.composite
def geometries(draw: st.DrawFn) -> tuple[tuple[int, int, int], Geometry]:
    """An IFM's shape, and a kernel, a stride and a padding that go with it."""
    kernel, stride, pads, shape = [], [], [], []
    for _ in range(2):
        size = draw(st.integers(1, 6))
        before, after = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
        step = draw(st.integers(1, 4))
        count = draw(st.integers(1, 4))
        # The IFM's size follows from the OFM's, so the last window ends exactly at the padding's end.
        length = (count - 1) * step + size - before - after
        if length < 1:
            before = after = 0
            length = (count - 1) * step + size
        kernel.append(size)
        stride.append(step)
        pads.append((before, after))
        shape.append(length)
    (top, bottom), (left, right) = pads
    return (shape[0], shape[1], draw(st.integers(1, 3))), (
        (kernel[0], kernel[1]),
        (stride[0], stride[1]),
        (top, left, bottom, right),
    )


COMPUTED: dict[int, Callable[[Window], int]] = {
    MAX: max,
    MIN: min,
    SUM: lambda window: max(-128, min(127, sum(window))),
    AVERAGE: lambda window: reciprocal_average(sum(window), len(window)),
}


@settings(max_examples=150, deadline=None)
@given(geometries(), st.sampled_from(list(COMPUTED)), st.integers(0, 2**32 - 1))
def test_any_window(case: tuple[tuple[int, int, int], Geometry], mode: int, seed: int) -> None:
    """Also averages without padding: Ethos-U85 always divides by the number of valid elements."""
    shape, geometry = case
    ifm = np.random.default_rng(seed).integers(-128, 128, shape)
    assert pool(mode, ifm, *geometry, {}, config=U85_256) == windows(ifm, *geometry, COMPUTED[mode])


@settings(max_examples=50, deadline=None)
@given(geometries(), st.sampled_from([MAX, AVERAGE]), st.integers(0, 2**32 - 1))
def test_any_window_of_ethos_u55(case: tuple[tuple[int, int, int], Geometry], mode: int, seed: int) -> None:
    """Averages without padding are plain sums here."""
    shape, geometry = case
    ifm = np.random.default_rng(seed).integers(-128, 128, shape)
    plain = mode == AVERAGE and not any(geometry[2])
    assert pool(mode, ifm, *geometry, {}) == windows(ifm, *geometry, COMPUTED[SUM if plain else mode])


@each(
    ("values", "index"),
    [
        ([3, 9, 9, 1], 1),  # the first of two maxima
        ([-128, -128, -128, -128], 0),
        ([-5, -4, -4, -128], 1),  # negative values are no large ones
        ([0, -1, 127, 127], 2),
        ([-1, 0, -1, -1], 1),
        ([5, 4, 3, 2], 0),
        ([1, 2, 3, 4], 3),
    ],
)
@each("mode", [ARGMAX_X, ARGMAX_Y])
@each("zero_point", [0, -3])
def test_argmax_is_where_the_first_maximum_is(
    values: list[int], index: int, mode: int, zero_point: int
) -> None:
    """The accumulator is index << 16 | value: shifted by 16, rounded down, the index is left."""
    shape = (1, 4, 1) if mode == ARGMAX_X else (4, 1, 1)
    changes: dict[str, Setting] = {"OFM_SCALE": (1, 16 | DOWN_85), "IFM_ZERO_POINT": zero_point}
    ifm = np.array(values).reshape(shape)
    kernel = (shape[0], shape[1])
    assert pool(mode, ifm, kernel, (1, 1), (0, 0, 0, 0), changes, config=U85_256) == [index]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3, 100, -7, 100], 1 << 16 | 100), ([-9, -2, -3, -2], 1 << 16 | 0xFFFE), ([0, -1, 0, 0], 0)],
)
def test_argmax_keeps_the_value_in_the_low_half(values: list[int], expected: int) -> None:
    row = np.array(values).reshape(1, 4, 1)
    found = argmax(row, Kernel(1, 4, 1, 1, 1, 1, False), Padding(0, 0, 0, 0))
    assert found.tolist() == [[[expected]]]


def test_argmax_of_many_channels() -> None:
    ifm = np.random.default_rng(9).integers(-4, 5, (5, 3, 7))
    changes: dict[str, Setting] = {"OFM_SCALE": (1, 16 | DOWN_85)}
    expected = windows(ifm, (5, 1), (1, 1), (0, 0, 0, 0), lambda window: window.index(max(window)))
    assert pool(ARGMAX_Y, ifm, (5, 1), (1, 1), (0, 0, 0, 0), changes, config=U85_256) == expected
