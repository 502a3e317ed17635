"""Bytes of feature maps and where they meet, against every element's address and sets of bytes."""

import itertools

import numpy as np
from hypothesis import given, strategies as st

from ethosu_sdk.npu.accesses import Box, Runs, bytes_of, overlap, runs
from ethosu_sdk.npu.operation import FeatureMap
from tests.unit.npu.operations import element_address

BASES = (0x1000, 0x2000, 0x3000, 0x4000)


def expand(pieces: tuple[Runs, ...]) -> list[int]:
    """Every byte, as often as it occurs in a run."""
    found: list[int] = []
    for piece in pieces:
        offsets = itertools.product(*([n * stride for n in range(count)] for count, stride in piece.axes))
        found += [piece.base + sum(at) + n for at in offsets for n in range(piece.length)]
    return found


def addresses(feature_map: FeatureMap, box: Box) -> set[int]:
    """The bytes of all elements in `box`."""
    found: set[int] = set()
    for place in itertools.product(*(range(*side) for side in box)):
        address = element_address(feature_map, *place)
        found |= set(range(address, address + feature_map.dtype.itemsize))
    return found


sides = st.tuples(st.integers(0, 40), st.integers(1, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))
short = st.tuples(st.integers(0, 5), st.integers(1, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    box=st.tuples(short, short, sides),
    tiles=st.tuples(*[st.integers(1, 9)] * 3),
    strides=st.tuples(st.integers(-700, 700), st.integers(-90, 90), st.integers(-400, 400)),
    dtype=st.sampled_from(["<i1", "<i2", "<i4"]),
    bricks=st.booleans(),
)
def test_bytes_are_those_of_the_elements(
    box: Box, tiles: tuple[int, ...], strides: tuple[int, ...], dtype: str, bricks: bool
) -> None:
    feature_map = FeatureMap(1, BASES, *tiles, *strides, np.dtype(dtype), bricks, 0)
    assert set(expand(bytes_of(feature_map, box))) == addresses(feature_map, box)


def test_dense_maps_are_one_run_and_rows_between_rows_do_not_meet() -> None:
    dense = FeatureMap(1, (0x100, 0, 0, 0), 4, 4, 5, 60, 12, 0, np.dtype("<i2"), False, 0)
    assert bytes_of(dense, ((0, 4), (0, 5), (0, 6))) == (Runs(0x100, (), 4 * 5 * 6 * 2),)
    bricks = FeatureMap(1, (0x100, 0, 0, 0), 4, 4, 5, 160, 0, 80, np.dtype("<i1"), True, 0)
    assert bytes_of(bricks, ((0, 4), (0, 5), (0, 32))) == (Runs(0x100, (), 4 * 5 * 32),)
    left, right = runs(0, [(8, 32)], 16), runs(16, [(8, 32)], 16)
    assert overlap(left, right) is None
    assert overlap(left, runs(15, [(8, 32)], 16)) == (15, 16)


some_runs = st.builds(
    runs,
    st.integers(0, 300),
    st.lists(st.tuples(st.integers(1, 5), st.integers(-60, 60)), max_size=3),
    st.integers(1, 9),
)


@given(some_runs, some_runs)
def test_overlap_is_that_of_the_bytes(first: Runs, second: Runs) -> None:
    common = set(expand((first,))) & set(expand((second,)))
    found = overlap(first, second)
    assert (found is not None) == bool(common)
    if found is not None:
        assert found[0] < found[1]
        assert set(range(*found)) <= common
    assert (overlap(second, first) is None) == (found is None)
