"""Ethos-U85's elementwise operations, from registers to bytes, against sums written with Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from ethosu_sdk.npu.errors import UnsupportedCommand
from tests.tables import each
from tests.unit.npu.machine import U85_256, place, run, taken
from tests.unit.npu.ops.elementwise import (
    A_BASE,
    ADD,
    B_BASE,
    MAX,
    MIN,
    MUL,
    OFM_BASE,
    PAIRS_8,
    PAIRS_32,
    SHR,
    SUB,
    clipped,
    registers,
    result,
)
from tests.unit.npu.streams import (
    DOWN_85,
    ELEMENTWISE,
    GLOBAL_SCALE,
    NATURAL_85,
    NO_STORAGE,
    UNSCALED_85,
    Setting,
    feature_map,
    ofm,
    precision,
    stream,
)
from tests.unit.npu.tosa import apply_scale_32

LSR, DIV, EQ, NE, GE, GT, AND, OR, XOR, NOT, AND_NOT = 10, 11, 16, 17, 18, 19, 33, 34, 35, 36, 42


def u85(size: int, bits: int = 8, ofm_bits: int | None = None) -> dict[str, Setting]:
    """As `registers`, for Ethos-U85: unit scales, half up; 32-bit results are not clipped."""
    return {
        **registers(size, bits, ofm_bits, out=GLOBAL_SCALE),
        "IFM_BROADCAST": 0,
        **UNSCALED_85,
        "ACTIVATION": 1 << 12 if (ofm_bits or bits) == 32 else 0,
        "ACC_FORMAT": 0,
    }


def result_85(
    mode: int, a: list[int], b: list[int], bits: int, changes: dict[str, Setting], ofm_bits: int | None = None
) -> list[int]:
    return result(mode, a, b, bits, {**u85(len(a), bits, ofm_bits), **changes}, ofm_bits, U85_256)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(
    ("mode", "compare"),
    [
        (EQ, lambda a, b: a == b),
        (NE, lambda a, b: a != b),
        (GE, lambda a, b: a >= b),
        (GT, lambda a, b: a > b),
    ],
)
def test_comparisons_give_all_ones(mode: int, compare: Callable[[int, int], bool], bits: int) -> None:
    pairs = PAIRS_32 if bits == 32 else PAIRS_8
    expected = [-1 if compare(a, b) else 0 for a, b in zip(*pairs, strict=True)]
    assert result_85(mode, *pairs, bits, {}, 8) == expected
    assert {0, -1} == set(expected)


@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize(
    ("mode", "compute"),
    [
        (AND, lambda a, b: a & b),
        (OR, lambda a, b: a | b),
        (XOR, lambda a, b: a ^ b),
        (AND_NOT, lambda a, b: a & ~b),
        (NOT, lambda a, b: ~a),
    ],
)
def test_bitwise_modes(mode: int, compute: Callable[[int, int], int], bits: int) -> None:
    pairs = PAIRS_32 if bits == 32 else PAIRS_8
    assert result_85(mode, *pairs, bits, {}) == [compute(a, b) for a, b in zip(*pairs, strict=True)]


@each(
    ("a", "b", "quotient"),
    [
        (7, 2, 3),
        (-7, 2, -3),
        (7, -2, -3),
        (-7, -2, 3),
        (6, 3, 2),
        (1, 5, 0),
        (-1, 5, 0),
        (0, -9, 0),
        (2**31 - 1, 1, 2**31 - 1),
        (-(2**31), 1, -(2**31)),
        (-(2**31), 2**31 - 1, -1),
        (2**31 - 1, -(2**31), 0),
    ],
)
def test_quotients_go_towards_zero(a: int, b: int, quotient: int) -> None:
    """TOSA's INTDIV."""
    assert result_85(DIV, [a], [b], 32, {}) == [quotient]


def test_division_by_zero_is_refused() -> None:
    """TOSA leaves it undefined; nobody knows what the hardware does."""
    with pytest.raises(UnsupportedCommand, match="division by 0"):
        result_85(DIV, [1, 2], [1, 0], 32, {})


