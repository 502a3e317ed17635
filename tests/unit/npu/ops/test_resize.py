"""RESIZE, from registers to bytes, against its formula for one OFM element at a time.

Along an axis, OFM position o lies at p = o * step + offset in units of 1 / n IFM elements; i = floor(p / n) is the
element before it and r = p mod n the way to the next one. Beyond an edge, the edge is repeated.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import UnsupportedCommand
from tests.tables import each
from tests.unit.npu.machine import U85_256, place, run, taken
from tests.unit.npu.streams import (
    DOWN_85,
    GLOBAL_SCALE,
    NATURAL_85,
    RESIZE,
    Setting,
    feature_map,
    ofm,
    stream,
)

BILINEAR, NEAREST = 0, 2
IFM_BASE, OFM_BASE = 0x1000, 0x8000
Array = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """One axis: the IFM's and the OFM's size, n, the step and the offset."""

    size: int
    count: int
    n: int
    step: int
    offset: int = 0


def settings_of(rows: Axis, columns: Axis, depth: int, bits: int, ofm_bits: int) -> dict[str, Setting]:
    found: dict[str, Setting] = {
        **feature_map("IFM", IFM_BASE, (rows.size, columns.size, depth), bits),
        **ofm(OFM_BASE, (rows.count, columns.count, depth), ofm_bits, GLOBAL_SCALE),
        "KERNEL_HEIGHT_M1": rows.size - 1,
        "KERNEL_WIDTH_M1": columns.size - 1,
        "ACTIVATION": 1 << 12 if ofm_bits == 32 else 0,  # 32-bit results are not clipped
        "ACC_FORMAT": 0,
        "OFM_SCALE": (1, 16 | NATURAL_85),
    }
    for name, axis in (("Y", rows), ("X", columns)):
        found[f"RESIZE_{name}_SCALE_N_M1"] = axis.n - 1
        found[f"RESIZE_{name}_OFFSET"] = axis.offset
        found[f"RESIZE_{name}"] = (axis.step % axis.n, axis.step // axis.n)
    return found


def resized(
    values: Array,
    mode: int,
    rows: Axis,
    columns: Axis,
    changes: dict[str, Setting] | None = None,
    bits: int = 8,
    ofm_bits: int = 32,
) -> list[int]:
    """The OFM; by default the accumulators themselves, in 32 bits."""
    registers = {**settings_of(rows, columns, values.shape[2], bits, ofm_bits), **(changes or {})}
    scratch = place((IFM_BASE, values.astype(f"<i{bits // 8}")))
    run(stream((registers, RESIZE, mode)), scratch, config=U85_256)
    count = rows.count * columns.count * values.shape[2]
    return taken(scratch, OFM_BASE, count, f"<i{ofm_bits // 8}")


def formula(values: Array, mode: int, rows: Axis, columns: Axis) -> list[int]:
    """The accumulators by the definition, one OFM element at a time."""

    def at(y: int, x: int, c: int) -> int:
        return int(values[max(0, min(rows.size - 1, y)), max(0, min(columns.size - 1, x)), c])

    found = []
    for y, x, c in np.ndindex(rows.count, columns.count, values.shape[2]):
        i, ry = divmod(y * rows.step + rows.offset, rows.n)
        j, rx = divmod(x * columns.step + columns.offset, columns.n)
        if mode == NEAREST:
            found.append(at(i + (2 * ry >= rows.n), j + (2 * rx >= columns.n), c))
        else:
            found.append(
                at(i, j, c) * (rows.n - ry) * (columns.n - rx)
                + at(i, j + 1, c) * (rows.n - ry) * rx
                + at(i + 1, j, c) * ry * (columns.n - rx)
                + at(i + 1, j + 1, c) * ry * rx
            )
    return found


ROW = np.array([10, 20, -31, 40]).reshape(1, 4, 1)
ONE = Axis(1, 1, 1, 1)


def test_both_axes_at_once() -> None:
    values = np.array([[0, 8], [16, 100]]).reshape(2, 2, 1)
    axis = Axis(2, 3, 2, 1)
    # Four times the values; the middle is the sum of all four.
    assert resized(values, BILINEAR, axis, axis) == [0, 16, 32, 32, 124, 216, 64, 232, 400]
    # Halves go to the second neighbour on both axes.
    assert resized(values, NEAREST, axis, axis) == [0, 8, 8, 16, 100, 100, 16, 100, 100]


@each(
    ("value", "rounding", "expected"),
    [
        ((5, 6), NATURAL_85, [5, 6, 6]),  # 5.5: half up
        ((-5, -6), NATURAL_85, [-5, -5, -6]),  # -5.5: up as well
        ((5, 6), DOWN_85, [5, 5, 6]),
        ((-5, -6), DOWN_85, [-5, -6, -6]),
        ((5, 6), 0, [5, 6, 6]),  # DOUBLE is half up below a shift of 32
        ((-5, -6), 0, [-5, -5, -6]),
    ],
)
def test_halves_are_rounded_by_the_output_stage(
    value: tuple[int, int], rounding: int, expected: list[int]
) -> None:
    """The shift is 16, for the accumulators' own, and 1, for n."""
    changes: dict[str, Setting] = {"OFM_SCALE": (1, 17 | rounding)}
    row = np.array(value).reshape(1, 2, 1)
    assert resized(row, BILINEAR, ONE, Axis(2, 3, 2, 1), changes, ofm_bits=8) == expected


