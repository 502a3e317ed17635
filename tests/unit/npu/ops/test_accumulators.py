"""Where sums start, what they are made of and how far they may go: two cores, matrices, partial sums, limits.

Weights are the same for all inputs of a channel here: their order has tests of its own.
"""

import struct
import time

import numpy as np
import pytest
from ethosu import mlw_codec
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import UnsupportedCommand
from tests.unit.npu.machine import U55_128, U65_512, U85_256, place, run, taken
from tests.unit.npu.streams import (
    CONV,
    DEPTHWISE,
    GLOBAL_SCALE,
    NATURAL,
    NATURAL_85,
    NO_STORAGE,
    POOL,
    Setting,
    feature_map,
    ofm,
    precision,
    scale_entry,
    stream,
)

MAX, AVERAGE, REDUCE_SUM, SUM, NONE = range(5)
IFM_BASE, IFM2_BASE, OFM_BASE = 0x1000, 0x4000, 0x8000
KEEP, FROM_IFM2, NOT_WRITTEN = 1 << 4, 2 << 4, 1 << 6  # ACC_FORMAT
NO_CLIP = 1 << 12  # ACTIVATION
RANDOM = np.random.default_rng(6)
Shape = tuple[int, int, int]
Array = NDArray[np.int64]


def u85(shape: Shape, result: Shape, bits: int = 8, ofm_bits: int = 32) -> dict[str, Setting]:
    """IFM, IFM2 and an OFM that is not clipped, with a global scale of 1."""
    return {
        **feature_map("IFM", IFM_BASE, shape, bits),
        **feature_map("IFM2", IFM2_BASE, shape, bits),
        **ofm(OFM_BASE, result, ofm_bits, GLOBAL_SCALE),
        "IFM_DEPTH_M1": shape[2] - 1,
        "OFM_SCALE": (1, NATURAL_85),
        "ACTIVATION": NO_CLIP,
        "ACC_FORMAT": 0,
        "KERNEL_STRIDE": 0,
    }


def words(scratch: NDArray[np.uint8], count: int) -> list[int]:
    return taken(scratch, OFM_BASE, count, "<i4")


def test_two_cores_take_turns_in_channels() -> None:
    """Ethos-U65-512: even channels have the first core's weights, biases and scales, odd ones the second's."""
    ifm = RANDOM.integers(-128, 128, (2, 3, 32))
    first, second = (bytes(mlw_codec.encode([weight] * 8 * 32)) for weight in (1, -2))
    scales = [
        b"".join(scale_entry(100 * core + n, 1 << 30, 30 + n % 3) for n in range(8)) for core in range(2)
    ]
    constants = first + second + scales[0] + scales[1]
    registers: dict[str, Setting] = {
        **feature_map("IFM", IFM_BASE, (2, 3, 32), 8),
        **ofm(OFM_BASE, (2, 3, 16), 32, NATURAL),
        "IFM_DEPTH_M1": 31,
        "ACTIVATION": 0,
        "ACC_FORMAT": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": len(first),
        "WEIGHT1_BASE": len(first),
        "WEIGHT1_LENGTH": len(second),
        "SCALE_BASE": len(first + second),
        "SCALE_LENGTH": 80,
        "SCALE1_BASE": len(first + second) + 80,
        "SCALE1_LENGTH": 80,
    }
    scratch = place((IFM_BASE, ifm.astype(np.int8)))
    run(stream((registers, CONV, 0)), scratch, constants, U65_512)
    expected = []
    for y, x in np.ndindex(2, 3):
        for channel in range(16):
            number, core = divmod(channel, 2)
            total = int(ifm[y, x].sum()) * (1, -2)[core] + 100 * core + number
            shift = number % 3
            expected.append((total + (1 << shift >> 1)) >> shift)
    assert words(scratch, len(expected)) == expected


def convolution_85(scales: bytes, weight: int = 3) -> tuple[dict[str, Setting], bytes]:
    """1x1, 64 to 32 channels, all weights the same; scales of 32 channels."""
    weights = bytes(mlw_codec.encode([weight] * 64 * 32))
    registers: dict[str, Setting] = {
        **u85((2, 2, 64), (2, 2, 32)),
        "OFM_PRECISION": precision(32, ofm=True),
        "OFM_BLK_DEPTH_M1": 31,
        "WEIGHT_FORMAT": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": len(weights),
        "SCALE_BASE": len(weights),
        "SCALE_LENGTH": len(scales),
    }
    return registers, weights + scales