@each(
    ("bits", "value", "amount", "right"),
    [
        (32, -1, 0, -1),
        (32, -1, 1, 2**31 - 1),
        (32, -1, 31, 1),
        (32, -(2**31), 31, 1),
        (32, -(2**31), 1, 2**30),
        (32, 12345, 3, 1543),
        (32, 5, 31, 0),
        # TOSA's LOGICAL_RIGHT_SHIFT works on the unsigned type of the element's own size.
        (8, 100, 2, 25),
        (8, -128, 1, 64),
        (8, -1, 7, 1),
        (16, -1, 1, 32767),
        (16, -32768, 15, 1),
    ],
)
def test_logical_right_shifts_bring_in_zeros(bits: int, value: int, amount: int, right: int) -> None:
    # Vela leaves shifts unclipped.
    assert result_85(LSR, [value], [amount], bits, {"ACTIVATION": 1 << 12}) == [right]


@pytest.mark.parametrize(("rounding", "expected"), [(DOWN_85, [2, -3, -1, 7]), (NATURAL_85, [3, -2, 0, 7])])
def test_arithmetic_right_shifts_round_as_the_output_does(rounding: int, expected: list[int]) -> None:
    """TOSA's ARITHMETIC_RIGHT_SHIFT without and with round."""
    changes: dict[str, Setting] = {"OFM_SCALE": (1, rounding)}
    assert result_85(SHR, [5, -5, -1, 7], [1, 1, 31, 0], 32, changes) == expected


@pytest.mark.parametrize("mode", [ADD, SUB, MIN, MAX])
@pytest.mark.parametrize("natural", [False, True], ids=["double", "natural"])
@pytest.mark.parametrize(
    ("first", "second", "last"),
    [
        ((1 << 30, 12), (1 << 30, 13), (1 << 30, 49)),
        ((1 << 30, 32), (3 << 28, 33), (1, 0)),
        ((0x5A82_799A, 20), (1, 0), (0x7654_3210, 43)),
    ],
)
def test_both_operands_and_the_result_are_scaled(
    mode: int, natural: bool, first: tuple[int, int], second: tuple[int, int], last: tuple[int, int]
) -> None:
    rounding = NATURAL_85 if natural else 0
    changes: dict[str, Setting] = {
        "IFM_SCALE": (first[0], first[1] | rounding),
        "IFM2_SCALE": (second[0], second[1] | rounding),
        "OFM_SCALE": (last[0], last[1] | rounding),
        "IFM_ZERO_POINT": -1,
        "IFM2_ZERO_POINT": 2,
        "OFM_ZERO_POINT": 3,
    }
    table: dict[int, Callable[[int, int], int]] = {ADD: int.__add__, SUB: int.__sub__, MIN: min, MAX: max}
    compute = table[mode]
    expected = [
        apply_scale_32(
            compute(apply_scale_32(a + 1, *first, not natural), apply_scale_32(b - 2, *second, not natural)),
            *last,
            not natural,
        )
        + 3
        for a, b in zip(*PAIRS_8, strict=True)
    ]
    assert result_85(mode, *PAIRS_8, 8, changes) == [clipped(value) for value in expected]


@each("first", [0, 1, 2, 4, 3, 7])
@each("second", [0, 1, 6, 7])
def test_either_operand_is_broadcast(first: int, second: int) -> None:
    full = (2, 3, 4)
    generator = np.random.default_rng(8 * first + second)

    def operand(mode: int) -> tuple[tuple[int, int, int], np.ndarray[tuple[int, ...], np.dtype[np.int8]]]:
        shape = (1 if mode & 1 else 2, 1 if mode & 2 else 3, 1 if mode & 4 else 4)
        return shape, generator.integers(-60, 60, shape).astype(np.int8)

    (shape_a, a), (shape_b, b) = operand(first), operand(second)
    settings = {
        **u85(1),
        **feature_map("IFM", A_BASE, shape_a, 8),
        **feature_map("IFM2", B_BASE, shape_b, 8),
        **ofm(OFM_BASE, full, 8, GLOBAL_SCALE),
        "IFM_BROADCAST": first,
        "IFM2_BROADCAST": second,
    }
    scratch = place((A_BASE, a), (B_BASE, b))
    run(stream((settings, ELEMENTWISE, SUB)), scratch, config=U85_256)
    expected = [
        int(a[y % shape_a[0], x % shape_a[1], c % shape_a[2]])
        - int(b[y % shape_b[0], x % shape_b[1], c % shape_b[2]])
        for y, x, c in np.ndindex(*full)
    ]
    assert taken(scratch, OFM_BASE, 24, "<i1") == expected


