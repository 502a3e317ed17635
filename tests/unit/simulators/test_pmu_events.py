"""PMU events by name, and the simulators by name."""

import pytest

from ethosu_sdk import simulators
from ethosu_sdk.errors import UsageError


def test_events_are_chosen_by_name() -> None:
    # Numbers: PMU event table of the Ethos-U55 technical reference manual.
    assert simulators.choose_events("ethos-u55", "MAC_ACTIVE, AXI0_RD_DATA_BEAT_RECEIVED") == (0x30, 0x82)
    assert simulators.events("ethos-u65")[0x187].name == "AXI1_WR_DATA_BEAT_WRITTEN"


def test_the_default_is_executorchs() -> None:
    assert simulators.choose_events("ethos-u55", None) == (0x82, 0x182, 0x87, 0x20)
    assert simulators.choose_events(None, None) == ()


@pytest.mark.parametrize(
    ("npu", "names", "message"),
    [
        ("ethos-u55", "MAC_ACTVE", "unknown PMU event 'MAC_ACTVE'"),
        ("ethos-u55", "", "unknown PMU event ''"),
        ("ethos-u55", "CYCLE,CYCLE", "named twice"),
        ("ethos-u55", "CYCLE,NPU_IDLE,NPU_ACTIVE,MAC_ACTIVE,WD_ACTIVE", "has 4 counters"),
        (None, "CYCLE", "does not use an NPU"),
        ("ethos-u99", "CYCLE", "not modelled"),
    ],
)
def test_impossible_choices_are_refused(npu: str | None, names: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulators.choose_events(npu, names)


def test_a_misspelt_event_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        simulators.choose_events("ethos-u55", "mac_active")
    assert "did you mean 'MAC_ACTIVE'?" in caught.value.hint


def test_simulators_are_made_by_name() -> None:
    assert simulators.create("qemu").name == "qemu"
    assert simulators.create("auto").name == "qemu"