@pytest.mark.parametrize("bits", [32, 48])
def test_biases_and_scales_of_ethos_u85(bits: int) -> None:
    """32-bit accumulators: bias 32, scale 31, shift 6 bits; 48-bit ones: bias 48, scale 15, shift 6."""
    ifm = RANDOM.integers(-128, 128, (2, 2, 64))
    rows = [((-1) ** n * n * 1000, 20000 + n, 8 + n % 9) for n in range(32)]
    if bits == 32:
        scales = b"".join(struct.pack("<iIBx", *row) for row in rows)
    else:
        rows[1] = (-(1 << 40), 1, 20)
        scales = b"".join(
            (bias & (1 << 48) - 1).to_bytes(6, "little") + struct.pack("<HBx", scale, shift)
            for bias, scale, shift in rows
        )
    registers, constants = convolution_85(scales)
    registers["ACC_FORMAT"] = 0 if bits == 32 else 1
    registers["IFM_ZERO_POINT"] = -4
    scratch = place((IFM_BASE, ifm.astype(np.int8)))
    run(stream((registers, CONV, 0)), scratch, constants, U85_256)
    expected = [
        ((int((ifm[y, x] + 4).sum()) * 3 + bias) * scale + (1 << shift >> 1)) >> shift
        for y, x in np.ndindex(2, 2)
        for bias, scale, shift in rows
    ]
    assert words(scratch, 128) == expected


@pytest.mark.parametrize("start_bits", [32, 64])
def test_sums_start_from_the_second_feature_map(start_bits: int) -> None:
    ifm = RANDOM.integers(-128, 128, (2, 2, 64))
    start = RANDOM.integers(-(1 << 24), 1 << 24, (2, 2, 32))
    scales = struct.pack("<iIBx", 17, 1, 0) * 32
    registers, constants = convolution_85(scales, -2)
    registers |= feature_map("IFM2", IFM2_BASE, (2, 2, 32), start_bits)
    registers["ACC_FORMAT"] = FROM_IFM2
    scratch = place((IFM_BASE, ifm.astype(np.int8)), (IFM2_BASE, start.astype(f"<i{start_bits // 8}")))
    run(stream((registers, CONV, 0)), scratch, constants, U85_256)
    expected = [-2 * int(ifm[y, x].sum()) + int(start[y, x, c]) + 17 for y, x, c in np.ndindex(2, 2, 32)]
    assert words(scratch, 128) == expected


@pytest.mark.parametrize(("bits", "largest"), [(32, 1 << 31), (64, 1 << 46)])
def test_values_that_only_pass_through_the_accumulators(bits: int, largest: int) -> None:
    """NONE: a rescale of wide values, which come in as IFM2. The IFM's registers describe nothing."""
    values = RANDOM.integers(-largest, largest, (2, 3, 5))
    registers: dict[str, Setting] = {
        **u85((2, 3, 5), (2, 3, 5), bits, 8),
        "IFM_PRECISION": precision(8),
        "IFM_REGION": 6,
        "ACTIVATION": 0,
        "ACC_FORMAT": FROM_IFM2 | (0 if bits == 32 else 1),
        "OFM_SCALE": (3, (24 if bits == 32 else 41) | NATURAL_85),
        "OFM_ZERO_POINT": 5,
    }
    scratch = place((IFM2_BASE, values.astype(f"<i{bits // 8}")))
    run(stream((registers, POOL, NONE)), scratch, config=U85_256)
    shift = 24 if bits == 32 else 41
    expected = [
        max(-128, min(127, ((3 * int(value) + (1 << shift >> 1)) >> shift) + 5))
        for value in values.reshape(-1)
    ]
    assert taken(scratch, OFM_BASE, 30, "<i1") == expected
    assert len(set(expected)) > 10


def test_what_has_no_accumulators_or_a_window_is_refused() -> None:
    with pytest.raises(UnsupportedCommand, match="start empty"):
        run(stream((u85((2, 3, 5), (2, 3, 5)), POOL, NONE)), place(), config=U85_256)
    registers: dict[str, Setting] = {**u85((3, 4, 7), (3, 3, 5)), "KERNEL_WIDTH_M1": 1}
    with pytest.raises(UnsupportedCommand, match="window"):
        run(stream((registers, CONV, 1)), place(), config=U85_256)


NOWHERE: dict[str, Setting] = {"OFM_PRECISION": precision(32, ofm=True, extra=GLOBAL_SCALE | NO_STORAGE)}
SHOWN: dict[str, Setting] = {"OFM_PRECISION": precision(32, ofm=True, extra=GLOBAL_SCALE)}