def test_zero_points_and_the_clamp() -> None:
    changes: dict[str, Setting] = {
        "OFM_SCALE": (1, 17 | NATURAL_85),
        "IFM_ZERO_POINT": 4,
        "OFM_ZERO_POINT": -9,
        "ACTIVATION_MIN": -20,
        "ACTIVATION_MAX": 5,
    }
    row = np.array([10, 21, -30]).reshape(1, 3, 1)
    # (6, 11.5, 17, -8.5, -34), rounded up, less 9.
    assert resized(row, BILINEAR, ONE, Axis(3, 5, 2, 1), changes, ofm_bits=8) == [-3, 3, 5, -17, -20]


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    n = draw(st.integers(1, 16) | st.sampled_from([100, 2048]))
    step = draw(st.integers(1, 3 * n))
    # One step has four bits of a whole part; the offset lies within one element.
    return Axis(draw(st.integers(1, 6)), draw(st.integers(1, 7)), n, step, draw(st.integers(-n, n - 1)))


@settings(max_examples=150, deadline=None)
@given(axes(), axes(), st.integers(1, 3), st.sampled_from([BILINEAR, NEAREST]), st.integers(0, 2**32 - 1))
def test_any_resize(rows: Axis, columns: Axis, depth: int, mode: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (rows.size, columns.size, depth))
    expected = formula(values, mode, rows, columns)
    assert resized(values, mode, rows, columns) == expected


@settings(max_examples=50, deadline=None)
@given(axes(), axes(), st.sampled_from([BILINEAR, NEAREST]), st.integers(0, 2**32 - 1))
def test_any_resize_of_16_bits(rows: Axis, columns: Axis, mode: int, seed: int) -> None:
    """Sums of up to 15 + 22 bits, brought back by as many bits as n has."""
    bits = (rows.n * columns.n - 1).bit_length() if mode == BILINEAR else 0
    # Where the accumulators would not hold them, the sums are not known.
    if 15 + bits >= 31:
        rows, columns = (Axis(a.size, a.count, 4, min(a.step, 12), 0) for a in (rows, columns))
        bits = 4 if mode == BILINEAR else 0
    values = np.random.default_rng(seed).integers(-32768, 32768, (rows.size, columns.size, 1))
    changes: dict[str, Setting] = {"OFM_SCALE": (1, 16 + bits | NATURAL_85)}
    half = 1 << bits >> 1
    expected = [value + half >> bits for value in formula(values, mode, rows, columns)]
    assert resized(values, mode, rows, columns, changes, bits=16, ofm_bits=16) == expected


@each(("factor", "size"), [(2, 5), (3, 4), (8, 3)])
@each("mode", [BILINEAR, NEAREST])
def test_upscaling_as_torch_centres_it(factor: int, size: int, mode: int) -> None:
    """TOSA's scale n = 2 factor, d = 2, offset d / 2 - n / 2, as half-pixel centres give it."""
    axis = Axis(size, size * factor, 2 * factor, 2, 1 - factor)
    values = np.random.default_rng(factor).integers(-128, 128, (size, size, 2))
    found = resized(values, mode, axis, axis)
    assert found == formula(values, mode, axis, axis)
    if mode == NEAREST:
        repeated = values.repeat(factor, 0).repeat(factor, 1)
        assert np.array(found).reshape(repeated.shape).tolist() == repeated.tolist()


@pytest.mark.parametrize("shift", [0, 15])
def test_shifts_without_the_accumulators_own_are_refused(shift: int) -> None:
    with pytest.raises(UnsupportedCommand, match="RESIZE"):
        resized(ROW, BILINEAR, ONE, Axis(4, 8, 4, 1), {"OFM_SCALE": (1, shift | NATURAL_85)})
