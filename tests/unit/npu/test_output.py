"""The output stage: scale, zero point, clamp, table look-up, store."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.operation import Lut, Output, Rounding
from ethosu_sdk.npu.ops import finish, look_up
from tests.tables import each
from tests.unit.npu.machine import U85_256, place, run, taken
from tests.unit.npu.streams import BRICKS, GLOBAL_SCALE, POOL, Setting, copying_pool, feature_map, stream

NO_LUT = np.zeros(2048, np.uint8)


def table(slot: int, result: str) -> Lut:
    """The table in slot `slot` of 256 bytes: 32-bit results come from 8-bit indices, others from their own kind."""
    return Lut(256 * slot, np.dtype("<i1" if result == "<i4" else result), np.dtype(result))


def finished(
    values: list[int],
    dtype: str = "<i1",
    zero_point: int = 0,
    scaled: bool = True,
    scale: tuple[int, int] | None = (1, 0),
    clamp: tuple[int, int] | None = (-128, 127),
    lut: int | None = None,
    tables: NDArray[np.uint8] = NO_LUT,
) -> list[int]:
    factor, shift = scale if scale is not None else (None, None)
    output = Output(
        scaled, factor, shift or 0, Rounding.NATURAL, clamp, None if lut is None else table(lut, dtype)
    )
    accumulator = np.array(values, np.int64).reshape(1, 1, -1)
    result = finish(accumulator, output, factor, shift, zero_point, np.dtype(dtype), tables)
    assert result.dtype == dtype
    found: list[int] = result.reshape(-1).tolist()
    return found


def test_order_of_scale_zero_point_clamp_and_table() -> None:
    assert finished([100, -100, 3, -3], zero_point=30, scale=(1, 1)) == [80, -20, 32, 29]
    assert finished([200, -200, 0], zero_point=10, clamp=(0, 100)) == [100, 0, 10]
    assert finished([200, -200, 0], zero_point=-128, clamp=(-128, 127)) == [72, -128, -128]
    assert finished([5, -7], scaled=False, scale=(1 << 20, 3)) == [5, -7]
    assert finished([1 << 31, -(1 << 31) - 1], "<i4", clamp=None) == [-(1 << 31), (1 << 31) - 1]


def test_32_bit_results_take_no_zero_point() -> None:
    """Streams of Vela 4 depend on it: with one, their softmax is not TensorFlow Lite Micro's."""
    assert finished([5, -7], "<i4", zero_point=-128, clamp=None) == [5, -7]
    assert finished([5, -7], "<i2", zero_point=-128, clamp=None) == [-123, -135]


@pytest.mark.parametrize(
    ("dtype", "clamp", "values", "expected"),
    [
        ("<i1", (-128, 127), [127, 128, -128, -129], [127, 127, -128, -128]),
        ("<u1", (0, 255), [255, 256, 0, -1], [255, 255, 0, 0]),
        ("<i2", (-32768, 32767), [32767, 32768, -32768, -32769], [32767, 32767, -32768, -32768]),
        ("<i1", (-10, 6), [-11, -10, 6, 7], [-10, -10, 6, 6]),
        ("<i4", None, [2**31 - 1, -(2**31), 40000], [2**31 - 1, -(2**31), 40000]),
    ],
)
def test_clamps(dtype: str, clamp: tuple[int, int] | None, values: list[int], expected: list[int]) -> None:
    assert finished(values, dtype, clamp=clamp) == expected


def signed_bytes(count: int = 256) -> NDArray[np.uint8]:
    """A table without symmetry: entry i is 7 i + 3, modulo 256."""
    return ((7 * np.arange(count) + 3) % 256).astype(np.uint8)


