"""The register window: identification, jobs, errors as STATUS shows them, reset and interrupt."""

import numpy as np
import pytest

from ethosu_sdk.npu.errors import UnsupportedCommand
from tests.tables import each
from tests.unit.npu.streams import ELEMENTWISE, STOP, one, stream
from tests.unit.npu.window import (
    ADDITION,
    ARENA,
    BASEP,
    BUS_STATUS,
    CLEAR_IRQ,
    CMD,
    END_REACHED,
    IRQ_RAISED,
    OUT,
    PARSE_ERROR,
    PROT,
    Q_ENABLES,
    QBASE,
    QREAD,
    QSIZE,
    RAM_BASE,
    REGIONCFG,
    RESET,
    RUN,
    STATUS,
    A,
    Bench,
    add,
)


@each("offset", [0x34, 0x60, 0xC0, 0x100, 0x200, 0x390])
def test_registers_that_do_not_exist_read_as_zero(bench: Bench, offset: int) -> None:
    bench.device.write32(offset, 0xFFFF_FFFF)
    assert bench.device.read32(offset) == 0


def test_a_job_and_its_interrupt(bench: Bench) -> None:
    assert not bench.device.irq
    status = bench.run()
    assert status & 0xFFFF == IRQ_RAISED | END_REACHED
    assert status >> 16 == 0xFFFF  # the mask of NPU_OP_STOP
    assert bench.device.irq
    assert bench.device.read32(QREAD) == len(ADDITION)
    out = bench.ram.data[ARENA - RAM_BASE + OUT :][:64].view("<i4")
    assert out.tolist() == list(range(1000, 1016))
    (job,) = bench.device.jobs
    assert (job.status, job.error) == (status, "")
    assert [row.name for row in job.operations] == ["ELEMENTWISE_ADD"]
    assert job.counters.total_cycles > 0
    bench.device.write32(CMD, Q_ENABLES)
    assert bench.device.irq
    bench.device.write32(CMD, CLEAR_IRQ | Q_ENABLES)
    assert not bench.device.irq
    assert not bench.device.read32(STATUS) & IRQ_RAISED
    assert bench.device.read32(CMD) & Q_ENABLES == Q_ENABLES
    assert bench.run() & IRQ_RAISED
    assert len(bench.device.jobs) == 2


def test_a_reset_clears_registers_and_errors(bench: Bench) -> None:
    bench.run()
    bench.device.write32(REGIONCFG, 0x5555)
    bench.device.write32(RESET, 0b11)
    assert bench.device.read32(STATUS) == 0
    assert not bench.device.irq
    assert bench.device.read32(PROT) == 0b11
    for offset in (QBASE, QSIZE, QREAD, REGIONCFG, BASEP + 8):
        assert bench.device.read32(offset) == 0, hex(offset)
    assert bench.device.read32(CMD) == Q_ENABLES
    bench.device.write32(RESET, 0)
    assert bench.device.read32(PROT) == 0
    assert bench.run() & END_REACHED
    assert bench.run(UNKNOWN) & PARSE_ERROR
    bench.device.write32(RESET, 0)
    assert bench.run() & 0xFF == IRQ_RAISED | END_REACHED


UNKNOWN = stream((add(), ELEMENTWISE, 1), stop=False) + one(0x3FF) + STOP


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (UNKNOWN, len(UNKNOWN) - 8),
        (ADDITION[:-4], len(ADDITION) - 4),  # no NPU_OP_STOP
        (ADDITION[:-2], len(ADDITION) - 2),  # not whole words
        (stream((add(), ELEMENTWISE, 1), stop=False)[: -3 * 4], None),  # ends before its operation
    ],
)
def test_streams_that_hardware_cannot_parse(bench: Bench, data: bytes, position: int | None) -> None:
    status = bench.run(data)
    assert status & 0xFF == IRQ_RAISED | PARSE_ERROR
    assert bench.device.irq
    assert bench.device.jobs[-1].error
    if position is not None:
        assert bench.device.read32(QREAD) == position


@pytest.mark.parametrize(
    ("base", "what"),
    [(0x6000_0008, "16"), (0x4000_0000, "no memory"), (0x6000_FFF0, "QSIZE"), (0x6001_0000, "no memory")],
)
def test_command_streams_outside_of_memory(bench: Bench, base: int, what: str) -> None:
    bench.prepare(ADDITION, base)
    bench.device.write32(CMD, RUN)
    status = bench.device.read32(STATUS)
    assert status & 0xFF == IRQ_RAISED | BUS_STATUS
    assert status >> 12 & 0xF == 0  # faulting_channel: commands
    assert what in bench.device.jobs[-1].error


@pytest.mark.parametrize("base", [ARENA + 4, 0x4000_0000, 0x6000_FFF0])
def test_regions_outside_of_memory(bench: Bench, base: int) -> None:
    """Misaligned, where there is no memory, and too close to its end."""
    bench.prepare(ADDITION)
    bench.device.write32(BASEP + 8, base)
    bench.device.write32(CMD, RUN)
    status = bench.device.read32(STATUS)
    assert status & 0xFF == IRQ_RAISED | BUS_STATUS
    assert status >> 12 & 0xF == 1  # faulting_channel: IFM
    # The operation that failed is where the queue stopped.
    assert bench.device.read32(QREAD) == len(ADDITION) - 8
    assert bench.device.jobs[-1].operations == ()


def test_a_failing_operation_names_its_channel_and_those_before_are_done(bench: Bench) -> None:
    status = bench.run(stream((add({"OFM_BASE0": 1 << 20}), ELEMENTWISE, 1)))
    assert (status & 0xFF, status >> 12 & 0xF) == (IRQ_RAISED | BUS_STATUS, 8)
    bench.device.write32(RESET, 0)
    bench.run(stream((add(), ELEMENTWISE, 1), ({"IFM_BASE0": 1 << 20}, ELEMENTWISE, 1)))
    out = bench.ram.data[ARENA - RAM_BASE + OUT :][:64].view("<i4")
    assert out.tolist() == list(range(1000, 1016))
    assert len(bench.device.jobs[-1].operations) == 1


def test_limits_of_the_model_reach_the_caller(bench: Bench) -> None:
    """They are no hardware state: nothing may take them for a result."""
    data = stream((add(), ELEMENTWISE, 10))
    with pytest.raises(UnsupportedCommand, match="ELEMENTWISE") as raised:
        bench.run(data)
    assert (raised.value.offset, raised.value.value) == (len(data) - 8, 10)
    assert not bench.device.irq


def test_regions_follow_their_base_registers(bench: Bench) -> None:
    bench.run(stream((add({"IFM_REGION": 7}), ELEMENTWISE, 1)))
    assert bench.device.read32(STATUS) & BUS_STATUS  # BASEP7 is 0: no memory there
    bench.device.write32(RESET, 0)
    bench.device.write32(BASEP + 7 * 8, ARENA + 0x40)
    bench.ram.put(ARENA + 0x40 + A, np.full(16, 5, "<i4").tobytes())
    assert bench.run(stream((add({"IFM_REGION": 7}), ELEMENTWISE, 1))) & END_REACHED
    out = bench.ram.data[ARENA - RAM_BASE + OUT :][:64].view("<i4")
    assert out.tolist() == [1005] * 16
