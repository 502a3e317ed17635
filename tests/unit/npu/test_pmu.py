"""The performance monitoring unit, through the register window."""

import pytest

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.targets import families
from ethosu_sdk.npu.machine import Counters
from ethosu_sdk.npu.pmu import pmu_of
from ethosu_sdk.npu.timing.pipeline import Stalls
from tests.unit.npu.window import ADDITION, CMD, REGIONCFG, RESET, Bench, copy, copying

PMCR, CNTENSET, CNTENCLR, OVSSET, OVSCLR, INTSET, INTCLR = range(0x180, 0x19C, 4)
CCNTR, CCNTR_HI, CCNTR_CFG = 0x1A0, 0x1A4, 0x1A8
EVCNTR, EVTYPER = 0x300, 0x380
ENABLE, EVENT_RESET, CYCLE_RESET = 1, 2, 4
CYCLE_BIT = 1 << 31
AXI_CHAN = 0x1AC
CYCLE, NPU_ACTIVE, NPU_IDLE, MAC_ACTIVE = 17, 35, 32, 48
AXI0_READ, AXI0_WRITE, AXI1_READ, AXI1_WRITE = 130, 135, 386, 391


def counted(bench: Bench, *events: int) -> list[int]:
    """What the event counters hold after one job."""
    bench.device.write32(PMCR, ENABLE | EVENT_RESET | CYCLE_RESET)
    for index, event in enumerate(events):
        bench.device.write32(EVTYPER + 4 * index, event)
    bench.device.write32(CNTENSET, CYCLE_BIT | 0xF)
    bench.run()
    return [bench.device.read32(EVCNTR + 4 * index) for index in range(len(events))]


def cycles(bench: Bench) -> int:
    return bench.device.read32(CCNTR_HI) << 32 | bench.device.read32(CCNTR)


def test_there_are_four_event_counters(bench: Bench) -> None:
    assert bench.device.read32(PMCR) == 4 << 11
    for index in range(4):
        bench.device.write32(EVTYPER + 4 * index, 0xFFFF_FF00 | index)
        bench.device.write32(EVCNTR + 4 * index, 0x8000_0000 | index)
    assert [bench.device.read32(EVTYPER + 4 * index) for index in range(4)] == [0x300, 0x301, 0x302, 0x303]
    assert [bench.device.read32(EVCNTR + 4 * index) for index in range(4)] == [
        0x8000_0000 | n for n in range(4)
    ]


def test_cycles_are_those_of_the_jobs(bench: Bench) -> None:
    found = counted(bench, CYCLE, NPU_ACTIVE, 0, 83)
    total = bench.device.jobs[-1].counters.total_cycles
    assert total > 0
    assert found == [total, total, 0, 0]  # an event that is not modelled counts nothing
    assert cycles(bench) == total
    first = counted(bench, CYCLE)[0]
    bench.run()
    assert bench.device.read32(EVCNTR) == 2 * first
    assert cycles(bench) == 2 * first


@pytest.mark.parametrize("disabled", ["all", "events", "cycles"])
def test_counters_that_are_not_enabled_stand_still(bench: Bench, disabled: str) -> None:
    bench.device.write32(EVTYPER, CYCLE)
    bench.device.write32(CNTENSET, CYCLE_BIT | 1)
    bench.device.write32(PMCR, 0 if disabled == "all" else ENABLE)
    bench.device.write32(CNTENCLR, {"all": 0, "events": 1, "cycles": CYCLE_BIT}[disabled])
    bench.run()
    assert (bench.device.read32(EVCNTR) > 0) == (disabled == "cycles")
    assert (cycles(bench) > 0) == (disabled == "events")


def test_set_and_clear_registers_are_two_views_of_the_same_bits(bench: Bench) -> None:
    for setter, clearer in ((CNTENSET, CNTENCLR), (OVSSET, OVSCLR), (INTSET, INTCLR)):
        bench.device.write32(setter, 0xFFFF_FFFF)
        assert bench.device.read32(setter) == bench.device.read32(clearer) == CYCLE_BIT | 0xF
        bench.device.write32(clearer, 0x5)
        assert bench.device.read32(setter) == bench.device.read32(clearer) == CYCLE_BIT | 0xA
        bench.device.write32(clearer, 0xFFFF_FFFF)
        assert bench.device.read32(setter) == 0