def table_at(slot: int, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    tables = np.full(2048, 0xEE, np.uint8)
    tables[256 * slot :][: table.size] = table
    return tables


@pytest.mark.parametrize("slot", [0, 3, 7])
def test_8_bit_tables_are_indexed_from_the_lowest_value(slot: int) -> None:
    tables = table_at(slot, signed_bytes())
    wrap = [(value + 128) % 256 - 128 for value in (3, 3 + 7 * 127, 3 + 7 * 128, 3 + 7 * 255)]
    assert finished([-128, -1, 0, 127], lut=slot, tables=tables) == wrap
    unsigned = [3, 3 + 7 * 127 - 3 * 256, 3 + 7 * 128 - 3 * 256, 3 + 7 * 255 - 6 * 256]
    assert finished([0, 127, 128, 255], "<u1", clamp=(0, 255), lut=slot, tables=tables) == unsigned


def test_the_clamp_comes_before_the_table_and_32_bit_tables_have_words() -> None:
    identity = np.arange(-128, 128).astype(np.int8).view(np.uint8)
    assert finished([-500, 50, 500], clamp=(-3, 9), lut=0, tables=table_at(0, identity)) == [-3, 9, 9]
    shifted = np.roll(identity, -1)
    assert finished([9], clamp=(-3, 9), lut=0, tables=table_at(0, shifted)) == [10]
    words = (np.arange(256, dtype=np.int64) * 16_000_000 - 2_000_000_000).astype("<i4")
    tables = table_at(4, words.view(np.uint8))
    found = finished([-128, 0, 127], "<i4", clamp=(-128, 127), lut=4, tables=tables)
    assert found == [-2_000_000_000, 48_000_000, 2_080_000_000]


def interpolated(value: int, base: int, slope: int) -> int:
    """A 16-bit entry: 128 steps of slope / 128 from the base, half up."""
    fraction = (value + 32768) % 128
    return (base * 128 + slope * fraction + 64) // 128


def test_16_bit_tables_interpolate() -> None:
    generator = np.random.default_rng(4)
    base, slope = generator.integers(-32768, 32768, (2, 512))
    # Keep every interpolated value inside of 16 bits.
    base //= 2
    slope //= 2
    words = np.stack([base, slope], 1).astype("<i2")
    values = [-32768, -32767, -32641, -32640, -1, 0, 1, 63, 64, 127, 128, 32639, 32640, 32766, 32767]
    expected = [
        interpolated(value, int(base[(value + 32768) // 128]), int(slope[(value + 32768) // 128]))
        for value in values
    ]
    tables = words.view(np.uint8).reshape(-1)
    assert finished(values, "<i2", clamp=(-32768, 32767), lut=0, tables=tables) == expected


@pytest.mark.parametrize(("slope", "expected"), [(1, 11), (-1, 10), (3, 12), (-3, 9)])
def test_16_bit_interpolation_rounds_half_up(slope: int, expected: int) -> None:
    """At fraction 64, a slope of one is half a step."""
    words = np.tile(np.array([10, slope], "<i2"), 512)
    assert look_up(np.array([64]), table(0, "<i2"), words.view(np.uint8)).tolist() == [expected]


@pytest.mark.parametrize(("dtype", "slot"), [("<i2", 1), ("<i4", 5), ("<i1", 8)])
def test_tables_that_reach_past_the_shared_ram_are_errors(dtype: str, slot: int) -> None:
    with pytest.raises(BusError, match=f"at {256 * slot:#x}"):
        look_up(np.array([0]), table(slot, dtype), NO_LUT)


def test_wider_results_of_tables() -> None:
    """Ethos-U85's s8 to s16: 512 bytes, one half-word per index."""
    entries = (np.arange(256, dtype=np.int64) * 250 - 32_000).astype("<i2")
    kind = Lut(512, np.dtype("<i1"), np.dtype("<i2"))
    found = look_up(np.array([-128, -1, 0, 127]), kind, table_at(2, entries.view(np.uint8)))
    assert found.tolist() == [-32_000, -250, 0, 31_750]
    # s16 to s32: the base times 128 and 0 to 127 slopes, not rounded.
    words = np.tile(np.array([-10, 3], "<i2"), 512)
    kind = Lut(0, np.dtype("<i2"), np.dtype("<i4"))
    found = look_up(np.array([-32768, -32767, 127, 128]), kind, words.view(np.uint8))
    assert found.tolist() == [-1280, -1277, -1280 + 3 * 127, -1280]


ELEMENTS = np.arange(24).reshape(2, 3, 4)  # 12 y + 4 x + c


@pytest.mark.parametrize("number", [1, 2, 3])
def test_memory_holds_the_reversed_result(number: int) -> None:
    """Ethos-U85: reverse 1, 2, 3 is along height, width, depth."""
    scratch = place((0x1000, ELEMENTS.astype(np.int8)))
    run(stream((copy_85((2, 3, 4), number << 9), POOL, 3)), scratch, config=U85_256)
    expected = np.flip(ELEMENTS, number - 1).reshape(-1).tolist()
    assert taken(scratch, 0x3000, 24, "<i1") == expected


@each(("number", "letters"), [(0, "HWC"), (1, "WHC"), (2, "HCW"), (3, "WCH"), (6, "CHW"), (7, "CWH")])
@each("bricks", [False, True])
def test_memory_holds_the_transposed_result(number: int, letters: str, bricks: bool) -> None:
    """The strides describe memory, behind the transpose; the sizes in the OFM registers what comes before it."""
    axes = ["HWC".index(letter) for letter in letters]
    memory = tuple(ELEMENTS.shape[axis] for axis in axes)
    registers = copy_85((memory[0], memory[1], memory[2]), number << 11 | (BRICKS if bricks else 0))
    if bricks:
        registers |= {"OFM_STRIDE_Y": 16 * memory[1], "OFM_STRIDE_C": 1 << 30}
    scratch = place((0x1000, ELEMENTS.astype(np.int8)))
    run(stream((registers, POOL, 3)), scratch, config=U85_256)
    for at in np.ndindex(2, 3, 4):
        i, j, k = (at[axis] for axis in axes)
        address = (i * memory[1] + j) * (16 if bricks else memory[2]) + k
        assert scratch[0x3000 + address] == ELEMENTS[at]


def copy_85(stored: tuple[int, int, int], extra: int) -> dict[str, Setting]:
    """A sum of one element each: Ethos-U85's copy, to a feature map that has the shape `stored` in memory."""
    return {
        **copying_pool(0x1000, 0x3000, (2, 3, 4), is_u85=True),
        **feature_map("OFM", 0x3000, stored, 8, GLOBAL_SCALE | extra),
    }
