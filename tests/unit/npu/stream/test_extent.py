"""How far command streams write, against sums worked out by hand."""

import pytest

from ethosu_sdk.npu.program import written_bytes
from tests.unit.npu.machine import U55_128
from tests.unit.npu.streams import (
    BRICKS,
    DMA_START,
    ELEMENTWISE,
    UNSCALED,
    Setting,
    operands,
    stream,
    transfer,
)

SHAPE = (4, 5, 20)


def add(changes: dict[str, Setting], extra: int = 0) -> bytes:
    """An addition whose OFM is at 0x1000 of region 2, with some registers changed."""
    registers: dict[str, Setting] = {
        **operands((0x8000, 0x9000, 0x1000), SHAPE, extra=extra | 1 << 8),
        **UNSCALED,
        "ACTIVATION": 0,
        "OFM_REGION": 2,
        **changes,
    }
    return stream((registers, ELEMENTWISE, 1))


@pytest.mark.parametrize(
    ("changes", "extra", "end"),
    [
        ({}, 0, 0x1000 + 4 * 5 * 20),
        ({"OFM_STRIDE_Y": 200}, 0, 0x1000 + 3 * 200 + 5 * 20),  # rows with gaps
        ({"OFM_STRIDE_Y": -200}, 0, 0x1000 + 5 * 20),  # rows upside down
        # Bricks: the second one holds four channels, the last element of the first one lies further behind.
        ({"OFM_STRIDE_C": 80, "OFM_STRIDE_Y": 160}, BRICKS, 0x1000 + 3 * 160 + 4 * 16 + 80 + 4),
        ({"OFM_STRIDE_C": 4, "OFM_STRIDE_Y": 160}, BRICKS, 0x1000 + 3 * 160 + 4 * 16 + 16),
        # Two tiles: rows 2 and 3 lie elsewhere.
        ({"OFM_HEIGHT0_M1": 1, "OFM_BASE2": 0x4000}, 0, 0x4000 + 2 * 5 * 20),
        ({"OFM_HEIGHT0_M1": 1, "OFM_BASE2": 0x10}, 0, 0x1000 + 2 * 5 * 20),
        ({"OFM_WIDTH0_M1": 2, "OFM_BASE1": 0x4000}, 0, 0x4000 + 3 * 100 + 2 * 20),
    ],
)
def test_block_operations(changes: dict[str, Setting], extra: int, end: int) -> None:
    assert written_bytes(add(changes, extra), U55_128) == {2: end}


def test_copies_count_where_they_go() -> None:
    copy = transfer((0, 0x9_0000), (2, 0x800), 0x840)
    parts = [(copy, DMA_START, 0), ({"DMA0_DST_REGION": 1, "DMA0_DST": 0}, DMA_START, 0)]
    assert written_bytes(stream(*parts), U55_128) == {2: 0x1040, 1: 0x840}
    assert written_bytes(stream(*parts)[:-4] + add({}), U55_128) == {2: 0x1000 + 400, 1: 0x840}
    assert written_bytes(stream((transfer((0, 0), (1 << 8, 0), 256), DMA_START, 0)), U55_128) == {}
