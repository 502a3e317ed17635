"""The register windows of Ethos-U65 and Ethos-U85, and where they differ from Ethos-U55's (test_device.py)."""

import pytest
from ethosu import mlw_codec

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.npu.errors import WeightStreamError
from tests.tables import each
from tests.unit.npu.payloads import WORDS
from tests.unit.npu.streams import CONV, STOP, Setting, branch, feature_map, ofm, one, stream
from tests.unit.npu.window import (
    ARENA,
    AXI_EXT,
    AXI_SRAM,
    BASEP,
    BRANCH_FAULT,
    BUS_STATUS,
    CLEAR_IRQ,
    CMD,
    COND_STATUS,
    CONFIG,
    END_REACHED,
    ID,
    IDENTITY,
    IRQ_RAISED,
    LENGTH,
    MEM_ATTR,
    PARSE_ERROR,
    POWER_CTRL,
    QBASE,
    QBASE_HI,
    QCONFIG,
    QREAD,
    QUEUE,
    REGIONCFG,
    RESET,
    RUN,
    STATUS,
    STOP_REQUEST,
    WD_FAULT,
    Bench,
    copy,
    copying,
)


@each(("npu", "macs"), WORDS)
def test_a_job(npu: str, macs: int) -> None:
    bench = copying(npu, macs)
    assert not bench.device.irq
    assert bench.run(copy()) == IRQ_RAISED | END_REACHED | 0xFFFF << 16
    assert bench.device.irq
    assert bench.copied() == bytes(range(1, LENGTH + 1))
    assert bench.device.read32(QREAD) == len(copy())
    bench.device.write32(CMD, CLEAR_IRQ)
    assert not bench.device.irq


@each("target", WORDS)
def test_identification(target: tuple[str, int]) -> None:
    """Version 1.0.6 of architecture and product, or 2.0.0; the product is in bits 15:12 of ID."""
    device = copying(*target).device
    identity = {"ethos-u55": 0x1006_4001, "ethos-u65": 0x1006_6001, "ethos-u85": 0x2000_7000}[target[0]]
    assert (device.read32(CONFIG), device.read32(ID)) == (WORDS[target][0], identity)
    part = 0x82 if target[0] == "ethos-u85" else 0x81
    found = [device.read32(offset) for offset in IDENTITY]
    assert found == [part, 0xB5, 0x0B, 0x04, 0x0D, 0xF0, 0x05, 0xB1]


def test_registers_of_ethos_u85_keep_their_fields(u85: Bench) -> None:
    masks = {
        POWER_CTRL: 0x3F,
        AXI_SRAM: 0x0003_1F3F,
        AXI_EXT: 0x0003_1F3F,
        **{MEM_ATTR + 4 * n: 0xF7 for n in range(4)},
        0x11B0: 0xFFFF_0001,  # PMCLUT
    }
    for offset, mask in masks.items():
        u85.device.write32(offset, 0xFFFF_FFFF)
        assert u85.device.read32(offset) == mask, hex(offset)
    for offset in (COND_STATUS, 0x60, 0x64, 0x68, 0x6C, 0x74, 0x7C):  # read-only
        u85.device.write32(offset, 0xFFFF_FFFF)
        assert u85.device.read32(offset) == 0, hex(offset)
    u85.device.write32(RESET, 1)
    assert [u85.device.read32(offset) for offset in masks] == [0] * len(masks)


@each("offset", [0x2C, 0x34, 0x180, 0x184, 0x300, 0x380, 0x1200, 0x13C0, 0x1FFC])
def test_what_ethos_u85_does_not_have_reads_as_zero(u85: Bench, offset: int) -> None:
    u85.device.write32(offset, 0xFFFF_FFFF)
    assert u85.device.read32(offset) == 0


def test_the_window_is_8_kib_on_ethos_u85_and_4_on_the_others(u85: Bench) -> None:
    with pytest.raises(SimulationError, match="0x2000"):
        u85.device.read32(0x2000)
    with pytest.raises(SimulationError, match="0x1000"):
        copying("ethos-u65", 256).device.read32(0x1000)


@each("offset", [0x144, 0x27C, 0x400, 0x800, 0xFBC, 0x1100, 0x1114])
def test_debug_registers_are_refused(u85: Bench, offset: int) -> None:
    with pytest.raises(SimulationError, match="debug registers"):
        u85.device.read32(offset)


