"""PMU events by name, and the simulators by name."""

import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.simulate import simulators
from tests.tables import each


def test_events_are_chosen_by_name_or_are_executorchs() -> None:
    assert simulators.choose_events("ethos-u55", "MAC_ACTIVE, AXI0_RD_DATA_BEAT_RECEIVED") == (0x30, 0x82)
    assert simulators.pmu_events("ethos-u65")[0x187].name == "AXI1_WR_DATA_BEAT_WRITTEN"
    assert simulators.choose_events("ethos-u85", "EXT_WR_DATA_BEAT_WRITTEN,WD_TRANS_WB3") == (0x187, 0x7B)
    assert simulators.choose_events("ethos-u55", None) == (0x82, 0x182, 0x87, 0x20)
    assert simulators.choose_events("ethos-u65", None) == (0x82, 0x182, 0x87, 0x20)
    assert simulators.choose_events("ethos-u85", None) == (0x82, 0x87, 0x182, 0x187, 0x20, 0x30, 0x50)
    assert simulators.choose_events(None, None) == ()
    with pytest.raises(UsageError) as caught:
        simulators.choose_events("ethos-u55", "mac_active")
    assert "did you mean 'MAC_ACTIVE'?" in caught.value.hint


@each(
    ("npu", "names", "message"),
    [
        ("ethos-u55", "MAC_ACTVE", "unknown PMU event 'MAC_ACTVE'"),
        ("ethos-u55", "", "unknown PMU event ''"),
        ("ethos-u55", "CYCLE,CYCLE", "given twice"),
        ("ethos-u85", "AXI0_RD_DATA_BEAT_RECEIVED", "unknown PMU event"),
        ("ethos-u55", "SRAM_RD_DATA_BEAT_RECEIVED", "unknown PMU event"),
        (None, "CYCLE", "does not use an NPU"),
        ("ethos-u99", "CYCLE", "unknown NPU 'ethos-u99'"),
    ],
)
def test_impossible_choices_are_refused(npu: str | None, names: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulators.choose_events(npu, names)


@pytest.mark.parametrize(("npu", "counters"), [("ethos-u55", 4), ("ethos-u65", 4), ("ethos-u85", 8)])
def test_events_are_grouped_by_what_can_be_counted_together(npu: str, counters: int) -> None:
    every = tuple(simulators.pmu_events(npu))
    groups = simulators.event_groups(npu, every)
    assert tuple(number for group in groups for number in group) == every
    assert [len(group) for group in groups[:-1]] == [counters] * (len(groups) - 1)
    assert simulators.event_groups(npu, every[:counters]) == (every[:counters],)
    assert simulators.event_groups(npu, ()) == simulators.event_groups(None, ()) == ()


def test_simulators_by_name_and_what_they_say_of_boards() -> None:
    assert simulators.create_simulator("qemu").name == "qemu"
    assert simulators.create_simulator("fvp", "ethos-u85").name == "fvp"
    assert simulators.FIRMWARE_SIMULATORS == ("qemu", "fvp")
    qemu = simulators.create_simulator("qemu")
    plain = qemu.fidelity(None)
    assert all(qemu.fidelity(f"ethos-u{family}").startswith(plain) for family in (55, 65, 85))
    assert "Corstone-300 with an" not in qemu.fidelity("ethos-u55") + qemu.fidelity("ethos-u65")
    assert "Corstone-300 with an Ethos-U85" in qemu.fidelity("ethos-u85")
