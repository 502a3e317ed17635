"""Programs on the machine: copies, tables, traces, counters, and configurations."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk import vela_blocks
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.npu import NpuConfig, api
from ethosu_sdk.npu.errors import BusError, UnsupportedCommand
from tests.unit.npu.machine import U55_128, place, run, taken
from tests.unit.npu.streams import (
    DMA_START,
    ELEMENTWISE,
    POOL,
    UNSCALED,
    Setting,
    copying_pool,
    feature_map,
    one,
    stream,
    transfer,
)
from tests.unit.vela_payloads import Payload, actions, slots

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


@pytest.mark.parametrize("macs", LUT)
@pytest.mark.parametrize("slot", [0, 5])
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


def test_copies_of_a_negative_length_are_refused() -> None:
    with pytest.raises(UnsupportedCommand, match="SET_DMA0_LEN"):
        run(stream(({**to_shared_ram(0), "DMA0_LEN": -1}, DMA_START, 0)), place())


def test_copies_may_overlap() -> None:
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


def test_a_failing_operation_leaves_the_earlier_ones_done() -> None:
    scratch = place((IFM_BASE, VALUES))
    data = stream((copy(), POOL, 1), ({"OFM_BASE0": 1 << 20}, POOL, 1))
    with pytest.raises(BusError):
        run(data, scratch)
    assert taken(scratch, OFM_BASE, 256, "<i1") == VALUES.tolist()


@pytest.mark.parametrize("macs", LUT)
def test_configurations_come_back_from_their_word(macs: int) -> None:
    config = NpuConfig.for_target("ethos-u55", macs)
    assert NpuConfig.from_word(config.config_word) == config
    assert config.config_word & 0xF == macs.bit_length() - 1
    assert config.config_word >> 28 == 0
    assert config.lut_address == LUT[macs] == (config.config_word >> 8 & 0xFF) * 1024 - 2048


@pytest.mark.parametrize("word", [0, 0xFFFF_FFFF, 0x0000_1806, 0x0000_1809, 0xF000_1807])
def test_unknown_configuration_words_are_errors(word: int) -> None:
    with pytest.raises(UsageError):
        NpuConfig.from_word(word)


def payload(inputs: tuple[int, ...], outputs: tuple[int, ...], scratch_bytes: int = 0x8000) -> bytes:
    return replace(
        Payload(),
        cmd_data=actions(stream=stream((copy(), POOL, 1)).ljust(256, b"\0"), nops=3),
        scratch_size=struct.pack("<I", scratch_bytes),
        inputs=slots(inputs),
        outputs=slots(outputs),
    ).encode()


INPUT = (1, 1, 1, 1, 4, 64, 1, IFM_BASE, 1)
OUTPUT = (1, 1, 1, 1, 4, 64, 1, OFM_BASE, 1)


def test_a_payload_runs_in_one_line() -> None:
    result = api.run(payload(INPUT, OUTPUT), [VALUES])
    (output,) = result.outputs
    assert output.shape == (1, 1, 1, 1, 4, 64)
    assert output.dtype == np.int8
    assert output.reshape(-1).tolist() == VALUES.tolist()
    assert [row.name for row in result.operations] == ["POOL_AVERAGE"]


def test_runs_do_not_share_memory() -> None:
    program = api.load(payload(INPUT, OUTPUT))
    first = api.run(program, [VALUES]).outputs[0]
    api.run(program, [VALUES[::-1]])
    assert first.reshape(-1).tolist() == VALUES.tolist()


@pytest.mark.parametrize("inputs", [[], [VALUES, VALUES], [VALUES[:255]], [VALUES.astype(np.int16)]])
def test_inputs_that_do_not_fit_are_errors(
    inputs: list[np.ndarray[tuple[int, ...], np.dtype[np.int8]]],
) -> None:
    with pytest.raises(InputError):
        api.run(payload(INPUT, OUTPUT), inputs)


@pytest.mark.parametrize("end", ["input", "output"])
def test_tensors_of_the_fast_scratch_that_reach_past_it_are_errors(end: str) -> None:
    """Region 2's size is not in the payload: the run knows it."""
    far = (1, 1, 1, 1, 4, 64, 1, 0x8000 - 255, 2)
    data = payload(far, OUTPUT) if end == "input" else payload(INPUT, far)
    with pytest.raises(InputError):
        api.run(data, [VALUES])


def test_damaged_payloads_are_errors() -> None:
    good = payload(INPUT, OUTPUT)
    assert vela_blocks.parse(good).scratch_bytes == 0x8000
    for length in range(0, len(good), 7):
        with pytest.raises(InputError):
            api.load(good[:length])
    with pytest.raises(InputError):
        api.run(replace(Payload(), cmd_data=actions(stream=one(0x3FF) * 4)).encode(), [np.zeros(64, np.int8)])


def test_the_machine_needs_its_regions() -> None:
    with pytest.raises(BusError, match="region 4"):
        run(stream((copy({"IFM_REGION": 4}), POOL, 1)), place(), config=U55_128)
