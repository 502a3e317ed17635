"""Programs on the machine: copies, tables, traces, counters, and configurations."""

import numpy as np
import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError, UnsupportedCommand
from tests.tables import each
from tests.unit.npu.machine import place, run, taken
from tests.unit.npu.streams import (
    DMA_START,
    ELEMENTWISE,
    POOL,
    UNSCALED,
    Setting,
    copying_pool,
    feature_map,
    stream,
    transfer,
)

SHAPE = (1, 4, 64)
IFM_BASE, OFM_BASE, TABLE = 0x1000, 0x3000, 0x4000
# Bytes of shared RAM in front of the look-up tables: 16, 24 and 48 banks of 1 KiB, less 2 KiB.
LUT = {32: 14336, 64: 14336, 128: 22528, 256: 47104}


def copy(changes: dict[str, Setting] | None = None) -> dict[str, Setting]:
    """An average pool of 1x1 that copies its IFM."""
    return {**copying_pool(IFM_BASE, OFM_BASE, SHAPE), **(changes or {})}


def to_shared_ram(target: int, length: int = 256) -> dict[str, Setting]:
    return transfer((1, TABLE), (1 << 8, target), length)


VALUES = np.arange(-128, 128).astype(np.int8)


@each("macs", LUT)
@each("slot", [0, 5])
def test_tables_lie_at_the_end_of_the_shared_ram(macs: int, slot: int) -> None:
    table = np.random.default_rng(slot).integers(-128, 128, 256).astype(np.int8)
    scratch = place((IFM_BASE, VALUES), (TABLE, table))
    data = stream(
        (to_shared_ram(LUT[macs] + 256 * slot), DMA_START, 0), (copy({"ACTIVATION": 16 + slot}), POOL, 1)
    )
    run(data, scratch, config=NpuConfig.for_target("ethos-u55", macs))
    assert taken(scratch, OFM_BASE, 256, "<i1") == table.tolist()


def test_a_table_that_was_never_loaded_shows() -> None:
    scratch = place((IFM_BASE, VALUES))
    run(stream((copy({"ACTIVATION": 16}), POOL, 1)), scratch)
    assert set(taken(scratch, OFM_BASE, 256, "<i1")) == {-91}  # 0xA5


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("DMA0_SRC", 0x1_0000),
        ("DMA0_SRC", -1),
        ("DMA0_DST", 24 * 1024 - 255),
        ("DMA0_LEN", 0x1_0000),
        ("DMA0_SRC_REGION", 6),
    ],
)
def test_copies_outside_are_bus_errors(change: str, value: int) -> None:
    with pytest.raises(BusError):
        run(stream(({**to_shared_ram(0), change: value}, DMA_START, 0)), place())


def test_copies_may_overlap_and_have_no_negative_length() -> None:
    with pytest.raises(UnsupportedCommand, match="SET_DMA0_LEN"):
        run(stream(({**to_shared_ram(0), "DMA0_LEN": -1}, DMA_START, 0)), place())
    scratch = place((0, np.arange(16, dtype=np.uint8)))
    run(stream((transfer((1, 0), (1, 4), 12), DMA_START, 0)), scratch)
    assert scratch[:16].tolist() == [0, 1, 2, 3, *range(12)]


def test_operations_run_in_order_and_see_what_the_one_before_wrote() -> None:
    add: dict[str, Setting] = {
        **copy(),
        **feature_map("IFM2", OFM_BASE, SHAPE, 8),
        "IFM2_BROADCAST": 0,
        **UNSCALED,
        "OFM_BASE0": 0x3800,
    }
    scratch = place((IFM_BASE, VALUES // 4))
    machine = run(stream((copy(), POOL, 1), (add, ELEMENTWISE, 1)), scratch)
    assert taken(scratch, 0x3800, 256, "<i1") == (VALUES // 4 * 2).tolist()
    assert [row.name for row in machine.trace] == ["POOL_AVERAGE", "ELEMENTWISE_ADD"]
    assert max(row.total_cycles for row in machine.trace) < machine.counters.total_cycles


@pytest.mark.parametrize("word", [0, 0xFFFF_FFFF, 0x0000_1806, 0x0000_1809, 0xF000_1807])
def test_unknown_configuration_words_are_errors(word: int) -> None:
    with pytest.raises(UsageError):
        NpuConfig.from_word(word)