@pytest.mark.parametrize("storage", [0, NO_STORAGE])
def test_the_scalar_takes_the_place_of_either_operand(storage: int) -> None:
    """Its zero point is the operand's; nothing is read from where the operand would be."""
    for prefix, expected in (("IFM", [-19, -20]), ("IFM2", [20, 21])):
        changes: dict[str, Setting] = {
            f"{prefix}_BROADCAST": 8,
            f"{prefix}_PRECISION": precision(8, extra=storage),
            f"{prefix}_ZERO_POINT": 3,
            f"{prefix}_REGION": 6,
            "OP_SCALAR": -7,
        }
        assert result_85(SUB, [10, 11] if prefix == "IFM2" else [9, 9], [9, 10], 8, changes) == expected


@each(
    ("mode", "value", "bits", "scale", "refused"),
    [
        (MUL, -(2**31), 32, 1, False),  # 2^62
        (ADD, 2**31 - 1, 32, 2**31 - 1, True),
        (ADD, 2**30 - 1, 32, 2**31 - 1, False),
        (MUL, -(2**15), 16, 2**31 - 1, False),  # just below 2^61
    ],
)
def test_products_of_more_than_63_bits_are_refused(
    mode: int, value: int, bits: int, scale: int, refused: bool
) -> None:
    changes: dict[str, Setting] = {"OFM_SCALE": (scale, 40 | NATURAL_85)}
    if refused:
        with pytest.raises(UnsupportedCommand, match="product of more than"):
            result_85(mode, [value], [value], bits, changes, 32)
        return
    total = value * value if mode == MUL else 2 * value
    wrapped = (apply_scale_32(total, scale, 40, False) + 2**31) % 2**32 - 2**31
    assert result_85(mode, [value], [value], bits, changes, 32) == [wrapped]


@pytest.mark.parametrize(
    ("mode", "bits", "changes"),
    [
        # The operand is scaled to 46 bits, the sum to 77.
        (ADD, 16, {"IFM_SCALE": (2**31 - 1, NATURAL_85), "OFM_SCALE": (2**31 - 1, 62 | NATURAL_85)}),
        # 2^32 by zero points, times 2^31.
        (
            MUL,
            16,
            {"IFM_ZERO_POINT": -32768, "IFM2_ZERO_POINT": -32768, "OFM_SCALE": (2**31 - 1, 62 | NATURAL_85)},
        ),
        # Operands of different sizes: 15 bits by 31 bits by 31 bits.
        (MUL, 16, {"IFM2_PRECISION": precision(32), "OFM_SCALE": (2**31 - 1, 62 | NATURAL_85)}),
    ],
)
def test_products_of_narrow_operands_are_exact_or_refused(
    mode: int, bits: int, changes: dict[str, Setting]
) -> None:
    wide = changes.get("IFM2_PRECISION") is not None
    settings = {**u85(1, bits, 32), **changes}
    scratch = place(
        (A_BASE, np.array([32767], "<i2")), (B_BASE, np.array([2**31 - 1 if wide else 32767], "<i4"))
    )
    with pytest.raises(UnsupportedCommand, match="product of more than"):
        run(stream((settings, ELEMENTWISE, mode)), scratch, config=U85_256)


@pytest.mark.parametrize("mode", [ADD, MUL, GT])
def test_results_that_go_nowhere_are_refused(mode: int) -> None:
    """activation_storage NONE of the OFM: nothing may be written where its registers happen to point."""
    settings = {**u85(1), "OFM_PRECISION": precision(8, ofm=True, extra=GLOBAL_SCALE | NO_STORAGE)}
    scratch = place((A_BASE, np.array([1], "<i1")), (B_BASE, np.array([2], "<i1")))
    with pytest.raises(UnsupportedCommand):
        run(stream((settings, ELEMENTWISE, mode)), scratch, config=U85_256)
    assert taken(scratch, OFM_BASE, 1, "<i1") == [0]