def test_event_counters_overflow_at_32_bits(bench: Bench) -> None:
    total = counted(bench, CYCLE)[0]
    bench.device.write32(EVCNTR, 0x1_0000_0000 - total)
    bench.device.write32(EVCNTR + 4, 0xFFFF_FFFF)
    bench.device.write32(EVTYPER + 4, 0)
    bench.run()
    assert bench.device.read32(EVCNTR) == 0
    assert bench.device.read32(EVCNTR + 4) == 0xFFFF_FFFF  # counts nothing, so it stays
    assert bench.device.read32(OVSSET) == 1
    bench.device.write32(OVSCLR, 1)
    bench.run()
    assert (bench.device.read32(EVCNTR), bench.device.read32(OVSSET)) == (total, 0)


def test_the_cycle_counter_has_48_bits(bench: Bench) -> None:
    total = counted(bench, CYCLE)[0]
    bench.device.write32(CCNTR, 0xFFFF_FFFF)
    bench.device.write32(CCNTR_HI, 0x7FFE)
    bench.run()
    assert cycles(bench) == 0x7FFE_FFFF_FFFF + total  # carries into the upper word
    assert bench.device.read32(OVSSET) == 0
    bench.device.write32(CCNTR, 0xFFFF_FFFF)
    bench.device.write32(CCNTR_HI, 0xFFFF_FFFF)
    assert bench.device.read32(CCNTR_HI) == 0xFFFF
    bench.run()
    assert cycles(bench) == total - 1
    assert bench.device.read32(OVSSET) == CYCLE_BIT


@pytest.mark.parametrize(("bit", "events", "cycle"), [(EVENT_RESET, True, False), (CYCLE_RESET, False, True)])
def test_counters_are_reset_apart(bench: Bench, bit: int, events: bool, cycle: bool) -> None:
    counted(bench, CYCLE)
    bench.device.write32(PMCR, ENABLE | bit)
    assert (bench.device.read32(EVCNTR) == 0) == events
    assert (cycles(bench) == 0) == cycle
    assert bench.device.read32(PMCR) & (EVENT_RESET | CYCLE_RESET) == 0


