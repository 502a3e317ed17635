"""Rounding, at exact half-way ties above all: random data never meets them.

The expectation is TOSA 1.0's own definition, computed with Python's unbounded integers.
"""

import numpy as np
from hypothesis import given, strategies as st

from ethosu_sdk.npu.operation import Kernel, Padding, Rounding
from ethosu_sdk.npu.ops import average_of_valid, rescale, shift_round
from tests.tables import each
from tests.unit.npu.gemmlowp import scaled
from tests.unit.npu.tosa import apply_scale_32, reciprocal_average

NATURAL, DOUBLE = Rounding.NATURAL, Rounding.DOUBLE


def rescaled(value: int, scale: int, shift: int, rounding: Rounding, early: int = 0) -> int:
    return int(rescale(np.array([value], np.int64), scale, shift, rounding, early)[0])


@each(
    ("value", "shift", "expected"),
    [
        (5, 1, 3),  # 2.5: half goes up
        (-5, 1, -2),  # -2.5: up as well, not away from zero
        (3, 1, 2),
        (-3, 1, -1),
        (1, 1, 1),
        (-1, 1, 0),
        (6, 2, 2),  # 1.5
        (-6, 2, -1),
        (10, 2, 3),  # 2.5: not to even
        (-10, 2, -2),
        (7, 2, 2),  # 1.75: no tie
        (-7, 2, -2),
        (5, 2, 1),  # 1.25
        (-5, 2, -1),
        (5, 0, 5),  # nothing to round
        (-5, 0, -5),
        (1 << 40, 41, 1),  # 0.5
        (-(1 << 40), 41, 0),
        ((1 << 40) - 1, 41, 0),
        (-(1 << 40) - 1, 41, -1),
        (3 << 60, 61, 2),  # 1.5
        (-(3 << 60), 61, -1),
    ],
)
def test_natural_is_half_up(value: int, shift: int, expected: int) -> None:
    assert int(shift_round(np.array([value]), shift, NATURAL)[0]) == expected


@each(
    ("value", "scale", "shift", "single", "double"),
    [
        # Up to 31 the two modes agree.
        (5, 1 << 30, 31, 3, 3),
        (-5, 1 << 30, 31, -2, -2),
        (5, 1, 1, 3, 3),
        (-5, 1, 1, -2, -2),
        # 2.5 and -2.5: the first rounding of DOUBLE pushes a negative tie down.
        (10, 1 << 30, 32, 3, 3),
        (-10, 1 << 30, 32, -2, -3),
        (-6, 1 << 30, 32, -1, -2),
        (6, 1 << 30, 32, 2, 2),
        # 2.25 + 0.25: just below the tie, DOUBLE goes up.
        (9, 1 << 30, 32, 2, 3),
        (-9, 1 << 30, 32, -2, -2),
        (-11, 1 << 30, 32, -3, -3),
        # 33: the extra is 2^30 / 2^33 = 1/8, which takes 2.375 to the tie.
        (19, 1 << 30, 33, 2, 3),
        (18, 1 << 30, 33, 2, 2),
        (-20, 1 << 30, 33, -2, -3),
        (20, 1 << 30, 33, 3, 3),
        (0, 1 << 30, 33, 0, 0),
        (0, 1 << 30, 32, 0, 0),
        # 40: the extra is 1/1024, too little for anything but a tie.
        (512, 1 << 30, 40, 1, 1),
        (-512, 1 << 30, 40, 0, -1),
        (511, 1 << 30, 40, 0, 1),
        (510, 1 << 30, 40, 0, 0),
        (-513, 1 << 30, 40, -1, -1),
        (-1536, 1 << 30, 40, -1, -2),
        (1536, 1 << 30, 40, 2, 2),
        # Largest and smallest accumulators.
        (2**31 - 1, 2**31 - 1, 62, 1, 1),
        (-(2**31), 2**31 - 1, 62, -1, -1),
        (-(2**31), 1 << 30, 62, 0, -1),
        (1 << 31, 1 << 30, 62, 1, 1),
        # Ethos-U55 scales are unsigned: 2^31 + 1 is what Vela writes for "one" in a 1x1 average.
        (127, 0x8000_0001, 31, 127, 127),
        (-128, 0x8000_0001, 31, -128, -128),
    ],
)
def test_single_and_double_round_at_ties(
    value: int, scale: int, shift: int, single: int, double: int
) -> None:
    assert (apply_scale_32(value, scale, shift, False), apply_scale_32(value, scale, shift, True)) == (
        single,
        double,
    )
    assert (rescaled(value, scale, shift, NATURAL), rescaled(value, scale, shift, DOUBLE)) == (single, double)


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**31 - 1) | st.integers(0, 30).map(lambda bit: 1 << bit),
    st.integers(2, 62),
)
def test_any_scale_as_tosa_defines_it(value: int, scale: int, shift: int) -> None:
    for rounding in (NATURAL, DOUBLE):
        expected = apply_scale_32(value, scale, shift, rounding is DOUBLE)
        assert rescaled(value, scale, shift, rounding) == expected
    # Python's own shift goes towards minus infinity.
    assert rescaled(value, scale, shift, Rounding.DOWN) == (value * scale) >> shift


