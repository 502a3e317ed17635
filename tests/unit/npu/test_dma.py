"""DMA in one, two and three dimensions, with and without an index, inside the memory and out of it."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, Channel
from ethosu_sdk.npu.machine import Machine
from ethosu_sdk.npu.memory import FixedRegions
from ethosu_sdk.npu.weight_cache import WeightCache
from tests.tables import each
from tests.unit.npu.machine import U55_128, U65_256, U65_512, U85_256
from tests.unit.npu.streams import DMA_START, Setting, stream, transfer

D1, D2, D3, D4 = (n << 9 for n in range(4))  # stride_mode
INDEXED = 1 << 11  # idx_mode
INTERNAL = 1 << 8  # region_mode
SIZE = 1024
Bytes = NDArray[np.uint8]


def copied(
    registers: dict[str, Setting], config: NpuConfig = U85_256, indices: list[int] | None = None
) -> Bytes:
    """What region 2 holds after a DMA from region 1, with int32 indices in region 3."""
    target = np.full(SIZE, 0xEE, np.uint8)
    run_dma(registers, config, target, indices or [])
    return target


def source() -> Bytes:
    return (np.arange(SIZE) * 7 % 256).astype(np.uint8)


def run_dma(registers: dict[str, Setting], config: NpuConfig, target: Bytes, indices: list[int]) -> Machine:
    base: dict[str, Setting] = {
        **transfer((1, 0), (2, 0), 4),
        "DMA0_IDX_REGION": 3,
        "DMA0_IDX": 0,
        "DMA0_IDX_MAX": 99,
    }
    if config.npu != "ethos-u85":
        base = {name: value for name, value in base.items() if "IDX" not in name}
    regions = FixedRegions({1: source(), 2: target, 3: np.array(indices, "<i4").view(np.uint8)})
    machine = Machine(config, regions, WeightCache())
    machine.run(stream(({**base, **registers}, DMA_START, 0)))
    return machine


def expected(pieces: list[tuple[int, int, int]]) -> Bytes:
    """The target after pieces of (from, to, length) were copied, in this order."""
    target = np.full(SIZE, 0xEE, np.uint8)
    for start, end, length in pieces:
        for i in range(length):
            target[end + i] = (start + i) * 7 % 256
    return target


@pytest.mark.parametrize("config", [U55_128, U65_512, U85_256])
def test_one_dimension(config: NpuConfig) -> None:
    """Counts and strides that were left in the registers do not matter."""
    left: dict[str, Setting] = {"DMA0_SIZE0": 9, "DMA0_SIZE1": 9}
    found = copied({"DMA0_SRC": 3, "DMA0_DST": 17, "DMA0_LEN": 30, **left}, config)
    assert found.tolist() == expected([(3, 17, 30)]).tolist()


def test_rows_and_planes_with_gaps_on_ethos_u65() -> None:
    rows: dict[str, Setting] = {"DMA0_DST_REGION": 2 | D2, "DMA0_LEN": 7, "DMA0_SIZE0": 4, "DMA0_SKIP0": 3}
    found = copied({"DMA0_SRC": 5, "DMA0_DST": 9, **rows}, U65_256)
    pieces = [(5 + 7 * row, 9 + 10 * row, 7) for row in range(4)]
    assert found.tolist() == expected(pieces).tolist()
    found = copied(
        {
            "DMA0_DST_REGION": 2 | D3,
            "DMA0_LEN": 7,
            "DMA0_SIZE0": 4,
            "DMA0_SIZE1": 3,
            "DMA0_SKIP0": 0,
            "DMA0_SKIP1": 11,
        },
        U65_512,
    )
    pieces = [(7 * (4 * p + r), p * (28 + 11) + 7 * r, 7) for p in range(3) for r in range(4)]
    assert found.tolist() == expected(pieces).tolist()


def three_dimensions() -> dict[str, int]:
    return {
        "DMA0_SRC_REGION": 1 | D3,
        "DMA0_SRC": 2,
        "DMA0_DST": 1,
        "DMA0_LEN": 5,
        "DMA0_SIZE0": 4,
        "DMA0_SIZE1": 3,
        "DMA0_SRC_STRIDE0": 9,
        "DMA0_SRC_STRIDE1": 100,
        "DMA0_DST_STRIDE0": 6,
        "DMA0_DST_STRIDE1": 50,
    }


ROWS: dict[str, Setting] = {"DMA0_SRC_REGION": 1 | D2}
GATHERS, SCATTERS = {"DMA0_SRC_REGION": 1 | D2 | INDEXED}, {**ROWS, "DMA0_DST_REGION": 2 | INDEXED}
# Vela's use of the third dimension for 64-bit indices: planes of one row, four bytes skipped behind each index.
LOW_HALVES: dict[str, Setting] = {"DMA0_SIZE0": 1, "DMA0_SIZE1": 3, "DMA0_IDX_SKIP1": 4}
FAR, NEAR = {"STRIDE0": 8, "STRIDE1": 0}, {"STRIDE0": 0, "STRIDE1": 6}


def sides(source: dict[str, int], target: dict[str, int]) -> dict[str, Setting]:
    return {
        f"DMA0_{end}_{name}": n for end, row in (("SRC", source), ("DST", target)) for name, n in row.items()
    }


@each(
    ("changes", "indices"),
    [
        pytest.param(ROWS, [], id="rows"),
        pytest.param(
            {**ROWS, "DMA0_SRC": SIZE - 32, "DMA0_DST": SIZE - 23}, [], id="the last row ends with the memory"
        ),
        pytest.param({}, [], id="planes"),
        pytest.param(
            sides({"STRIDE0": -9, "STRIDE1": 0}, {"STRIDE1": -30}) | {"DMA0_SRC": 200, "DMA0_DST": 100},
            [],
            id="strides may be negative or zero",
        ),
        pytest.param({**ROWS, "DMA0_DST_STRIDE0": 2}, [], id="the last of overlapping rows wins"),
        pytest.param({"DMA0_SRC_REGION": 1 | INDEXED, "DMA0_SIZE0": 1}, [3, 0], id="one row is gathered"),
        pytest.param(GATHERS, [3, 0, 3, 11], id="rows are gathered"),
        pytest.param(SCATTERS, [7, 2, 0, 7], id="rows are scattered, the last one wins"),
        pytest.param(
            {**LOW_HALVES, **sides(FAR, NEAR), "DMA0_SRC_REGION": 1 | D3 | INDEXED},
            [5, 0, 2, 0, 9, 0],
            id="64-bit indices gather",
        ),
        pytest.param(
            {**LOW_HALVES, **sides(NEAR, FAR), "DMA0_DST_REGION": 2 | INDEXED},
            [5, 0, 2, 0, 9, 0],
            id="64-bit indices scatter",
        ),
    ],
)
def test_copies_on_ethos_u85(changes: dict[str, int], indices: list[int]) -> None:
    """Strides on both sides; an index may be the largest that is allowed."""
    unset = {
        "DMA0_DST_REGION": 2,
        "DMA0_IDX": 0,
        "DMA0_IDX_SKIP1": 0,
        "DMA0_IDX_MAX": max(indices, default=0),
    }
    registers = {**unset, **three_dimensions(), **changes}
    found = copied(dict(registers), indices=indices)
    assert found.tolist() == expected(pieces_of(registers, indices)).tolist()


@each(("index", "most"), [(5, 4), (-1, 99), (-(2**31), 2**31 - 1), (2**31 - 1, 2**31 - 1), (200, 200)])
@each("scatters", [False, True])
def test_indices_outside_are_bus_errors(index: int, most: int, scatters: bool) -> None:
    """Past the largest one allowed, negative, or past the end of the memory."""
    registers: dict[str, Setting] = {
        "DMA0_SRC_REGION": 1 | D2 | (0 if scatters else INDEXED),
        "DMA0_DST_REGION": 2 | (INDEXED if scatters else 0),
        "DMA0_SIZE0": 2,
        "DMA0_SRC_STRIDE0": 8,
        "DMA0_DST_STRIDE0": 8,
        "DMA0_IDX_MAX": most,
    }
    target = np.full(SIZE, 0xEE, np.uint8)
    with pytest.raises(BusError):
        run_dma(registers, U85_256, target, [0, index])
    assert (target == 0xEE).all()  # not even the row with the good index


def test_indices_must_exist() -> None:
    registers: dict[str, Setting] = {
        "DMA0_SRC_REGION": 1 | D2 | INDEXED,
        "DMA0_SIZE0": 3,
        "DMA0_SRC_STRIDE0": 8,
        "DMA0_DST_STRIDE0": 8,
    }
    with pytest.raises(BusError) as raised:
        copied(registers, indices=[0, 1])
    assert (raised.value.region, raised.value.channel) == (3, Channel.COPY_READ)


@each(
    ("changes", "region", "channel"),
    [
        ({"DMA0_SRC": SIZE - 3 * 9 - 4}, 1, Channel.COPY_READ),  # one byte too far
        ({"DMA0_SRC": 27, "DMA0_SRC_STRIDE0": -10}, 1, Channel.COPY_READ),
        ({"DMA0_SRC_STRIDE0": (1 << 39) - 1}, 1, Channel.COPY_READ),
        ({"DMA0_SRC_REGION": 5 | D2}, 5, Channel.COPY_READ),
        ({"DMA0_DST": SIZE - 3 * 6 - 4}, 2, Channel.COPY_WRITE),
        ({"DMA0_DST": 17, "DMA0_DST_STRIDE0": -6}, 2, Channel.COPY_WRITE),
        ({"DMA0_DST_STRIDE0": -(1 << 39)}, 2, Channel.COPY_WRITE),
        ({"DMA0_DST_REGION": 6}, 6, Channel.COPY_WRITE),
        ({"DMA0_LEN": (1 << 39) - 1}, 2, Channel.COPY_WRITE),
    ],
)
def test_rows_outside_are_bus_errors(changes: dict[str, Setting], region: int, channel: Channel) -> None:
    target = np.full(SIZE, 0xEE, np.uint8)
    registers = {**three_dimensions(), "DMA0_SRC_REGION": 1 | D2, **changes}
    with pytest.raises(BusError) as raised:
        run_dma(registers, U85_256, target, [])
    assert (raised.value.region, raised.value.channel) == (region, channel)
    assert (target == 0xEE).all()


@pytest.mark.parametrize("rows", [1, 4])
def test_read_only_targets_are_bus_errors(rows: int) -> None:
    target = np.full(SIZE, 0xEE, np.uint8)
    target.flags.writeable = False
    with pytest.raises(BusError, match="read-only") as raised:
        run_dma({**three_dimensions(), "DMA0_SIZE0": rows, "DMA0_SIZE1": 1}, U85_256, target, [])
    assert (raised.value.region, raised.value.channel) == (2, Channel.COPY_WRITE)


@pytest.mark.parametrize("name", ["DMA0_SIZE0", "DMA0_SIZE1", "DMA0_LEN"])
def test_nothing_is_copied_where_a_count_is_zero(name: str) -> None:
    assert (copied({**three_dimensions(), name: 0}) == 0xEE).all()


HOSTILE: dict[str, Setting] = {
    "DMA0_SRC_REGION": 1 | D3,
    "DMA0_SIZE0": 0xFFFF,
    "DMA0_SIZE1": 0xFFFF,
    "DMA0_SRC_STRIDE0": 0,
    "DMA0_SRC_STRIDE1": 0,
    "DMA0_DST_STRIDE0": 0,
    "DMA0_DST_STRIDE1": 0,
    "DMA0_IDX_SKIP1": 0,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"DMA0_LEN": SIZE},
        {"DMA0_LEN": 1},
        {"DMA0_LEN": 0},
        {"DMA0_LEN": 1, "DMA0_SRC_REGION": 1 | D3 | INDEXED},
        {"DMA0_LEN": 1, "DMA0_DST_REGION": 2 | INDEXED},
    ],
)
def test_counts_beyond_all_memory_are_soon_refused_or_done(changes: dict[str, Setting]) -> None:
    """Four thousand million rows in a stride of zero: neither hours nor gigabytes."""
    start = time.process_time()
    if changes["DMA0_LEN"] == 0:
        assert (copied({**HOSTILE, **changes}) == 0xEE).all()
    else:
        with pytest.raises(BusError):
            copied({**HOSTILE, **changes}, indices=[0])
    assert time.process_time() - start < 5


COUNTS = st.integers(0, 5) | st.sampled_from([255, 0xFFFF])
STRIDES = st.integers(-40, 40) | st.sampled_from([0, 1 << 20, -(1 << 39), (1 << 39) - 1])
PLACES = st.integers(-4, SIZE + 4) | st.sampled_from([-(1 << 39), (1 << 39) - 1])


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "DMA0_SRC_REGION": st.sampled_from([1 | D1, 1 | D2, 1 | D3, 1 | D2 | INDEXED, 1 | D3 | INDEXED]),
            "DMA0_DST_REGION": st.sampled_from([2, 2, 2 | INDEXED]),
            "DMA0_SRC": PLACES,
            "DMA0_DST": PLACES,
            "DMA0_LEN": st.integers(0, 40),
            "DMA0_SIZE0": st.just(1) | COUNTS,
            "DMA0_SIZE1": COUNTS,
            "DMA0_SRC_STRIDE0": STRIDES,
            "DMA0_SRC_STRIDE1": STRIDES,
            "DMA0_DST_STRIDE0": STRIDES,
            "DMA0_DST_STRIDE1": STRIDES,
            "DMA0_IDX": st.integers(0, 8).map(lambda n: 4 * n),
            "DMA0_IDX_MAX": st.sampled_from([3, 40]),
            "DMA0_IDX_SKIP1": st.sampled_from([0, 4, -8]),
        }
    ),
    st.lists(st.integers(-1, 42), max_size=30),
)
def test_any_copy_is_done_or_refused(registers: dict[str, int], indices: list[int]) -> None:
    # One dimension has one row: Vela writes a SIZE0 of 1 there, and no stride.
    assume(registers["DMA0_SRC_REGION"] >> 9 & 3 or registers["DMA0_SIZE0"] == 1)
    target = np.full(SIZE, 0xEE, np.uint8)
    try:
        run_dma(dict(registers), U85_256, target, indices)
    except SdkError:
        assert (target == 0xEE).all()
        return
    assert target.tolist() == expected(pieces_of(registers, indices)).tolist()


def pieces_of(registers: dict[str, int], indices: list[int]) -> list[tuple[int, int, int]]:
    """The pieces that a copy consists of, by its registers; each must lie in memory."""
    dimensions = (registers["DMA0_SRC_REGION"] >> 9 & 3) + 1
    gathers, scatters = registers["DMA0_SRC_REGION"] & INDEXED, registers["DMA0_DST_REGION"] & INDEXED
    rows = registers["DMA0_SIZE0"] if dimensions > 1 or gathers or scatters else 1
    planes = registers["DMA0_SIZE1"] if dimensions > 2 else 1
    length = registers["DMA0_LEN"]
    pieces = []
    for plane in range(planes if rows * length else 0):
        for row in range(rows):
            place = registers["DMA0_IDX"] + plane * (4 * rows + registers["DMA0_IDX_SKIP1"]) + 4 * row
            number = indices[place // 4] if gathers or scatters else row
            start = registers["DMA0_SRC"] + (number if gathers else row) * registers["DMA0_SRC_STRIDE0"]
            end = registers["DMA0_DST"] + (number if scatters else row) * registers["DMA0_DST_STRIDE0"]
            if dimensions > 2:
                start += plane * registers["DMA0_SRC_STRIDE1"]
                end += plane * registers["DMA0_DST_STRIDE1"]
            assert 0 <= start <= SIZE - length
            pieces.append((start, end, length))
    return pieces


def test_the_look_up_tables_are_memory_and_traffic_is_counted_once() -> None:
    there = transfer((1, 8), (INTERNAL, 2048 - 32), 32)
    back = transfer((INTERNAL, 2048 - 32), (2, 0), 32)
    target = np.full(SIZE, 0xEE, np.uint8)
    regions = FixedRegions({1: source(), 2: target})
    Machine(U85_256, regions, WeightCache()).run(stream((there, DMA_START, 0), (back, DMA_START, 0)))
    assert target.tolist() == expected([(8, 0, 32)]).tolist()
    with pytest.raises(BusError, match="own memory"):
        run_dma({**there, "DMA0_DST": 2048 - 31}, U85_256, target, [])
    machine = run_dma(three_dimensions(), U85_256, np.zeros(SIZE, np.uint8), [])
    # Memory mode Dedicated_Sram, Ethos-U85's default: the source and the commands lie behind port 1, the fast scratch
    # that is written behind port 0.
    assert machine.counters.bytes_moved == {(1, False): 60 + machine.position, (0, True): 60}
