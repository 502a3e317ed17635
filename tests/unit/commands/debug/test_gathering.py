"""Tensors put together from what operations write, with places worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.aot.vela.written_tensors import WrittenTensor
from ethosu_sdk.npu import Written
from ethosu_sdk.npu.operation import FeatureMap, Kind
from ethosu_sdk.steps.debug.gathering import gather
from tests.unit.npu.operations import FAR, INT8, dense, operation

BASE = 0x100
WHOLE = np.arange(4 * 3 * 20, dtype=np.int64).reshape(1, 4, 3, 20).astype(np.int8)


def tensor(**changes: object) -> WrittenTensor:
    plain = WrittenTensor("t", (1, 4, 3, 20), "int8", False, (BASE, BASE + 4 * 3 * 20), (0, 8))
    return replace(plain, **changes)  # type: ignore[arg-type]


def nhwc(address: int) -> FeatureMap:
    return replace(dense(address, (4, 3, 20)), stride_c=1)


def bricks(address: int) -> FeatureMap:
    """Two bricks of 16 channels, three columns: 48 bytes to the next brick, 96 to the next row."""
    return FeatureMap(1, (address, 0, 0, 0), FAR, FAR, FAR, 96, 16, 48, INT8, True, 0)


def written(offset: int, ofm: FeatureMap, values: NDArray[np.int8]) -> Written:
    _, height, width, depth = values.shape
    made = operation(Kind.POOL, (height, width, depth), ofm, ofm, offset=offset)
    return Written(made, values)


def test_stripes_of_rows_and_of_channels() -> None:
    rows = [written(0, nhwc(BASE), WHOLE[:, :1]), written(8, nhwc(BASE + 60), WHOLE[:, 1:])]
    (found,) = gather(rows, [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)
    assert found.offsets == (0, 8)
    channels = [written(0, nhwc(BASE), WHOLE[..., :7]), written(8, nhwc(BASE + 7), WHOLE[..., 7:])]
    (found,) = gather(channels, [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_bricks_whose_last_one_is_not_full() -> None:
    owner = tensor(bricks=True, span=(BASE, BASE + 4 * 96))
    parts = [written(0, bricks(BASE), WHOLE[..., :16]), written(8, bricks(BASE + 48), WHOLE[..., 16:])]
    (found,) = gather(parts, [owner])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_a_buffer_that_holds_two_rows_at_a_time() -> None:
    owner = tensor(bricks=True, span=(BASE, BASE + 2 * 96), offsets=(0, 4, 8, 12))
    parts = [written(4 * row, bricks(BASE + row % 2 * 96), WHOLE[:, row : row + 1]) for row in range(4)]
    (found,) = gather(parts, [owner])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_two_tiles() -> None:
    ofm = replace(nhwc(BASE), bases=(BASE, 0, BASE + 120, 0), height0=2)
    right = replace(ofm, bases=(BASE + 10, 0, BASE + 130, 0))
    (found,) = gather([written(0, ofm, WHOLE[..., :10]), written(8, right, WHOLE[..., 10:])], [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_the_last_pass_of_a_loop_is_kept() -> None:
    old = written(0, nhwc(BASE), np.zeros_like(WHOLE))
    new = [written(0, nhwc(BASE), WHOLE[:, :2]), written(8, nhwc(BASE + 120), WHOLE[:, 2:])]
    (found,) = gather([old, *new], [tensor()])
    np.testing.assert_array_equal(found.values, WHOLE)


def test_steps_that_lie_elsewhere_are_inner_ones() -> None:
    inner = written(0, nhwc(BASE + 0x1000), WHOLE)
    last = written(8, nhwc(BASE), WHOLE)
    (found,) = gather([inner, last], [tensor(offsets=(8,))])
    assert (found.inner, found.offsets) == (1, (8,))
    steps = [written(0, nhwc(BASE), WHOLE[:, :2]), written(8, nhwc(BASE + 120), WHOLE[:, 2:])]
    (found,) = gather(steps, [tensor(offsets=(8,))])  # of many operations, Vela names the last
    assert (found.inner, found.offsets) == (0, (0, 8))
    np.testing.assert_array_equal(found.values, WHOLE)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([written(0, nhwc(BASE), WHOLE[:, :2])], "50.0%"),
        ([written(0, nhwc(BASE - 60), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "outside"),
        ([written(0, nhwc(BASE + 180), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "outside"),
        ([written(0, bricks(BASE), WHOLE[:, :2]), written(8, nhwc(BASE), WHOLE)], "another layout"),
    ],
    ids=["a half", "before", "behind", "layout"],
)
def test_what_does_not_fit_has_no_values_and_a_reason(parts: list[Written], reason: str) -> None:
    (found,) = gather(parts, [tensor()])
    assert found.values is None
    assert reason in found.reason


def test_without_a_debug_database_each_operation_is_an_entry() -> None:
    rows = [written(0, nhwc(BASE), WHOLE[:, :1]), written(8, nhwc(BASE + 60), WHOLE[:, 1:])]
    assert [(row.name, row.offsets) for row in gather(rows, [])] == [("", (0,)), ("", (8,))]