def beats(bench: Bench) -> list[int]:
    """Beats of one copy: read on port 0, written on port 0, read on port 1, written on port 1."""
    block, types, counters = (
        (0x1180, 0x1380, 0x1300) if bench.device.read32(CONFIG) >> 28 == 2 else (0x180, 0x380, 0x300)
    )
    bench.device.write32(block, 0b111)
    for index, event in enumerate((130, 135, 386, 391)):
        bench.device.write32(types + 4 * index, event)
    bench.device.write32(block + 4, 0xF)
    bench.run(copy())
    return [bench.device.read32(counters + 4 * index) for index in range(4)]


_COMMANDS = -(-len(copy()) // 16)
_DATA = LENGTH // 16


@pytest.mark.parametrize("macs", [256, 512])
def test_ethos_u65_routes_by_the_upper_bit_of_a_setting(macs: int) -> None:
    bench = copying("ethos-u65", macs)
    assert beats(bench) == [_COMMANDS + _DATA, _DATA, 0, 0]
    bench.device.write32(REGIONCFG, 0b01_10_00)  # region 1 on port 1, region 2 on port 0
    bench.device.write32(QCONFIG, 3)
    assert beats(bench) == [0, _DATA, _COMMANDS + _DATA, 0]


def test_ethos_u85_routes_by_mem_attr(u85: Bench) -> None:
    """A setting chooses one of four MEM_ATTR; bit 2 of that one is the port."""
    u85.device.write32(REGIONCFG, 0b11_10_00)  # regions 1 and 2: MEM_ATTR2 and MEM_ATTR3
    u85.device.write32(QCONFIG, 1)
    assert beats(u85) == [_COMMANDS + _DATA, _DATA, 0, 0]  # all MEM_ATTR are 0: SRAM
    u85.device.write32(MEM_ATTR + 12, 4)
    assert beats(u85) == [_COMMANDS + _DATA, 0, 0, _DATA]
    u85.device.write32(MEM_ATTR + 4, 0xF7 & ~4 | 4)
    u85.device.write32(MEM_ATTR + 8, 0xF7 & ~4)
    assert beats(u85) == [_DATA, 0, _COMMANDS, _DATA]


def test_a_bus_error_names_the_port_of_its_region(u85: Bench) -> None:
    u85.device.write32(REGIONCFG, 0b11_10_00)
    u85.device.write32(MEM_ATTR + 12, 4)
    status = u85.run(copy({"DMA0_DST": 1 << 20}))
    assert status & 0xFFFF == IRQ_RAISED | BUS_STATUS | 1 << 11 | 9 << 12  # EXT, memory-to-memory write
    assert "COPY_WRITE" in u85.device.jobs[-1].error
    u85.device.write32(RESET, 0)
    status = u85.run(copy({"DMA0_SRC": 1 << 20}))
    assert status & 0xFFFF == IRQ_RAISED | BUS_STATUS | 4 << 12  # SRAM, memory-to-memory read


@pytest.mark.parametrize(("npu", "macs"), [("ethos-u65", 256), ("ethos-u85", 256)])
def test_addresses_have_40_bits(npu: str, macs: int) -> None:
    """The upper word counts: what lies 4 GiB higher is not the same memory."""
    bench = copying(npu, macs)
    bench.prepare(copy())
    bench.device.write32(QBASE_HI, 0x1_01)
    assert bench.device.read32(QBASE_HI) == 1
    bench.device.write32(CMD, RUN)
    assert bench.device.read32(STATUS) & 0xFFFF == IRQ_RAISED | BUS_STATUS  # channel 0: commands
    assert "0x160000000" in bench.device.jobs[-1].error
    bench.device.write32(RESET, 0)
    bench.prepare(copy())
    bench.device.write32(BASEP + 12, 1)
    bench.device.write32(CMD, RUN)
    assert bench.device.read32(STATUS) & BUS_STATUS


@pytest.mark.parametrize("wrong", ["base", "queue"])
def test_misaligned_bases_are_bus_errors(u85: Bench, wrong: str) -> None:
    u85.prepare(copy())
    u85.device.write32(*{"base": (BASEP + 8, ARENA + 8), "queue": (QBASE, QUEUE + 4)}[wrong])
    u85.device.write32(CMD, RUN)
    assert u85.device.read32(STATUS) & 0xFF == IRQ_RAISED | BUS_STATUS
    assert "multiple of 16" in u85.device.jobs[-1].error


def test_branches_are_taken_or_faults_or_no_commands(u85: Bench) -> None:
    """Over a command that no parser takes."""
    body = copy()[: -len(STOP)]
    data = body + branch(len(body) + 12) + one(0x3FF) + STOP
    assert u85.run(data) & 0xFFFF == IRQ_RAISED | END_REACHED
    assert u85.run(body + one(0x3FF) + STOP) & 0xFFFF == IRQ_RAISED | PARSE_ERROR
    bench = copying("ethos-u65", 256)
    assert bench.run(body + branch(0) + STOP) & PARSE_ERROR
    u85 = copying("ethos-u85", 256)
    data = body + branch(1 << 20) + STOP
    status = u85.run(data)
    assert status & 0xFFFF == IRQ_RAISED | BRANCH_FAULT
    assert u85.device.read32(QREAD) == len(body)
    assert u85.copied() == bytes(range(1, LENGTH + 1))  # what comes before the branch is done
    u85.device.write32(CMD, CLEAR_IRQ | RUN)
    assert len(u85.device.jobs) == 1  # nothing more until a reset
    u85.device.write32(RESET, 0)
    assert u85.run(copy()) & END_REACHED


def test_an_unknown_condition_is_refused(u85: Bench) -> None:
    """After a copy there is no result of one element that COND_STATUS could tell of."""
    assert u85.device.read32(COND_STATUS) == 0
    u85.run(copy())
    with pytest.raises(SimulationError, match="COND_STATUS"):
        u85.device.read32(COND_STATUS)
    u85.device.write32(RESET, 0)
    assert u85.device.read32(COND_STATUS) == 0


def _convolution(data: bytes) -> bytes:
    registers: dict[str, Setting] = {
        **feature_map("IFM", 0x100, (1, 1, 8), 8),
        **ofm(0x300, (1, 1, 8), 8),
        "OFM_BLK_HEIGHT_M1": 0,
        "OFM_BLK_WIDTH_M1": 0,
        "IFM_DEPTH_M1": 7,
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_STRIDE": 0,
        "ACC_FORMAT": 0,
        "ACTIVATION": 0,
        "OFM_SCALE": (1, 0),
        "WEIGHT_REGION": 1,
        "WEIGHT_BASE": 0x1000,
        "WEIGHT_LENGTH": len(data),
        "SCALE_REGION": 1,
        "SCALE_BASE": 0x3000,
        "SCALE_LENGTH": 160,
    }
    return stream((registers, CONV, 0))


def _broken_weights() -> bytes:
    good = bytes(mlw_codec.encode([1] * 512))
    return good[: len(good) // 2] + bytes(len(good))


@pytest.mark.parametrize(("npu", "macs"), [("ethos-u55", 128), ("ethos-u65", 256)])
def test_weights_that_cannot_be_decoded_are_a_decoder_fault(npu: str, macs: int) -> None:
    bench = copying(npu, macs)
    bench.ram.put(ARENA + 0x1000, _broken_weights())
    assert bench.run(_convolution(_broken_weights())) & 0xFF == IRQ_RAISED | WD_FAULT
    assert "weight stream" in bench.device.jobs[-1].error


def test_weights_that_cannot_be_decoded_end_the_simulation_on_ethos_u85(u85: Bench) -> None:
    """It has no STATUS bit for them, and nothing may take what then comes out for a result."""
    u85.ram.put(ARENA + 0x1000, _broken_weights())
    with pytest.raises(WeightStreamError):
        u85.run(_convolution(_broken_weights()))
    assert not u85.device.irq
    assert u85.device.jobs == []


def test_stop_requests_and_the_irq_history(u85: Bench) -> None:
    u85.run(copy())
    u85.device.write32(CMD, STOP_REQUEST | CLEAR_IRQ)
    assert u85.device.read32(CMD) == STOP_REQUEST | CLEAR_IRQ  # reads as last written
    assert not u85.device.irq
    assert u85.run(copy()) & END_REACHED
    with pytest.raises(SimulationError, match="stop"):
        u85.device.write32(CMD, STOP_REQUEST | RUN)
    u85.run(copy())
    u85.device.write32(CMD, 0x00FF << 16)
    assert u85.device.read32(STATUS) >> 16 == 0xFF00
