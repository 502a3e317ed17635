"""Elementwise operations, from registers to bytes, against sums written with Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from ethosu_sdk.npu.operation import Rounding
from ethosu_sdk.npu.ops import count_leading_zeros, shift_left, shift_right
from tests.tables import each
from tests.unit.npu.gemmlowp import high_product, scaled
from tests.unit.npu.machine import place, run, taken
from tests.unit.npu.ops.elementwise import (
    A_BASE,
    ABS,
    ADD,
    B_BASE,
    CLZ,
    LRELU,
    MAX,
    MIN,
    MUL,
    OFM_BASE,
    PAIRS_8,
    PAIRS_32,
    SCALE_A,
    SCALE_B,
    SHL,
    SHR,
    SUB,
    clipped,
    registers,
    result,
)
from tests.unit.npu.streams import (
    ELEMENTWISE,
    GLOBAL_SCALE,
    NATURAL,
    UNSCALED,
    Setting,
    feature_map,
    ofm,
    stream,
)
from tests.unit.npu.tosa import apply_scale_32


@pytest.mark.parametrize(
    ("mode", "compute"),
    [
        (ADD, lambda a, b: a + b),
        (SUB, lambda a, b: a - b),
        (MUL, lambda a, b: a * b),
        (MIN, min),
        (MAX, max),
    ],
)
def test_32_bit_operands_are_taken_as_they_are(mode: int, compute: Callable[[int, int], int]) -> None:
    expected = [(compute(a, b) + 2**31) % 2**32 - 2**31 for a, b in zip(*PAIRS_32, strict=True)]
    assert result(mode, *PAIRS_32, 32, registers(8, 32)) == expected


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("mode", "compute"), [(MIN, min), (MAX, max)])
def test_minimum_and_maximum(mode: int, compute: Callable[[int, int], int], bits: int) -> None:
    expected = [compute(a, b) for a, b in zip(*PAIRS_8, strict=True)]
    assert result(mode, *PAIRS_8, bits, registers(8, bits)) == expected


@each("natural", [False, True])
@each(("scale", "shift"), [(1 << 30, 31), (1 << 30, 36), (3 << 28, 35), (1 << 30, 40), (1, 3)])
def test_products_are_scaled_once(scale: int, shift: int, natural: bool) -> None:
    out = GLOBAL_SCALE | (NATURAL if natural else 0)
    settings = {
        **registers(8, out=out),
        "OFM_SCALE": (scale, shift),
        "IFM_ZERO_POINT": 3,
        "OFM_ZERO_POINT": -4,
    }
    expected = [
        clipped(apply_scale_32((a - 3) * b, scale, shift, not natural) - 4)
        for a, b in zip(*PAIRS_8, strict=True)
    ]
    assert result(MUL, *PAIRS_8, 8, settings) == expected


@each("mode", [ADD, SUB])
@each("natural", [False, True])
@each(
    ("scale", "shift"),
    [(1 << 30, 12), (1 << 30, 31), (1 << 30, 32), (1 << 30, 34), (0x5A82_799A, 13)],
)
@each("wide", ["a", "b"])
@each("is_reversed", [False, True])
@each(("bits", "implied"), [(8, 19), (16, 14)])
def test_one_operand_is_scaled_and_the_other_shifted(
    mode: int, natural: bool, scale: int, shift: int, wide: str, is_reversed: bool, bits: int, implied: int
) -> None:
    """The operand without the wide scale is shifted left by 19 (8 bits) or 14 (16 bits).

    Double rounding is that of TFLite's kernels, which shift by one bit more before they scale. The scale belongs to
    the operand, whatever feature map that is: the order may be reversed.
    """
    rounding = NATURAL if natural else 0
    settings = {
        **registers(
            8, bits, ofm_bits=32, ifm=rounding | (SCALE_A if wide == "a" else SCALE_B), out=GLOBAL_SCALE
        ),
        "OPA_SCALE": (scale, shift),
        "OPB_SCALE": ((1 << implied) & 0xFFFF, 0),
        "OFM_SCALE": (1, 0),
        "IFM_ZERO_POINT": -1,
        "IFM2_ZERO_POINT": 2,
        "IFM2_BROADCAST": 1 << 6 if is_reversed else 0,
    }

    def once_or_twice(value: int) -> int:
        return (
            apply_scale_32(value, scale, shift, False)
            if natural
            else scaled(value, scale, shift, implied + 1)
        )

    expected = []
    for a, b in zip(*PAIRS_8, strict=True):
        left, right = (b - 2, a + 1) if is_reversed else (a + 1, b - 2)
        if wide == "a":
            left, right = once_or_twice(left), right << implied
        else:
            left, right = left << implied, once_or_twice(right)
        total = left + right if mode == ADD else left - right
        expected.append((total + 2**31) % 2**32 - 2**31)
    assert result(mode, *PAIRS_8, bits, settings, 32) == expected


@pytest.mark.parametrize("mode", [ADD, SUB])
def test_both_operands_have_16_bit_scales(mode: int) -> None:
    settings = {
        **registers(8, out=GLOBAL_SCALE | NATURAL),
        "OPA_SCALE": (3 | 0xFFFF << 16, 0),  # the upper half is not read
        "OPB_SCALE": (5, 0),
        "OFM_SCALE": (1 << 30, 33),
    }
    sign = 1 if mode == ADD else -1
    expected = [
        clipped(apply_scale_32(3 * a + sign * 5 * b, 1 << 30, 33, False))
        for a, b in zip(*PAIRS_8, strict=True)
    ]
    assert result(mode, *PAIRS_8, 8, settings) == expected


def identity_sum() -> dict[str, Setting]:
    return {**registers(8, out=GLOBAL_SCALE | NATURAL), **UNSCALED}


def test_operands_can_be_reversed_and_scalar() -> None:
    settings = {**identity_sum(), "IFM2_BROADCAST": 1 << 6}
    assert result(SUB, [1, 2, 3, 4, 5, 6, 7, 8], [10] * 8, 8, settings) == [9, 8, 7, 6, 5, 4, 3, 2]
    settings = {**identity_sum(), "IFM2_BROADCAST": 1 << 7, "IFM2_SCALAR": -7, "IFM2_ZERO_POINT": 1}
    assert result(ADD, [1, 2, 3, 4, 5, 6, 7, 8], [99] * 8, 8, settings) == [-7, -6, -5, -4, -3, -2, -1, 0]


@each(
    ("bits", "shape"),
    [(0, (2, 3, 4)), (1, (1, 3, 4)), (2, (2, 1, 4)), (4, (2, 3, 1)), (5, (1, 3, 1)), (7, (1, 1, 1))],
)
def test_broadcasting(bits: int, shape: tuple[int, int, int]) -> None:
    full = (2, 3, 4)
    a = np.arange(24, dtype=np.int8).reshape(full)
    b = (10 * np.arange(np.prod(shape)) - 90).astype(np.int8).reshape(shape)
    settings = {
        **identity_sum(),
        **feature_map("IFM", A_BASE, full, 8),
        **feature_map("IFM2", B_BASE, shape, 8),
        **ofm(OFM_BASE, full, 8, GLOBAL_SCALE | NATURAL),
        "IFM2_BROADCAST": bits,
    }
    scratch = place((A_BASE, a), (B_BASE, b))
    run(stream((settings, ELEMENTWISE, ADD)), scratch)
    expected = np.clip(a.astype(int) + b, -128, 127).reshape(-1).tolist()
    assert taken(scratch, OFM_BASE, 24, "<i1") == expected


def test_absolute_values_and_in_place() -> None:
    settings = {**identity_sum(), "OFM_BASE0": A_BASE}
    scratch = place((A_BASE, np.arange(8, dtype=np.int8)), (B_BASE, np.full(8, 3, np.int8)))
    run(stream((settings, ELEMENTWISE, ADD)), scratch)
    assert taken(scratch, A_BASE, 8, "<i1") == [3, 4, 5, 6, 7, 8, 9, 10]
    settings = {**registers(8, out=GLOBAL_SCALE | NATURAL), "OFM_SCALE": (1, 0), "IFM_ZERO_POINT": 2}
    assert result(ABS, PAIRS_8[0], [0] * 8, 8, settings) == [127, 3, 2, 1, 125, 3, 7, 62]


@each("natural", [False, True])
@each(("scale", "shift"), [(1 << 30, 31), (0x6666_6666, 33), (1 << 30, 35)])
def test_leaky_values_below_zero_are_scaled(natural: bool, scale: int, shift: int) -> None:
    """Alpha is in OFM_SCALE; what is not below 0 stays as it is."""
    rounding = NATURAL if natural else 0
    settings = {
        **registers(8, 16, out=GLOBAL_SCALE | rounding),
        "OFM_SCALE": (scale, shift),
        "IFM_ZERO_POINT": 2,
        "OFM_ZERO_POINT": -7,
    }
    values = [-32768, -1025, -5, -3, 1, 2, 3, 32767]
    expected = [
        max(-32768, (x - 2 if x >= 2 else apply_scale_32(x - 2, scale, shift, not natural)) - 7)
        for x in values
    ]
    assert result(LRELU, values, [0] * 8, 16, settings) == expected


@each(("scale", "shift"), [(1, 0), (1, 31), (1 << 30, 31), (1 << 30, 30), (0x4732_7880, 25)])
def test_32_bit_products_are_only_shifted(scale: int, shift: int) -> None:
    """TFLite's SOFTMAX multiplies fixed-point numbers with this: their high product, whatever the scale says."""
    first, second = [2**31 - 1, -(2**31), 3, -3, 2**30 + 1], [2**31 - 1, 2**31 - 1, 2**30, 2**30, -(2**29)]
    settings = {**registers(5, 32, out=GLOBAL_SCALE), "OFM_SCALE": (scale, shift)}
    expected = [
        ((a * b + (1 << shift >> 1) >> shift) + 2**31) % 2**32 - 2**31
        for a, b in zip(first, second, strict=True)
    ]
    assert result(MUL, first, second, 32, settings) == expected
    if shift == 31:
        assert expected == [high_product(a, b) for a, b in zip(first, second, strict=True)]


