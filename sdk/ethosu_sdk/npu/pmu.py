"""The performance monitoring unit: its events, what this model can say about them, and its registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ethosu_sdk.errors import SimulationError
from ethosu_sdk.npu.event_table import EVENTS_U55
from ethosu_sdk.npu.machine import Counters


@dataclass(frozen=True)
class Event:
    """One PMU event. `modelled` is False for what a functional model cannot know; it then counts nothing.

    `beat_bytes` is the width of a data beat for events that count beats, else 0.
    """

    number: int
    name: str
    unit: str = "cycles"
    modelled: bool = False
    beat_bytes: int = 0


_BEAT_BYTES = 8  # AXI ports of Ethos-U55 are 64 bits wide
NO_EVENT, CYCLE, NPU_IDLE, NPU_ACTIVE, MAC_ACTIVE = 0, 17, 32, 35, 48
# (port, is write) → event; REGIONCFG says which port a region uses.
BEATS: Mapping[tuple[int, bool], int] = {(0, False): 130, (0, True): 135, (1, False): 386, (1, True): 391}
# What the model counts. Every other event reads 0, which then says nothing about the hardware.
KNOWN_EVENTS = frozenset({CYCLE, NPU_ACTIVE, MAC_ACTIVE, *BEATS.values()})


def _unit(name: str) -> str:
    if "DATA_BEAT_RECEIVED" in name or "DATA_BEAT_WRITTEN" in name:
        return "beats"
    return "events" if "_TRANS_" in name or name.startswith("ECC") else "cycles"


def _event(text: str) -> Event:
    number, name = text.split()
    beats = int(number) in BEATS.values()
    return Event(int(number), name, _unit(name), int(number) in KNOWN_EVENTS, _BEAT_BYTES if beats else 0)


EVENTS: Mapping[int, Event] = {
    event.number: event for event in map(_event, EVENTS_U55.replace("\n", " ").strip().split(", "))
}
# What ExecuTorch 1.5.1's executor_runner counts on Ethos-U55 and Ethos-U65.
DEFAULT_EVENTS = (130, 386, 135, 32)
EVENT_COUNTERS = 4


def beats(length: int) -> int:
    """Data beats for `length` bytes, moved once and without gaps: a lower bound of what hardware needs."""
    return -(-length // _BEAT_BYTES)


def event_value(event: int, counters: Counters) -> int:
    """How often `event` happened; 0 for events that are not modelled."""
    if event in (CYCLE, NPU_ACTIVE):
        return counters.total_cycles
    if event == MAC_ACTIVE:
        return counters.mac_cycles
    for key, number in BEATS.items():
        if event == number:
            return beats(counters.bytes_moved.get(key, 0))
    return 0


_ENABLE, _EVENT_RESET, _CYCLE_RESET, _MASK_ENABLE = 1, 2, 4, 8
_CYCLE_BIT = 1 << 31
_EVENT_BITS, _CYCLE_BITS = 32, 48
# Between jobs no time passes in this model, so these start and stop events all count exactly the jobs' cycles:
# always (none chosen), while the NPU's clock runs, from NPU_ACTIVE to NPU_IDLE.
_CYCLE_COUNTER_SPANS = ((NO_EVENT, NO_EVENT), (CYCLE, NO_EVENT), (NPU_ACTIVE, NPU_IDLE))


class Pmu:
    """The PMU's registers, by their names: event counters of 32 bits, a cycle counter of 48, overflow flags."""

    def __init__(self) -> None:
        self._control = 0
        self._enabled = 0
        self._overflow = 0
        self._interrupt = 0
        self._cycles = 0
        self._values = [0] * EVENT_COUNTERS
        self._types = [0] * EVENT_COUNTERS
        self._plain = {"PMCCNTR_CFG": 0, "PMCAXI_CHAN": 0}

    def read(self, name: str) -> int:
        """The register `name`."""
        if name.startswith("PMEVTYPER"):
            return self._types[int(name[-1])]
        if name.startswith("PMEVCNTR"):
            return self._values[int(name[-1])]
        return {
            "PMCR": self._control | EVENT_COUNTERS << 11,
            "PMCNTENSET": self._enabled,
            "PMCNTENCLR": self._enabled,
            "PMOVSSET": self._overflow,
            "PMOVSCLR": self._overflow,
            "PMINTSET": self._interrupt,
            "PMINTCLR": self._interrupt,
            "PMCCNTR": self._cycles & 0xFFFF_FFFF,
            "PMCCNTR_HI": self._cycles >> 32,
            **self._plain,
        }[name]

    def write(self, name: str, value: int) -> None:
        """Write the register `name`; `value` has no bits outside of its fields."""
        if name.startswith("PMEVTYPER"):
            self._types[int(name[-1])] = value
        elif name.startswith("PMEVCNTR"):
            self._values[int(name[-1])] = value
        elif name == "PMCR":
            self._write_control(value)
        elif name == "PMCCNTR":
            self._cycles = self._cycles >> 32 << 32 | value
        elif name == "PMCCNTR_HI":
            self._cycles = value << 32 | self._cycles & 0xFFFF_FFFF
        elif name in self._plain:
            self._plain[name] = value
        else:
            self._write_bits(name, value)

    def _write_control(self, value: int) -> None:
        self._control = value & (_ENABLE | _MASK_ENABLE)
        if value & _EVENT_RESET:
            self._values = [0] * EVENT_COUNTERS
        if value & _CYCLE_RESET:
            self._cycles = 0

    def _write_bits(self, name: str, bits: int) -> None:
        attribute = {"PMCNTEN": "_enabled", "PMOVS": "_overflow", "PMINT": "_interrupt"}[name[:-3]]
        old: int = getattr(self, attribute)
        setattr(self, attribute, old | bits if name.endswith("SET") else old & ~bits)

    @property
    def irq(self) -> bool:
        """Whether a counter that may interrupt has overflowed."""
        return bool(self._overflow & self._interrupt)

    def count(self, counters: Counters) -> None:
        """Add what one job did to every counter that is enabled.

        Raises SimulationError when the cycle counter is to start and stop at events that are not modelled.
        """
        if not self._control & _ENABLE:
            return
        if self._enabled & _CYCLE_BIT:
            self._check_cycle_span()
            total = self._cycles + counters.total_cycles
            self._overflow |= _CYCLE_BIT if total >> _CYCLE_BITS else 0
            self._cycles = total & (1 << _CYCLE_BITS) - 1
        for index, event in enumerate(self._types):
            if self._enabled >> index & 1:
                total = self._values[index] + event_value(event, counters)
                self._overflow |= 1 << index if total >> _EVENT_BITS else 0
                self._values[index] = total & (1 << _EVENT_BITS) - 1

    def _check_cycle_span(self) -> None:
        start, stop = self._plain["PMCCNTR_CFG"] & 0x3FF, self._plain["PMCCNTR_CFG"] >> 16
        if (start, stop) not in _CYCLE_COUNTER_SPANS:
            raise SimulationError(
                f"the NPU model cannot count cycles from PMU event {start} to PMU event {stop} (PMCCNTR_CFG)",
                f"count from NPU_ACTIVE ({NPU_ACTIVE}) to NPU_IDLE ({NPU_IDLE})",
            )
