"""The output stage of many sums at once, against Python's integers."""

import numpy as np
import pytest

from ethosu_sdk.npu.operation import Rounding
from ethosu_sdk.npu.ops import ChannelScaling


def exact(value: int, scale: int, shift: int, rounding: Rounding) -> int:
    """TOSA 1.0, apply_scale_32: half up, and DOUBLE another 2^30 away from zero for shifts above 31."""
    added = (1 << shift) >> 1
    if rounding is Rounding.DOUBLE and shift > 31:
        added += (1 << 30) if value >= 0 else -(1 << 30)
    return (value * scale + added) >> shift


@pytest.mark.parametrize("rounding", [Rounding.NATURAL, Rounding.DOUBLE])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(1, 1, 5), (3, 12, 16), (40, 28, 96), (2, 7, 2100)])
def test_each_sum_is_scaled_as_its_channel_says(
    rounding: Rounding, kind: type, shape: tuple[int, int, int]
) -> None:
    source, depth = np.random.default_rng(7), shape[2]
    most = 1 << (23 if kind is np.float32 else 29)
    sums = source.integers(-most, most, shape)
    sums[0, 0] = [0, -1, 1, -most, most - 1] * (depth // 5) + [0] * (depth % 5)
    bias = source.integers(-(1 << 20), 1 << 20, depth)
    shift = source.choice([0, 1, 30, 31, 32, 33, 38, 45], depth)
    scale = np.where(shift > 1, source.integers(1 << 28, 1 << 31, depth), 1)
    zero_point, clamp = int(source.integers(-128, 128)), (-100, 90)
    channels = ChannelScaling.of_scales(bias, scale, shift, rounding, zero_point)
    assert channels.holds(most)
    found = np.empty(shape, np.int8)
    channels.finish(sums.astype(kind), clamp, found)
    places = {*np.ndindex(1, 1, depth), *map(tuple, source.integers(0, shape, (500, 3)))}
    for y, x, c in places:
        value = exact(int(sums[y, x, c] + bias[c]), int(scale[c]), int(shift[c]), rounding) + zero_point
        assert found[y, x, c] == min(max(value, clamp[0]), clamp[1]), (y, x, c)


def test_sums_and_products_that_may_not_fit_are_left_to_the_checks() -> None:
    one = np.ones(1, np.int64)
    small = ChannelScaling.of_scales(one, one << 30, 38 * one, Rounding.DOUBLE, 0)
    assert small.holds((1 << 31) - 2)
    assert not small.holds((1 << 31) - 1)
    for shift, zero_point in ((62, 1), (60, 127), (63, 2), (63, -128)):  # the point itself may be too far
        large = ChannelScaling.of_scales(0 * one, one << 30, shift * one, Rounding.NATURAL, zero_point)
        assert not large.holds((1 << 31) - 1)