@each(
    ("value", "shift", "expected"),
    [(5, 1, 2), (-5, 1, -3), (7, 2, 1), (-7, 2, -2), (-1, 62, -1), (1, 62, 0), (-5, 0, -5), (-8, 2, -2)],
)
def test_down_is_a_plain_shift(value: int, shift: int, expected: int) -> None:
    assert int(shift_round(np.array([value]), shift, Rounding.DOWN)[0]) == expected


def test_each_channel_has_its_own_scale_and_shift() -> None:
    values = np.array([[[5, -5, 20]]], np.int64)
    scale, shift = np.array([1, 1 << 30, 1 << 30]), np.array([1, 31, 33])
    assert rescale(values, scale, shift, NATURAL).tolist() == [[[3, -2, 3]]]


def average(values: list[list[int]], size: tuple[int, int], padding: Padding) -> list[list[int]]:
    array = np.array(values, np.int64)[:, :, None]
    kernel = Kernel(*size, 1, 1, 1, 1, False)
    result: list[list[int]] = average_of_valid(array, kernel, padding)[:, :, 0].tolist()
    return result


@each(
    ("total", "count", "expected"),
    [
        (1, 2, 1),
        (3, 2, 2),
        (-1, 2, -1),  # TOSA's reciprocal of 2 is a little too large: exact division, half up, would give 0
        (-3, 2, -2),
        (-5, 2, -3),
        (-7, 2, -4),
        (-2, 4, -1),
        (-6, 4, -2),
        (6, 4, 2),
        (-9, 6, -2),
        (9, 6, 2),
        (-255, 2, -128),
        (4, 3, 1),
        (-4, 3, -1),
        (-128, 1, -128),
        (127, 1, 127),
    ],
)
def test_padded_averages_use_the_reciprocal(total: int, count: int, expected: int) -> None:
    """A row of `count` elements under a kernel that also covers one column of padding."""
    row = [total - (count - 1) * (total // count), *[total // count] * (count - 1)]
    assert reciprocal_average(total, count) == expected
    assert average([row], (1, count + 1), Padding(0, 1, 0, 0)) == [[expected]]


@given(
    early=st.sampled_from([0, 15, 20]),
    value=st.integers(-(2**17), 2**17),
    scale=st.integers(2**30, 2**31 - 1),
    shift=st.integers(1, 45),
)
def test_double_rounding_of_values_that_a_kernel_shifts_left(
    early: int, value: int, scale: int, shift: int
) -> None:
    """TFLite's ADD and SUB, in its kernels' own two roundings."""
    assert rescaled(value, scale, shift, DOUBLE, early) == scaled(value, scale, shift, early)


@each("early", [0, 15, 20])
@each("value", [*range(-70, 71), 12345, -12345])
def test_double_rounding_at_directed_ties(early: int, value: int) -> None:
    """With the second scale, products lie next to a half: the first rounding makes them one."""
    for shift in range(30 - early, 40 - early):
        for scale in (1 << 30, (1 << shift - 1) - 1):
            assert rescaled(value, scale, shift, DOUBLE, early) == scaled(value, scale, shift, early)


@each(
    ("value", "shift", "symmetric", "to_zero", "down"),
    [
        (5, 1, 3, 2, 2),  # 2.5
        (-5, 1, -3, -2, -3),
        (3, 2, 1, 0, 0),  # 0.75
        (-3, 2, -1, 0, -1),
        (1, 2, 0, 0, 0),  # 0.25
        (-1, 2, 0, 0, -1),
        (-8, 2, -2, -2, -2),  # nothing to round
        (-5, 0, -5, -5, -5),
        (0, 3, 0, 0, 0),
    ],
)
def test_roundings_with_one_step(value: int, shift: int, symmetric: int, to_zero: int, down: int) -> None:
    roundings = (Rounding.SYMMETRIC, Rounding.TOWARDS_ZERO, Rounding.DOWN)
    assert [rescaled(value, 1, shift, rounding) for rounding in roundings] == [symmetric, to_zero, down]


@each("value", [-9, -6, -5, -3, -1, 0, 1, 3, 5, 6, 9])
@each("shift", [31, 32, 34])
def test_double_up_is_half_up_twice(value: int, shift: int) -> None:
    """The first rounding to bit 31, the second to the end."""
    product = value << 30
    first = (product + (1 << 30)) >> 31
    expected = (first + (1 << (shift - 31) >> 1)) >> (shift - 31)
    assert rescaled(value, 1 << 30, shift, Rounding.DOUBLE_UP) == expected
