"""Ethos-U85's chaining buffers: an operation hands its OFM to the next ones without memory."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.npu.errors import BusError, UnsupportedCommand
from tests.tables import each
from tests.unit.npu.machine import U85_256, place, run, taken
from tests.unit.npu.streams import (
    CONV,
    ELEMENTWISE,
    GLOBAL_SCALE,
    NATURAL_85,
    POOL,
    STOP,
    UNSCALED_85,
    Setting,
    branch,
    chained,
    feature_map,
    ofm,
    stream,
)

MUL, ADD, SUB = range(3)
SUM, NONE = 3, 4
IFM_BASE, IFM2_BASE, OFM_BASE = 0x1000, 0x2000, 0x3000
SHAPE = (2, 3, 4)
COUNT = 24
Operation = tuple[dict[str, Setting], int, int]

A = np.arange(24, dtype=np.int64) * 5 - 60
B = np.random.default_rng(2).integers(-50, 50, 24)


def elementwise(mode: int, changes: dict[str, Setting], bits: int = 8, ofm_bits: int = 8) -> Operation:
    """From two feature maps in memory to a third, nothing scaled."""
    registers: dict[str, Setting] = {
        **feature_map("IFM", IFM_BASE, SHAPE, bits),
        **feature_map("IFM2", IFM2_BASE, SHAPE, bits),
        **ofm(OFM_BASE, SHAPE, ofm_bits, GLOBAL_SCALE),
        "IFM_BROADCAST": 0,
        "IFM2_BROADCAST": 0,
        **UNSCALED_85,
        "ACTIVATION": 0 if ofm_bits == 8 else 1 << 12,
        "ACC_FORMAT": 0,
        **changes,
    }
    return registers, ELEMENTWISE, mode


def clipped(values: NDArray[np.int64]) -> list[int]:
    found: list[int] = np.clip(values, -128, 127).tolist()
    return found


def run_on(*operations: Operation) -> NDArray[np.uint8]:
    scratch = place((IFM_BASE, A.astype(np.int8)), (IFM2_BASE, B.astype(np.int8)))
    run(stream(*operations), scratch, config=U85_256)
    return scratch


@each("buffer", [0, 1, 3])
@each("prefix", ["IFM", "IFM2"])
def test_either_operand_can_come_from_a_buffer(buffer: int, prefix: str) -> None:
    """(a + b) - b, or a - (a + b), with the sum clipped to eight bits between."""
    first = elementwise(ADD, chained("OFM", buffer))
    second = elementwise(SUB, chained(prefix, buffer))
    scratch = run_on(first, second)
    between = np.clip(A + B, -128, 127)
    expected = between - B if prefix == "IFM" else A - between
    assert taken(scratch, OFM_BASE, COUNT, "<i1") == clipped(expected)


def test_buffers_are_apart_and_may_be_read_and_written_again() -> None:
    first = elementwise(ADD, chained("OFM", 0))
    second = elementwise(SUB, chained("OFM", 1))
    third = elementwise(SUB, {**chained("IFM", 0), **chained("IFM2", 1)})
    before = place((IFM_BASE, A.astype(np.int8)), (IFM2_BASE, B.astype(np.int8)))
    scratch = run_on(first, second, third)
    expected = np.clip(A + B, -128, 127) - np.clip(A - B, -128, 127)
    assert taken(scratch, OFM_BASE, COUNT, "<i1") == clipped(expected)
    scratch[OFM_BASE : OFM_BASE + COUNT] = 0
    assert (scratch == before).all()
    first = elementwise(ADD, chained("OFM", 2))
    second = elementwise(ADD, {**chained("IFM", 2), **chained("IFM2", 2), **chained("OFM", 2)})
    third = elementwise(SUB, chained("IFM", 2))
    scratch = run_on(first, second, third)
    doubled = np.clip(2 * np.clip(A + B, -128, 127), -128, 127)
    assert taken(scratch, OFM_BASE, COUNT, "<i1") == clipped(doubled - B)


def test_buffers_hold_the_precision_of_the_ofm() -> None:
    """Products of 16 bits, halved; with eight bits between, they would be clipped."""
    first = elementwise(MUL, chained("OFM", 1, 32) | {"ACTIVATION": 1 << 12})
    second = elementwise(ADD, {**chained("IFM", 1, 32), "OFM_SCALE": (1, 7 | NATURAL_85)})
    scratch = run_on(first, second)
    expected = (A * B + B + 64) >> 7
    assert taken(scratch, OFM_BASE, COUNT, "<i1") == clipped(expected)
    assert int(abs(A * B).max()) > 128


def test_zero_points_belong_to_each_reader_and_memory_to_the_rest() -> None:
    first = elementwise(ADD, {**chained("OFM", 1), "OFM_ZERO_POINT": 7})
    second = elementwise(SUB, {**chained("IFM", 1), "IFM_ZERO_POINT": 7})
    third_input = np.clip(A + B + 7, -128, 127) - 7
    assert taken(run_on(first, second), OFM_BASE, COUNT, "<i1") == clipped(third_input - B)
    with pytest.raises(BusError):
        run_on(elementwise(ADD, {**chained("OFM", 1), "IFM_REGION": 6}))


def test_pools_hand_over_as_well() -> None:
    """NONE takes the values from IFM2, as accumulators: here they come from a buffer."""
    first = elementwise(ADD, chained("OFM", 1, 32) | {"ACTIVATION": 1 << 12})
    pool: dict[str, Setting] = {
        **chained("IFM2", 1, 32),
        "ACC_FORMAT": 2 << 4,
        "OFM_SCALE": (1, 1 | NATURAL_85),
    }
    second = (elementwise(ADD, pool)[0], POOL, NONE)
    assert taken(run_on(first, second), OFM_BASE, COUNT, "<i1") == clipped((A + B + 1) >> 1)


def test_matrices_can_come_from_a_buffer() -> None:
    """MATMUL: each row's values times the row's own matrix, which an addition just made."""
    first = elementwise(ADD, chained("OFM", 1))
    product: dict[str, Setting] = {
        **chained("IFM2", 1),
        **ofm(OFM_BASE, (2, 3, 3), 32, GLOBAL_SCALE),
        "ACTIVATION": 1 << 12,
        "IFM_DEPTH_M1": 3,
    }
    second = (elementwise(ADD, product)[0], CONV, 1)
    between = np.clip(A + B, -128, 127).reshape(SHAPE)
    values = A.reshape(SHAPE)
    expected = [
        sum(int(values[y, x, k]) * int(between[y, n, k]) for k in range(4))
        for y in range(2)
        for x in range(3)
        for n in range(3)
    ]
    assert taken(run_on(first, second), OFM_BASE, 18, "<i4") == expected


def test_buffers_outlive_branches() -> None:
    first = stream(elementwise(ADD, chained("OFM", 1)), stop=False)
    second = stream(elementwise(SUB, chained("IFM", 1)), stop=False)
    scratch = place((IFM_BASE, A.astype(np.int8)), (IFM2_BASE, B.astype(np.int8)))
    run(first + branch(len(first) + 8) + second + STOP, scratch, config=U85_256)
    assert taken(scratch, OFM_BASE, COUNT, "<i1") == clipped(np.clip(A + B, -128, 127) - B)


@each("prefix", ["IFM", "IFM2"])
@each(
    ("before", "buffer", "bits"),
    [
        (None, 0, 8),  # nothing was written
        (1, 0, 8),  # another buffer was
        (1, 1, 16),  # elements of another size
    ],
)
def test_buffers_that_do_not_hold_the_feature_map_are_refused(
    prefix: str, before: int | None, buffer: int, bits: int
) -> None:
    operations = [] if before is None else [elementwise(ADD, chained("OFM", before))]
    with pytest.raises(UnsupportedCommand, match="does not hold") as raised:
        run_on(*operations, elementwise(SUB, chained(prefix, buffer, bits)))
    assert (raised.value.name, raised.value.value) == ("chaining buffer", buffer)


def test_buffers_of_another_shape_or_run_are_refused() -> None:
    other: dict[str, Setting] = {"OFM_HEIGHT_M1": 2, "OFM_WIDTH_M1": 1}  # as many elements
    with pytest.raises(UnsupportedCommand, match="does not hold"):
        run_on(elementwise(ADD, chained("OFM", 0)), elementwise(SUB, {**chained("IFM", 0), **other}))
    run_on(elementwise(ADD, chained("OFM", 0)))
    with pytest.raises(UnsupportedCommand, match="does not hold"):
        run_on(elementwise(SUB, chained("IFM", 0)))
