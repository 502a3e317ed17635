"""Whatever stream the NPU is given: STATUS or an error of this package, soon, and memory intact outside."""

import struct

import numpy as np
import pytest
from ethosu import mlw_codec
from hypothesis import given, settings, strategies as st

from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu.device import Device, NpuConfig
from ethosu_sdk.npu.stream.registers import CommandType, command_types
from tests.unit.npu.streams import (
    ADDRESSES,
    CONV,
    DEPTHWISE,
    DMA_START,
    ELEMENTWISE,
    GLOBAL_SCALE,
    ONE_WORD,
    POOL,
    SCALES,
    STOP,
    UNSCALED,
    Ram,
    Setting,
    operands,
    setting,
    stream,
    transfer,
)
from tests.unit.npu.window import ARENA, BASEP, CMD, PROT, QBASE, QSIZE, QUEUE, RESET, STATUS

DEADLINE_MS = 5000
TARGETS = [("ethos-u55", 128), ("ethos-u65", 512), ("ethos-u85", 256)]
TABLES: dict[str, list[CommandType]] = {
    npu: sorted(command_types(generation).values(), key=lambda row: (row.words, row.opcode))
    for npu, generation in (("ethos-u55", "u55"), ("ethos-u65", "u55"), ("ethos-u85", "u85"))
}
# Values that registers' limits lie near.
INTERESTING = [0, 1, 2, 3, 7, 15, 16, 31, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF]
SHAPE = (4, 4, 8)
WEIGHTS = bytes(mlw_codec.encode([1, -2, 3, 4] * 1024))


def base_registers() -> dict[str, Setting]:
    """A register file with which every kind of operation runs."""
    return {
        **operands((0x100, 0x200, 0x300), SHAPE, extra=GLOBAL_SCALE),
        "IFM_DEPTH_M1": 7,
        "ACTIVATION": 0,
        "ACC_FORMAT": 0,
        **UNSCALED,
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_STRIDE": 0,
        "WEIGHT_REGION": 1,
        "WEIGHT_BASE": 0x1000,
        "WEIGHT_LENGTH": len(WEIGHTS),
        "SCALE_REGION": 1,
        "SCALE_BASE": 0x4000,
        "SCALE_LENGTH": 80,
        **transfer((1, 0x100), (1, 0x600), 64),
    }


BASE = stream((base_registers(), DMA_START, 0))[: -len(STOP)]
COPY = stream((transfer((1, 0), (1, 0x600), 64), DMA_START, 0))
OPERATIONS = (CONV, DEPTHWISE, POOL, ELEMENTWISE, DMA_START)


@st.composite
def commands(draw: st.DrawFn, npu: str = "ethos-u55") -> bytes:
    """One command that exists, with fields that are often at a limit."""
    row = draw(st.sampled_from(TABLES[npu]))
    bits = row.opcode | (0x4000 if row.words == 2 else 0)
    for field in row.fields:
        limit = (1 << (field.high - field.low + 1)) - 1
        bits |= (draw(st.sampled_from(INTERESTING) | st.integers(0, limit)) & limit) << field.low
    return struct.pack("<I" if row.words == 1 else "<Q", bits)


@st.composite
def changed_register(draw: st.DrawFn) -> bytes:
    """A register that operations read, set to a value that may well make sense."""
    name = draw(st.sampled_from([*ONE_WORD, *ADDRESSES, *SCALES]))
    small = st.integers(0, 9) | st.sampled_from([16, 32, 64, 127, 256, -1, -4, -8])
    if name in SCALES:
        return setting(name, (draw(small | st.just(1 << 30)) & 0xFFFF_FFFF, draw(st.integers(0, 63))))
    precision = st.sampled_from(
        [0x000, 0x001, 0x004, 0x005, 0x009, 0x041, 0x043, 0x101, 0x105, 0x8001, 0x8105]
    )
    return setting(name, draw(precision if name.endswith("PRECISION") else small))


@st.composite
def operations(draw: st.DrawFn) -> bytes:
    """A few registers changed, most of them a little, then an operation."""
    changes = b"".join(draw(st.lists(changed_register() | changed_register() | commands(), max_size=5)))
    return changes + struct.pack("<I", draw(st.sampled_from(OPERATIONS)) | draw(st.integers(0, 9)) << 16)


def run(data: bytes, npu: str = "ethos-u55", macs: int = 128) -> None:
    ram = Ram(data=np.zeros(0x1_0000, np.uint8))
    ram.put(ARENA, bytes(range(256)) * 16)
    ram.put(ARENA + 0x1000, WEIGHTS)
    ram.put(QUEUE, data)
    device = Device(NpuConfig.for_target(npu, macs), ram)
    device.write32(QBASE, QUEUE)
    device.write32(QSIZE, len(data))
    device.write32(BASEP + 8, ARENA)
    refused = False
    try:
        device.write32(CMD, 1)
    except SdkError:
        refused = True
    # Either the hardware's view of what happened, or none and an error.
    assert device.irq != refused
    assert bool(device.read32(STATUS) & 0b10_1011_0100) != refused
    assert len(device.jobs) == (0 if refused else 1)
    # Below its one region the NPU writes nothing.
    assert ram.data[: len(data)].tobytes() == data
    assert not ram.data[len(data) : 0x4000].any()


def test_the_base_runs() -> None:
    """So that the streams made of it reach further than their first operation."""
    for opcode in (POOL, ELEMENTWISE, DMA_START):
        run(BASE + struct.pack("<I", opcode) + STOP)