def test_beats_are_bytes_over_the_port_of_their_region(bench: Bench) -> None:
    """Two operands of 64 bytes and a result of 64 in region 1, and the commands."""
    commands = -(-len(ADDITION) // 8)
    events = (AXI0_READ, AXI0_WRITE, AXI1_READ, AXI1_WRITE)
    assert counted(bench, *events) == [16 + commands, 8, 0, 0]
    bench.device.write32(REGIONCFG, 0b10 << 2)  # region 1 on port 1
    assert counted(bench, *events) == [commands, 0, 16, 8]


def test_a_reset_npu_and_a_failed_job_count_nothing(bench: Bench) -> None:
    assert counted(bench, CYCLE)[0] > 0
    bench.device.write32(RESET, 0)
    assert [bench.device.read32(offset) for offset in (EVCNTR, EVTYPER, CNTENSET, CCNTR)] == [0] * 4
    bench.device.write32(PMCR, ENABLE)
    bench.device.write32(EVTYPER, CYCLE)
    bench.device.write32(CNTENSET, 1)
    bench.prepare(ADDITION, 0x4000_0000)
    bench.device.write32(CMD, 1)
    assert bench.device.read32(EVCNTR) == 0


def test_an_enabled_overflow_raises_the_pmu_interrupt(bench: Bench) -> None:
    counted(bench, CYCLE)
    bench.device.write32(EVCNTR, 0xFFFF_FFFF)
    bench.device.write32(INTSET, 1)
    assert bench.run() & 1 << 6
    bench.device.write32(OVSCLR, 1)
    bench.device.write32(CMD, 2)
    assert not bench.run() & 1 << 6


@pytest.mark.parametrize(
    ("offset", "value", "match"),
    [
        (PMCR, ENABLE | 8, "PMU_MASK"),  # mask_en
        (CCNTR_CFG, MAC_ACTIVE, "PMCCNTR_CFG"),
        (AXI_CHAN, 1 << 10, "one AXI channel"),  # bw_ch_sel_en
    ],
)
def test_what_cannot_be_counted_is_refused_before_the_job(
    bench: Bench, offset: int, value: int, match: str
) -> None:
    bench.device.write32(PMCR, ENABLE)
    bench.device.write32(EVTYPER, AXI0_READ)
    bench.device.write32(CNTENSET, CYCLE_BIT | 1)
    bench.device.write32(offset, value)
    with pytest.raises(SimulationError, match=match):
        bench.run()
    assert bench.device.jobs == []
    bench.device.write32(CNTENCLR, 0xFFFF_FFFF)
    bench.run()  # nobody counts: nothing is wrong
    assert len(bench.device.jobs) == 1


@pytest.mark.parametrize(
    ("npu", "events", "counters"), [("ethos-u55", 74, 4), ("ethos-u65", 74, 4), ("ethos-u85", 96, 8)]
)
def test_the_event_tables_have_every_number_once(npu: str, events: int, counters: int) -> None:
    kind = pmu_of(npu)
    assert len({event.name for event in kind.events.values()}) == len(kind.events) == events
    assert all(0 <= number < 1 << 10 and event.number == number for number, event in kind.events.items())
    assert kind.event_counters == counters >= len(kind.default_events)
    defaults = {kind.events[number].name: number for number in kind.default_events}
    assert defaults == families()[npu].default_events


@pytest.mark.parametrize(
    ("npu", "names"),
    [
        ("ethos-u55", {130: "AXI0_RD_DATA_BEAT_RECEIVED", 391: "AXI1_WR_DATA_BEAT_WRITTEN", 433: "ECC_SB1"}),
        ("ethos-u65", {130: "AXI0_RD_DATA_BEAT_RECEIVED", 391: "AXI1_WR_DATA_BEAT_WRITTEN", 433: "ECC_SB1"}),
        (
            "ethos-u85",
            {
                52: "MAC_STALLED_BY_W_OR_ACC",
                123: "WD_TRANS_WB3",
                130: "SRAM_RD_DATA_BEAT_RECEIVED",
                135: "SRAM_WR_DATA_BEAT_WRITTEN",
                181: "ECC_AO_LUT",
                386: "EXT_RD_DATA_BEAT_RECEIVED",
                391: "EXT_WR_DATA_BEAT_WRITTEN",
            },
        ),
    ],
)
def test_events_have_the_names_of_their_family(npu: str, names: dict[int, str]) -> None:
    common = {17: "CYCLE", 32: "NPU_IDLE", 35: "NPU_ACTIVE", 48: "MAC_ACTIVE", 80: "WD_ACTIVE"}
    found = pmu_of(npu).events
    assert {number: found[number].name for number in (*common, *names)} == common | names


@pytest.mark.parametrize("npu", families())
def test_only_what_is_modelled_can_be_other_than_zero_and_the_rest_has_a_reason(npu: str) -> None:
    beats = {(port, way): 64 for port in (0, 1) for way in (False, True)}
    counters = Counters(1000, 100, 1 << 20, 10, 50, Stalls(1, 2, 4), {8: 60, 16: 30, 32: 10}, beats=beats)
    for number, event in pmu_of(npu).events.items():
        assert (pmu_of(npu).value(number, counters) > 0) == event.modelled, event.name
        assert bool(event.reason) is not event.modelled, event.name


@pytest.mark.parametrize("npu", families())
def test_stalls_and_widths_have_the_numbers_of_the_event_table(npu: str) -> None:
    counters = Counters(mac_cycles=35, stalls=Stalls(1, 2, 4), mac_cycles_by_bits={8: 16, 32: 8, 16: 11})
    kind = pmu_of(npu)
    values = {row.name: kind.value(row.number, counters) for row in kind.events.values() if row.modelled}
    assert {name: value for name, value in values.items() if value} == {
        "MAC_ACTIVE": 35,
        "MAC_STALLED_BY_ACC": 2,
        "MAC_STALLED_BY_IB": 4,
        **(
            {"MAC_STALLED_BY_W": 1, "MAC_STALLED_BY_W_OR_ACC": 3}
            if npu == "ethos-u85"
            else {
                "MAC_STALLED_BY_WD": 1,
                "MAC_STALLED_BY_WD_ACC": 3,
                "MAC_ACTIVE_8BIT": 16,
                "MAC_ACTIVE_16BIT": 11,
                "MAC_ACTIVE_32BIT": 8,
            }
        ),
    }


@pytest.mark.parametrize(("npu", "width"), [("ethos-u55", 8), ("ethos-u65", 16), ("ethos-u85", 16)])
def test_a_beat_is_as_wide_as_the_port(npu: str, width: int) -> None:
    kind = pmu_of(npu)
    counters = Counters(beats={(1, True): 7})
    assert kind.value(391, counters) == 7
    assert kind.value(386, counters) == kind.value(130, counters) == kind.value(135, counters) == 0
    assert kind.events[391].beat_bytes == width
    assert kind.events[391].unit == "beats"
    assert kind.events[48].beat_bytes == 0


# --- Ethos-U85: the same registers elsewhere, and twice as many counters


def test_counters_of_ethos_u85_are_eight_at_0x1300_and_overflow() -> None:
    bench = copying("ethos-u85", 256)
    assert bench.device.read32(0x1180) == 8 << 11
    for index in range(8):
        bench.device.write32(0x1380 + 4 * index, 0xFFFF_FF00 | index)
        bench.device.write32(0x1300 + 4 * index, 0x8000_0000 | index)
    assert [bench.device.read32(0x1380 + 4 * n) for n in range(8)] == [0xF300 | n for n in range(8)]
    assert [bench.device.read32(0x1300 + 4 * n) for n in range(8)] == [0x8000_0000 | n for n in range(8)]
    for setter in (0x1184, 0x118C, 0x1194):
        bench.device.write32(setter, 0xFFFF_FFFF)
        assert bench.device.read32(setter) == bench.device.read32(setter + 4) == CYCLE_BIT | 0xFF
        bench.device.write32(setter + 4, 0x55)
        assert bench.device.read32(setter) == bench.device.read32(setter + 4) == CYCLE_BIT | 0xAA
    bench = copying("ethos-u85", 256)
    bench.device.write32(0x1180, ENABLE)
    bench.device.write32(0x11A8, NPU_IDLE << 16 | NPU_ACTIVE)
    bench.device.write32(0x1184, CYCLE_BIT | 0xFF)
    for index in range(8):
        bench.device.write32(0x1380 + 4 * index, CYCLE)
    bench.run(copy())
    total = bench.device.jobs[-1].counters.total_cycles
    assert total > 0
    assert [bench.device.read32(0x1300 + 4 * n) for n in range(8)] == [total] * 8
    assert bench.device.read32(0x11A4) << 32 | bench.device.read32(0x11A0) == total
    bench.device.write32(0x131C, 0xFFFF_FFFF)
    bench.device.write32(0x1194, 1 << 7)
    assert bench.run(copy()) & 1 << 6  # pmu_irq_raised
    assert bench.device.read32(0x118C) == 1 << 7
    assert bench.device.read32(0x131C) == total - 1
    bench = copying("ethos-u85", 256)
    bench.device.write32(0x1180, ENABLE)
    bench.device.write32(0x1184, 1)
    bench.device.write32(0x1380, 1 << 12 | MAC_ACTIVE)
    with pytest.raises(SimulationError, match="PMEVTYPER0"):
        bench.run(copy())