def test_partial_sums_stay_in_the_accumulators() -> None:
    """Three sums over rows of one feature map each; the last one brings out what all three came to."""
    shape = (2, 3, 5)
    parts = RANDOM.integers(-128, 128, (3, *shape))
    one = {**u85(shape, shape), **NOWHERE, "OFM_BASE0": 1 << 30, "ACC_FORMAT": NOT_WRITTEN}
    two: dict[str, Setting] = {"IFM_BASE0": IFM_BASE + 0x100, "ACC_FORMAT": NOT_WRITTEN | KEEP}
    three: dict[str, Setting] = {
        **SHOWN,
        "OFM_BASE0": OFM_BASE,
        "IFM_BASE0": IFM_BASE + 0x200,
        "ACC_FORMAT": KEEP,
        "IFM_ZERO_POINT": 1,
    }
    scratch = place(*((IFM_BASE + 0x100 * n, part.astype(np.int8)) for n, part in enumerate(parts)))
    before = scratch.copy()
    run(stream((one, POOL, SUM), (two, POOL, SUM), (three, POOL, SUM)), scratch, config=U85_256)
    assert words(scratch, 30) == (parts.sum(0) - 1).reshape(-1).tolist()
    scratch[OFM_BASE : OFM_BASE + 120] = 0
    assert (scratch == before).all()


@pytest.mark.parametrize("first", [None, (2, 3, 4), (3, 2, 5)])
def test_sums_cannot_go_on_from_nothing_or_another_shape(first: Shape | None) -> None:
    shape = (2, 3, 5)
    operations = []
    if first is not None:
        operations.append(({**u85(first, first), **NOWHERE, "ACC_FORMAT": NOT_WRITTEN}, POOL, SUM))
    last = {**u85(shape, shape), "ACC_FORMAT": KEEP}
    with pytest.raises(UnsupportedCommand) as raised:
        run(stream(*operations, (last, POOL, SUM)), place(), config=U85_256)
    assert raised.value.name == "SET_ACC_FORMAT"


def test_sums_cannot_go_on_when_another_operation_had_the_accumulators() -> None:
    """What is left after an operation that wrote its results is not known."""
    shape = (2, 3, 5)
    partial: dict[str, Setting] = {**u85(shape, shape), **NOWHERE, "ACC_FORMAT": NOT_WRITTEN}
    between: dict[str, Setting] = {**SHOWN, "ACC_FORMAT": 0}
    with pytest.raises(UnsupportedCommand):
        run(
            stream((partial, POOL, SUM), (between, POOL, MAX), ({"ACC_FORMAT": KEEP}, POOL, SUM)),
            place(),
            config=U85_256,
        )


@pytest.mark.parametrize("bits", [8, 16])
def test_each_row_is_multiplied_by_its_own_matrix(bits: int) -> None:
    """OFM[y, x, n] = sum over k of IFM[y, x, k] x IFM2[y, n, k]."""
    rows, columns, inner, outer = 3, 4, 7, 5
    limit = 1 << (bits - 1)
    left = RANDOM.integers(-limit, limit, (rows, columns, inner))
    right = RANDOM.integers(-limit, limit, (rows, outer, inner))
    registers: dict[str, Setting] = {
        **u85((rows, columns, inner), (rows, columns, outer), bits),
        **feature_map("IFM2", IFM2_BASE, (rows, outer, inner), bits),
        "ACC_FORMAT": 0 if bits == 8 else 1,
        "OFM_SCALE": (1, (0 if bits == 8 else 5) | NATURAL_85),
        "IFM_ZERO_POINT": 3 if bits == 8 else 0,
        "IFM2_ZERO_POINT": -2 if bits == 8 else 0,
    }
    zero_points = (3, -2) if bits == 8 else (0, 0)
    shift = 0 if bits == 8 else 5
    scratch = place((IFM_BASE, left.astype(f"<i{bits // 8}")), (IFM2_BASE, right.astype(f"<i{bits // 8}")))
    run(stream((registers, CONV, 1)), scratch, config=U85_256)
    expected = []
    for y, x, n in np.ndindex(rows, columns, outer):
        total = sum(
            (int(left[y, x, k]) - zero_points[0]) * (int(right[y, n, k]) - zero_points[1])
            for k in range(inner)
        )
        expected.append((total + (1 << shift >> 1)) >> shift)
    assert words(scratch, len(expected)) == expected


