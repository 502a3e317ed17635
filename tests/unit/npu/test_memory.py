"""Feature maps in memory, against a computation of every element's address of its own."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.npu.memory import FixedRegions, Memory
from ethosu_sdk.npu.operation import FeatureMap, Shape
from tests.tables import each
from tests.unit.npu import operations

GUARD = 64  # bytes on both sides of the region that belong to nobody
DTYPES = ["<i1", "<u1", "<i2", "<i4"]


def addresses(feature_map: FeatureMap, shape: Shape) -> NDArray[Any]:
    return np.array(
        [
            [
                [operations.element_address(feature_map, y, x, c) for c in range(shape[2])]
                for x in range(shape[1])
            ]
            for y in range(shape[0])
        ]
    )


def dense(shape: Shape, dtype: str = "<i1", base: int = 0) -> FeatureMap:
    """One tile, NHWC, without gaps."""
    return operations.dense(base, shape, np.dtype(dtype))


def bricked(shape: Shape, dtype: str = "<i1", base: int = 0) -> FeatureMap:
    """One tile, NHCWB16, without gaps."""
    _, width, depth = shape
    size = np.dtype(dtype).itemsize
    return replace(
        dense(shape, dtype, base),
        bricks=True,
        stride_c=width * 16 * size,
        stride_y=-(-depth // 16) * width * 16 * size,
    )


def memory_of(store: NDArray[np.uint8]) -> Memory:
    return Memory(FixedRegions({1: store}), 0)


def counting(size: int) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, size).astype(np.uint8)


def peek(store: NDArray[np.uint8], address: int, dtype: np.dtype[Any]) -> int:
    raw = bytes(store[address : address + dtype.itemsize])
    return int.from_bytes(raw, "little", signed=dtype.kind == "i")


@each("dtype", DTYPES)
@each("make", [dense, bricked])
# Whole bricks, a last brick that is not full, no brick that is.
@each("depth", [16, 48, 21, 5])
def test_layouts(dtype: str, make: Callable[[Shape, str, int], FeatureMap], depth: int) -> None:
    shape = (3, 4, depth)
    feature_map = make(shape, dtype, 7)
    store = counting(4096)
    values = memory_of(store).read(feature_map, shape)
    assert values.dtype == dtype
    assert values.reshape(-1).tolist() == [
        peek(store, address, values.dtype) for address in addresses(feature_map, shape).reshape(-1)
    ]


def test_four_tiles() -> None:
    """Two columns left with three rows above, three right with one row above."""
    feature_map = replace(
        dense((4, 5, 2)),
        bases=(1000, 2000, 3000, 500),
        width0=2,
        height0=3,
        height1=1,
        stride_y=40,
        stride_x=4,
    )
    store = counting(4096)
    values = memory_of(store).read(feature_map, (4, 5, 2))
    for (y, x), start in {
        (0, 0): 1000,
        (2, 1): 1000 + 2 * 40 + 4,
        (3, 1): 3000 + 4,  # left, below: BASE2
        (0, 2): 2000,  # right, above: BASE1
        (0, 4): 2000 + 8,
        (1, 2): 500,  # right, below: BASE3
        (3, 4): 500 + 2 * 40 + 8,
    }.items():
        assert values[y, x].tolist() == store[start : start + 2].view(np.int8).tolist(), (y, x)


@each(
    "feature_map",
    [
        dense((4, 4, 4), base=1),  # one byte too far
        dense((4, 4, 4), base=-1),
        replace(dense((4, 4, 4)), stride_y=-16),  # below the start
        replace(dense((4, 4, 4)), stride_x=1 << 38),
        replace(dense((4, 4, 4)), bases=(1 << 39, 0, 0, 0)),
        replace(dense((4, 4, 4)), bases=(-(1 << 39), 0, 0, 0)),
        replace(dense((4, 4, 4)), height0=2, bases=(0, 0, 60, 0)),  # only the second tile
        replace(dense((4, 4, 4)), width0=2, bases=(0, 60, 0, 0)),
        replace(dense((4, 4, 4)), region=5),
        bricked((4, 4, 4)),
    ],
)
@each("writing", [False, True])
def test_accesses_outside_are_bus_errors(feature_map: FeatureMap, writing: bool) -> None:
    memory = memory_of(np.zeros(64, np.uint8))
    assert memory.read(dense((4, 4, 4)), (4, 4, 4)).sum() == 0  # fits exactly
    ones = np.ones((4, 4, 4), np.int8)
    access = (
        partial(memory.write, feature_map, ones) if writing else partial(memory.read, feature_map, ones.shape)
    )
    with pytest.raises(BusError):
        access()


@pytest.mark.parametrize("shape", [(0, 4, 4), (4, -1, 4), (4, 4, 0), (65536, 65536, 65536)])
def test_shapes_that_cannot_be_are_bus_errors(shape: Shape) -> None:
    """The IFM's size follows from the OFM's and may come out negative; strides of zero could hide its size."""
    feature_map = replace(dense((4, 4, 4)), stride_x=0, stride_y=0)
    with pytest.raises(BusError, match="feature map of"):
        memory_of(np.zeros(1 << 17, np.uint8)).read(feature_map, shape)


STRIDES = st.integers(-70, 70) | st.sampled_from([0, 16, 32, 1 << 20, -(1 << 39), (1 << 39) - 1])
BASES = st.integers(-8, 500) | st.sampled_from([1 << 31, -(1 << 39), (1 << 39) - 1])


@st.composite
def feature_maps(draw: st.DrawFn) -> FeatureMap:
    return FeatureMap(
        region=1,
        bases=(draw(BASES), draw(BASES), draw(BASES), draw(BASES)),
        height0=draw(st.integers(1, 5)),
        height1=draw(st.integers(1, 5)),
        width0=draw(st.integers(1, 5)),
        stride_y=draw(STRIDES),
        stride_x=draw(STRIDES),
        stride_c=draw(STRIDES),
        dtype=np.dtype(draw(st.sampled_from(DTYPES))),
        bricks=draw(st.booleans()),
        zero_point=0,
    )


SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 35))


@settings(max_examples=150)
@given(feature_maps(), SHAPES, st.integers(0, 600))
def test_any_feature_map_reads_its_elements_or_nothing(
    feature_map: FeatureMap, shape: Shape, size: int
) -> None:
    store = counting(size)
    places = addresses(feature_map, shape)
    inside = bool((places >= 0).all() and (places + feature_map.dtype.itemsize <= size).all())
    values_bytes = places.size * feature_map.dtype.itemsize
    try:
        values = memory_of(store).read(feature_map, shape)
    except BusError:
        # What is larger than the region can only lie in it by overlapping with itself.
        assert not inside or values_bytes > size
        return
    assert inside
    assert values.reshape(-1).tolist() == [
        peek(store, address, feature_map.dtype) for address in places.reshape(-1)
    ]


@settings(max_examples=150)
@given(feature_maps(), SHAPES, st.integers(0, 600))
def test_any_feature_map_writes_its_elements_and_nothing_else(
    feature_map: FeatureMap, shape: Shape, size: int
) -> None:
    whole = np.full(size + 2 * GUARD, 0xA5, np.uint8)
    places = addresses(feature_map, shape)
    mine = np.zeros(whole.size, bool)
    for address in places.reshape(-1):
        if 0 <= address < size:
            mine[GUARD + address : GUARD + min(size, address + feature_map.dtype.itemsize)] = True
    try:
        memory_of(whole[GUARD : GUARD + size]).write(feature_map, np.zeros(shape, feature_map.dtype))
    except BusError:
        pass
    else:
        assert (whole[mine] == 0).all()
    assert (whole[~mine] == 0xA5).all()