@pytest.mark.parametrize(("npu", "macs"), TARGETS)
@settings(max_examples=50, deadline=DEADLINE_MS)
@given(data=st.data())
def test_any_commands(npu: str, macs: int, data: st.DataObject) -> None:
    parts = data.draw(st.lists(commands(npu), max_size=30))
    run(b"".join(parts) + STOP, npu, macs)


@settings(max_examples=80, deadline=DEADLINE_MS)
@given(st.lists(operations(), min_size=1, max_size=3))
def test_any_operations_on_registers_that_are_set(parts: list[bytes]) -> None:
    run(BASE + b"".join(parts) + STOP)


# --- registers

WINDOWS = {"ethos-u55": 0x1000, "ethos-u65": 0x1000, "ethos-u85": 0x2000}
# Literals: the registers of a driver, by what a write of any value leaves behind.
MASKS = {
    "common": {
        QBASE: 0xFFFF_FFFF,
        0x14: 0xFF,  # QBASE_HI
        0x1C: 0x3,  # QCONFIG
        QSIZE: 0xFFFF_FFFF,
        0x3C: 0xFFFF,  # REGIONCFG
        **{BASEP + 8 * n: 0xFFFF_FFFF for n in range(8)},
        **{BASEP + 8 * n + 4: 0xFF for n in range(8)},
    },
    "u55": {0x2C: 0xFFFF_FFFF, **{0x40 + 4 * n: 0x1F3F_00F3 for n in range(4)}},
    "u85": {0x38: 0x3F, 0x50: 0x3_1F3F, 0x54: 0x3_1F3F, **{0x40 + 4 * n: 0xF7 for n in range(4)}},
}
READ_ONLY = [0x00, 0x24, 0x28, 0xFC0, 0xFD0, 0xFE0, 0xFFC]


def masks(npu: str) -> dict[int, int]:
    return MASKS["common"] | MASKS["u85" if npu == "ethos-u85" else "u55"]


@pytest.mark.parametrize(("npu", "macs"), TARGETS)
@given(data=st.data())
def test_any_register_access(npu: str, macs: int, data: st.DataObject) -> None:
    offset, value = data.draw(st.integers(0, WINDOWS[npu] - 1)), data.draw(st.integers(0, 0xFFFF_FFFF))
    device = Device(NpuConfig.for_target(npu, macs), Ram())
    found = 0
    try:
        device.write32(offset, value)
        found = device.read32(offset)
    except SdkError:
        debug = 0x400 <= offset < 0xFC0 or (npu == "ethos-u85" and 0x144 <= offset < 0x2C0)
        debug |= npu == "ethos-u85" and 0x1100 <= offset < 0x1118
        assert offset % 4 or debug or (offset == CMD and value & 0x11 == 0x11)
    assert 0 <= found <= 0xFFFF_FFFF


Access = tuple[int, int]


@st.composite
def accesses(draw: st.DrawFn, npu: str) -> Access:
    """A write to a register that a driver writes, or to any other; bases often where memory is."""
    pmu = 0x1180 if npu == "ethos-u85" else 0x180
    offset = draw(
        st.sampled_from(sorted(masks(npu)))
        | st.sampled_from([CMD, RESET, *READ_ONLY])
        | st.integers(0, 0x2C // 4).map(lambda word: pmu + 4 * word)
        | st.integers(0, WINDOWS[npu] // 4 - 1).map(lambda word: 4 * word)
    )
    addresses = st.sampled_from([QUEUE, ARENA, QUEUE + 4, 0, 0x7000_0000])
    small = st.integers(0, 64)
    return offset, draw(addresses | small | st.integers(0, 0xFFFF_FFFF))


@pytest.mark.parametrize(("npu", "macs"), TARGETS)
@settings(max_examples=50, deadline=DEADLINE_MS)
@given(data=st.data())
def test_any_sequence_of_register_writes(npu: str, macs: int, data: st.DataObject) -> None:
    """Registers keep what fits them, the interrupt follows STATUS, and a reset makes all good again."""
    ram = Ram(data=np.zeros(0x1_0000, np.uint8))
    ram.put(QUEUE, COPY)
    device = Device(NpuConfig.for_target(npu, macs), ram)
    fixed = [device.read32(offset) for offset in READ_ONLY if offset != PROT]
    kept = dict.fromkeys(masks(npu), 0)
    for offset, value in data.draw(st.lists(accesses(npu), max_size=40)):
        try:
            device.write32(offset, value)
        except SdkError:
            continue
        if offset == RESET:
            kept = dict.fromkeys(kept, 0)
            assert device.read32(PROT) == value & 3
        elif offset in kept:
            kept[offset] = value & masks(npu)[offset]
        assert {place: device.read32(place) for place in kept} == kept
        assert [device.read32(place) for place in READ_ONLY if place != PROT] == fixed
        assert device.irq == bool(device.read32(STATUS) & 2)
        assert not device.read32(STATUS) & 0b1001  # never seen running, never seen in reset
    device.write32(RESET, 1)
    ram.put(QUEUE, COPY)
    ram.put(ARENA, bytes(range(1, 65)))
    for offset, value in ((QBASE, QUEUE), (QSIZE, len(COPY)), (BASEP + 8, ARENA)):
        device.write32(offset, value)
    device.write32(CMD, 1)
    assert device.read32(STATUS) & 0xFFFF == 0x22
    assert ram.data[ARENA + 0x600 - QUEUE :][:64].tobytes() == bytes(range(1, 65))