def test_products_of_matrices_beyond_float32_are_exact() -> None:
    inner = 2000
    registers: dict[str, Setting] = {
        **u85((1, 1, inner), (1, 1, 2)),
        **feature_map("IFM2", IFM2_BASE, (1, 2, inner), 8),
    }
    left, right = np.full(inner, 127), np.full((2, inner), 127)
    right[0, ::2], right[1, 0] = 126, 1
    scratch = place((IFM_BASE, left.astype(np.int8)), (IFM2_BASE, right.astype(np.int8)))
    run(stream((registers, CONV, 1)), scratch, config=U85_256)
    assert words(scratch, 2) == [127 * 253 * inner // 2, 127 * (127 * (inner - 1) + 1)]
    assert words(scratch, 1)[0] > 1 << 24


@pytest.mark.parametrize(("bits", "accumulator"), [(32, 0), (48, 1)])
def test_sums_beyond_the_accumulators_are_refused(bits: int, accumulator: int) -> None:
    """The largest and the smallest sum that fit, and the ones next to them."""
    for value, fits in (
        ((1 << bits - 1) - 1, True),
        (1 << bits - 1, False),
        (-(1 << bits - 1), True),
        (-(1 << bits - 1) - 1, False),
    ):
        registers: dict[str, Setting] = {
            **u85((1, 1, 1), (1, 1, 1), 64, 64),
            "ACC_FORMAT": FROM_IFM2 | accumulator,
        }
        scratch = place((IFM2_BASE, np.array([value], "<i8")))
        data = stream((registers, POOL, NONE))
        if fits:
            run(data, scratch, config=U85_256)
            assert taken(scratch, OFM_BASE, 1, "<i8") == [value]
        else:
            with pytest.raises(UnsupportedCommand, match="overflow"):
                run(data, scratch, config=U85_256)


HUGE: dict[str, Setting] = {
    "OFM_HEIGHT_M1": 0xFFFF,
    "OFM_WIDTH_M1": 0xFFFF,
    "OFM_DEPTH_M1": 0xFFFF,
    "IFM_DEPTH_M1": 0xFFFF,
    "KERNEL_HEIGHT_M1": 0xFFFF,
    "KERNEL_WIDTH_M1": 0xFFFF,
}


@pytest.mark.parametrize(
    ("opcode", "mode"), [(CONV, 0), (CONV, 1), (DEPTHWISE, 0), (POOL, 0), (POOL, 1), (POOL, 2), (POOL, 3)]
)
def test_more_work_than_any_model_has_is_refused_at_once(opcode: int, mode: int) -> None:
    """Strides of zero would let it all lie in a few bytes."""
    registers: dict[str, Setting] = {
        **u85((1, 1, 1), (1, 1, 1)),
        **{f"{name}_STRIDE_{axis}": 0 for name in ("IFM", "IFM2", "OFM") for axis in "XYC"},
        **HUGE,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": 16,
        "WEIGHT_FORMAT": 0,
    }
    start = time.process_time()
    with pytest.raises(UnsupportedCommand, match="steps"):
        run(stream((registers, opcode, mode)), place(), config=U85_256)
    assert time.process_time() - start < 5


def test_ethos_u55_counts_the_same_work() -> None:
    registers = {
        **u85((1, 1, 1), (1, 1, 1)),
        **HUGE,
        "OFM_PRECISION": precision(8, ofm=True, extra=GLOBAL_SCALE),
    }
    del registers["KERNEL_STRIDE"]
    with pytest.raises(UnsupportedCommand, match="steps"):
        run(stream((registers, POOL, 0)), place(), config=U55_128)


LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    ("opcode", "mode", "bits", "left", "right", "exact"),
    [
        # The difference of two products of 62 bits, each of which float64 rounds.
        (CONV, 1, 32, [LARGEST, LARGEST], [LARGEST, 1 - LARGEST], LARGEST),
        # A sum of 32 bits times a reciprocal of 32.
        (POOL, AVERAGE, 32, [LARGEST, LARGEST], [], LARGEST),
        (POOL, AVERAGE, 32, [2**30, 2**30], [], 2**30),
        # Sums that leave 64 bits.
        (POOL, SUM, 64, [2**62] * 4, [], 2**64),
        (POOL, REDUCE_SUM, 64, [2**62] * 4, [], 2**64),
    ],
)
def test_wide_inputs_are_exact_or_refused(
    opcode: int, mode: int, bits: int, left: list[int], right: list[int], exact: int
) -> None:
    """No compiler emits these."""
    pools = opcode == POOL and mode != REDUCE_SUM
    shape = (1, len(left), 1) if pools else (1, 1, len(left))
    registers: dict[str, Setting] = {
        **u85(shape, (1, 1, 1), bits, 64),
        "KERNEL_WIDTH_M1": len(left) - 1 if pools else 0,
        "ACC_FORMAT": 1,
    }
    kind = f"<i{bits // 8}"
    scratch = place((IFM_BASE, np.array(left, kind)), (IFM2_BASE, np.array(right, kind)))
    try:
        run(stream((registers, opcode, mode)), scratch, config=U85_256)
    except UnsupportedCommand:
        return
    assert taken(scratch, OFM_BASE, 1, "<i8") == [exact]