@each(
    ("value", "zeros"),
    [(0, 32), (-1, 0), (-(2**31), 0), (1, 31), (2, 30), (3, 30), (2**24 + 1, 7), (2**30, 1), (2**31 - 1, 1)],
)
def test_leading_zeros(value: int, zeros: int) -> None:
    assert count_leading_zeros(np.array([value])).tolist() == [zeros]
    assert result(CLZ, [value], [0], 32, registers(1, 32)) == [zeros]


@each(
    ("value", "amount", "right"),
    [
        (5, 1, 3),  # 2.5: half up
        (-5, 1, -2),
        (-6, 2, -1),
        (7, 0, 7),
        (-7, 0, -7),
        (2**31 - 1, 31, 1),
        (-(2**31), 31, -1),
        (-(2**30), 31, 0),
        (2**30, 31, 1),
        (2**30 - 1, 31, 0),
    ],
)
def test_right_shifts_round_half_up(value: int, amount: int, right: int) -> None:
    assert shift_right(np.array([value]), np.array([amount]), Rounding.NATURAL).tolist() == [right]
    # Whatever the rounding mode in OFM_PRECISION: 0 is DOUBLE.
    for rounding in (0, NATURAL):
        assert result(SHR, [value], [amount], 32, registers(1, 32, out=rounding)) == [right]


@pytest.mark.parametrize(
    ("value", "amount", "left"),
    [(1, 0, 1), (1, 30, 2**30), (-3, 4, -48), (5, 31, -(2**31)), (3, 31, -(2**31))],
)
def test_left_shifts_keep_the_low_bits(value: int, amount: int, left: int) -> None:
    assert shift_left(np.array([value]), np.array([amount])).tolist() == [value << amount]
    assert result(SHL, [value], [amount], 32, registers(1, 32)) == [left]
