"""The performance monitoring unit: what each NPU can count, what this model can say about it, and the registers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.targets import Generation, family
from ethosu_sdk.npu.machine import Counters

# Events by number: the register headers of ethos-u-vela 5.1.0 (Apache-2.0).

# Ethos-U55 and Ethos-U65.
EVENTS_U55 = """
0 NO_EVENT, 17 CYCLE, 32 NPU_IDLE, 33 CC_STALLED_ON_BLOCKDEP, 34 CC_STALLED_ON_SHRAM_RECONFIG, 35 NPU_ACTIVE,
48 MAC_ACTIVE, 49 MAC_ACTIVE_8BIT, 50 MAC_ACTIVE_16BIT, 51 MAC_DPU_ACTIVE, 52 MAC_STALLED_BY_WD_ACC,
53 MAC_STALLED_BY_WD, 54 MAC_STALLED_BY_ACC, 55 MAC_STALLED_BY_IB, 56 MAC_ACTIVE_32BIT, 57 MAC_STALLED_BY_INT_W,
58 MAC_STALLED_BY_INT_ACC, 64 AO_ACTIVE, 65 AO_ACTIVE_8BIT, 66 AO_ACTIVE_16BIT, 67 AO_STALLED_BY_OFMP_OB,
68 AO_STALLED_BY_OFMP, 69 AO_STALLED_BY_OB, 70 AO_STALLED_BY_ACC_IB, 71 AO_STALLED_BY_ACC, 72 AO_STALLED_BY_IB,
80 WD_ACTIVE, 81 WD_STALLED, 82 WD_STALLED_BY_WS, 83 WD_STALLED_BY_WD_BUF, 84 WD_PARSE_ACTIVE,
85 WD_PARSE_STALLED, 86 WD_PARSE_STALLED_IN, 87 WD_PARSE_STALLED_OUT, 88 WD_TRANS_WS, 89 WD_TRANS_WB,
90 WD_TRANS_DW0, 91 WD_TRANS_DW1, 128 AXI0_RD_TRANS_ACCEPTED, 129 AXI0_RD_TRANS_COMPLETED,
130 AXI0_RD_DATA_BEAT_RECEIVED, 131 AXI0_RD_TRAN_REQ_STALLED, 132 AXI0_WR_TRANS_ACCEPTED,
133 AXI0_WR_TRANS_COMPLETED_M, 134 AXI0_WR_TRANS_COMPLETED_S, 135 AXI0_WR_DATA_BEAT_WRITTEN,
136 AXI0_WR_TRAN_REQ_STALLED, 137 AXI0_WR_DATA_BEAT_STALLED, 140 AXI0_ENABLED_CYCLES, 142 AXI0_RD_STALL_LIMIT,
143 AXI0_WR_STALL_LIMIT, 160 AXI_LATENCY_ANY, 161 AXI_LATENCY_32, 162 AXI_LATENCY_64, 163 AXI_LATENCY_128,
164 AXI_LATENCY_256, 165 AXI_LATENCY_512, 166 AXI_LATENCY_1024, 176 ECC_DMA, 177 ECC_SB0,
384 AXI1_RD_TRANS_ACCEPTED, 385 AXI1_RD_TRANS_COMPLETED, 386 AXI1_RD_DATA_BEAT_RECEIVED,
387 AXI1_RD_TRAN_REQ_STALLED, 388 AXI1_WR_TRANS_ACCEPTED, 389 AXI1_WR_TRANS_COMPLETED_M,
390 AXI1_WR_TRANS_COMPLETED_S, 391 AXI1_WR_DATA_BEAT_WRITTEN, 392 AXI1_WR_TRAN_REQ_STALLED,
393 AXI1_WR_DATA_BEAT_STALLED, 396 AXI1_ENABLED_CYCLES, 398 AXI1_RD_STALL_LIMIT, 399 AXI1_WR_STALL_LIMIT,
433 ECC_SB1
"""

# Ethos-U85. SRAM_* and EXT_* count all ports of their kind together.
EVENTS_U85 = """
0 NO_EVENT, 17 CYCLE, 32 NPU_IDLE, 33 CC_STALLED_ON_BLOCKDEP, 34 CC_STALLED_ON_SHRAM_RECONFIG,
35 NPU_ACTIVE, 48 MAC_ACTIVE, 51 MAC_DPU_ACTIVE, 52 MAC_STALLED_BY_W_OR_ACC, 53 MAC_STALLED_BY_W,
54 MAC_STALLED_BY_ACC, 55 MAC_STALLED_BY_IB, 57 MAC_STALLED_BY_INT_W, 58 MAC_STALLED_BY_INT_ACC,
64 AO_ACTIVE, 67 AO_STALLED_BY_BS_OR_OB, 68 AO_STALLED_BY_BS, 69 AO_STALLED_BY_OB,
70 AO_STALLED_BY_AB_OR_CB, 71 AO_STALLED_BY_AB, 72 AO_STALLED_BY_CB, 80 WD_ACTIVE, 81 WD_STALLED,
83 WD_STALLED_BY_WD_BUF, 84 WD_STALLED_BY_WS_FC, 85 WD_STALLED_BY_WS_TC, 89 WD_TRANS_WBLK,
90 WD_TRANS_WS_FC, 91 WD_TRANS_WS_TC, 96 WD_STALLED_BY_WS_SC0, 97 WD_STALLED_BY_WS_SC1,
98 WD_STALLED_BY_WS_SC2, 99 WD_STALLED_BY_WS_SC3, 100 WD_PARSE_ACTIVE_SC0, 101 WD_PARSE_ACTIVE_SC1,
102 WD_PARSE_ACTIVE_SC2, 103 WD_PARSE_ACTIVE_SC3, 104 WD_PARSE_STALL_SC0, 105 WD_PARSE_STALL_SC1,
106 WD_PARSE_STALL_SC2, 107 WD_PARSE_STALL_SC3, 108 WD_PARSE_STALL_IN_SC0, 109 WD_PARSE_STALL_IN_SC1,
110 WD_PARSE_STALL_IN_SC2, 111 WD_PARSE_STALL_IN_SC3, 112 WD_PARSE_STALL_OUT_SC0,
113 WD_PARSE_STALL_OUT_SC1, 114 WD_PARSE_STALL_OUT_SC2, 115 WD_PARSE_STALL_OUT_SC3, 116 WD_TRANS_WS_SC0,
117 WD_TRANS_WS_SC1, 118 WD_TRANS_WS_SC2, 119 WD_TRANS_WS_SC3, 120 WD_TRANS_WB0, 121 WD_TRANS_WB1,
122 WD_TRANS_WB2, 123 WD_TRANS_WB3, 128 SRAM_RD_TRANS_ACCEPTED, 129 SRAM_RD_TRANS_COMPLETED,
130 SRAM_RD_DATA_BEAT_RECEIVED, 131 SRAM_RD_TRAN_REQ_STALLED, 132 SRAM_WR_TRANS_ACCEPTED,
133 SRAM_WR_TRANS_COMPLETED_M, 134 SRAM_WR_TRANS_COMPLETED_S, 135 SRAM_WR_DATA_BEAT_WRITTEN,
136 SRAM_WR_TRAN_REQ_STALLED, 137 SRAM_WR_DATA_BEAT_STALLED, 140 SRAM_ENABLED_CYCLES,
142 SRAM_RD_STALL_LIMIT, 143 SRAM_WR_STALL_LIMIT, 160 AXI_LATENCY_ANY, 161 AXI_LATENCY_32,
162 AXI_LATENCY_64, 163 AXI_LATENCY_128, 164 AXI_LATENCY_256, 165 AXI_LATENCY_512, 166 AXI_LATENCY_1024,
176 ECC_DMA, 177 ECC_MAC_IB, 178 ECC_MAC_AB, 179 ECC_AO_CB, 180 ECC_AO_OB, 181 ECC_AO_LUT,
384 EXT_RD_TRANS_ACCEPTED, 385 EXT_RD_TRANS_COMPLETED, 386 EXT_RD_DATA_BEAT_RECEIVED,
387 EXT_RD_TRAN_REQ_STALLED, 388 EXT_WR_TRANS_ACCEPTED, 389 EXT_WR_TRANS_COMPLETED_M,
390 EXT_WR_TRANS_COMPLETED_S, 391 EXT_WR_DATA_BEAT_WRITTEN, 392 EXT_WR_TRAN_REQ_STALLED,
393 EXT_WR_DATA_BEAT_STALLED, 396 EXT_ENABLED_CYCLES, 398 EXT_RD_STALL_LIMIT, 399 EXT_WR_STALL_LIMIT
"""

EVENTS: dict[Generation, str] = {"u55": EVENTS_U55, "u85": EVENTS_U85}


@dataclass(frozen=True)
class Event:
    """One PMU event. `modelled` is False for what the model cannot know, for `reason`; it then counts nothing.

    `beat_bytes` is the width of a data beat for events that count beats, else 0.
    """

    number: int
    name: str
    unit: str = "cycles"
    modelled: bool = False
    beat_bytes: int = 0
    reason: str = ""


def _beats(key: tuple[int, bool], counters: Counters) -> int:
    return counters.beats.get(key, 0)


NO_EVENT, CYCLE, NPU_IDLE, NPU_ACTIVE, MAC_ACTIVE, WD_ACTIVE = 0, 17, 32, 35, 48, 80
# (AXI port, is write) → event. Ethos-U85 calls port 0 SRAM and port 1 EXT, and counts all of a kind together.
BEATS: Mapping[tuple[int, bool], int] = {(0, False): 130, (0, True): 135, (1, False): 386, (1, True): 391}
_COUNTED: dict[int, Callable[[Counters], int]] = {
    CYCLE: lambda counters: counters.total_cycles,
    NPU_ACTIVE: lambda counters: counters.total_cycles,
    MAC_ACTIVE: lambda counters: counters.mac_cycles,
    # Ethos-U55 and Ethos-U65: MAC_ACTIVE by the IFM's width
    49: lambda counters: counters.mac_cycles_by_bits.get(8, 0),
    50: lambda counters: counters.mac_cycles_by_bits.get(16, 0),
    56: lambda counters: counters.mac_cycles_by_bits.get(32, 0),
    WD_ACTIVE: lambda counters: counters.decoder_cycles,
    64: lambda counters: counters.output_cycles,  # AO_ACTIVE
    # MAC_STALLED_BY_WD_ACC, _WD, _ACC, _IB; Ethos-U85: _W_OR_ACC, _W, _ACC, _IB
    52: lambda counters: counters.stalls.weights + counters.stalls.accumulators,
    53: lambda counters: counters.stalls.weights,
    54: lambda counters: counters.stalls.accumulators,
    55: lambda counters: counters.stalls.ifm,
    **{event: functools.partial(_beats, key) for key, event in BEATS.items()},
}
_TRANSACTIONS = (
    "it depends on the address boundaries that split bursts; a profile has the bursts without those"
)
_PORTS = "the NPU model does not follow the AXI ports cycle by cycle"
# Why the model cannot know an event, by a part of its name; the first that fits. Such an event reads 0, which
# then says nothing about the hardware.
_UNKNOWN = {
    "NPU_IDLE": (
        "it depends on when the processor starts the NPU and reads its counters; a profile with the CPU's cycles has "
        "the idle cycles of an inference"
    ),
    "AXI_LATENCY": "the NPU model has one latency for all transactions of a memory",
    "_TRANS_ACCEPTED": _TRANSACTIONS,
    "_TRANS_COMPLETED": _TRANSACTIONS,
    "TRAN_REQ_STALLED": _PORTS,
    "DATA_BEAT_STALLED": _PORTS,
    "STALL_LIMIT": _PORTS,
    "ENABLED_CYCLES": _PORTS,
    "ECC": "the NPU model has no memory errors",
    "CC_STALLED": "the NPU model does not follow the command controller cycle by cycle",
    "WD_": "the NPU model has no buffers inside of the weight decoder",
    "AO_STALLED": "the NPU model does not tell waits of the output unit from the lack of work",
    "": "the NPU model cannot know it",
}


@dataclass(frozen=True)
class PmuKind:
    """The PMU of one family: events by number, event counters, and what ExecuTorch's runner counts."""

    events: Mapping[int, Event]
    event_counters: int
    default_events: tuple[int, ...]

    def value(self, event: int, counters: Counters) -> int:
        """How often `event` happened; 0 for events that are not modelled."""
        row = self.events.get(event)
        return 0 if row is None or not row.modelled else _COUNTED[event](counters)


def _events(table: str, beat_bytes: int) -> dict[int, Event]:
    found = {}
    for row in table.replace("\n", " ").strip().split(", "):
        number, name = row.split()
        event = int(number)
        width = beat_bytes if event in BEATS.values() else 0
        modelled = event in _COUNTED
        reason = "" if modelled else next(why for part, why in _UNKNOWN.items() if part in name)
        unit = "events" if "_TRANS_" in name or name.startswith("ECC") else "cycles"
        if "DATA_BEAT_RECEIVED" in name or "DATA_BEAT_WRITTEN" in name:
            unit = "beats"
        found[event] = Event(event, name, unit, modelled, width, reason)
    return found


@functools.cache
def pmu_of(npu: str) -> PmuKind:
    """The PMU of `npu`, such as ``"ethos-u55"``. UsageError when it is not known."""
    row = family(npu)
    events = _events(EVENTS[row.generation], row.axi_beat_bytes)
    return PmuKind(events, row.event_counters, tuple(row.default_events.values()))


_ENABLE, _EVENT_RESET, _CYCLE_RESET, _MASK_ENABLE = 1, 2, 4, 8
_CYCLE_BIT = 1 << 31
_EVENT_BITS, _CYCLE_BITS = 32, 48
_EVENT_FIELD = 0x3FF  # PMEVTYPER.ev_type; Ethos-U85 has a selection of parts of the NPU above
_ONE_CHANNEL = 1 << 10  # PMCAXI_CHAN.bw_ch_sel_en
# Between jobs no time passes in this model, so these start and stop events all count exactly the jobs' cycles:
# always (none chosen), while the NPU's clock runs, from NPU_ACTIVE to NPU_IDLE.
_CYCLE_COUNTER_SPANS = ((NO_EVENT, NO_EVENT), (CYCLE, NO_EVENT), (NPU_ACTIVE, NPU_IDLE))


class Pmu:
    """The PMU's registers, by their names: event counters of 32 bits, a cycle counter of 48, overflow flags."""

    def __init__(self, kind: PmuKind) -> None:
        self._kind = kind
        self._control = 0
        self._enabled = 0
        self._overflow = 0
        self._interrupt = 0
        self._cycles = 0
        self._values = [0] * kind.event_counters
        self._types = [0] * kind.event_counters
        self._plain = {"PMCCNTR_CFG": 0, "PMCAXI_CHAN": 0, "PMCLUT": 0}

    def read(self, name: str) -> int:
        """The register `name`."""
        if name.startswith("PMEVTYPER"):
            return self._types[int(name[-1])]
        if name.startswith("PMEVCNTR"):
            return self._values[int(name[-1])]
        return {
            "PMCR": self._control | self._kind.event_counters << 11,
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
            self._control = value & (_ENABLE | _MASK_ENABLE)
            if value & _EVENT_RESET:
                self._values = [0] * self._kind.event_counters
            if value & _CYCLE_RESET:
                self._cycles = 0
        elif name == "PMCCNTR":
            self._cycles = self._cycles >> 32 << 32 | value
        elif name == "PMCCNTR_HI":
            self._cycles = value << 32 | self._cycles & 0xFFFF_FFFF
        elif name in self._plain:
            self._plain[name] = value
        else:
            attribute = {"PMCNTEN": "_enabled", "PMOVS": "_overflow", "PMINT": "_interrupt"}[name[:-3]]
            old: int = getattr(self, attribute)
            setattr(self, attribute, old | value if name.endswith("SET") else old & ~value)

    @property
    def irq(self) -> bool:
        """Whether a counter that may interrupt has overflowed."""
        return bool(self._overflow & self._interrupt)

    def check(self) -> None:
        """Raise SimulationError when a job is to be counted in a way that the model cannot count."""
        if not self._control & _ENABLE or not self._enabled:
            return
        if self._control & _MASK_ENABLE:
            raise SimulationError(
                "the NPU model cannot count by NPU_OP_PMU_MASK (PMCR.mask_en)",
                "count whole jobs, with PMCR.mask_en = 0",
            )
        if self._enabled & _CYCLE_BIT:
            self._check_cycle_span()
        for index, selection in enumerate(self._types):
            if self._enabled >> index & 1:
                self._check_selection(index, selection)

    def _check_cycle_span(self) -> None:
        start, stop = self._plain["PMCCNTR_CFG"] & 0xFFFF, self._plain["PMCCNTR_CFG"] >> 16
        if (start, stop) not in _CYCLE_COUNTER_SPANS:
            raise SimulationError(
                f"the NPU model cannot count cycles from PMU event {start} to PMU event {stop} (PMCCNTR_CFG)",
                f"count from NPU_ACTIVE ({NPU_ACTIVE}) to NPU_IDLE ({NPU_IDLE})",
            )

    def _check_selection(self, index: int, selection: int) -> None:
        if selection & ~_EVENT_FIELD:
            raise SimulationError(
                f"the NPU model does not know what PMEVTYPER{index} = {selection:#x} selects",
                f"set nothing but the event, bits {_EVENT_FIELD:#x}",
            )
        if selection in BEATS.values() and self._plain["PMCAXI_CHAN"] & _ONE_CHANNEL:
            raise SimulationError(
                f"the NPU model cannot count PMU event {selection} for one AXI channel (PMCAXI_CHAN)",
                "count all channels, with PMCAXI_CHAN.bw_ch_sel_en = 0",
            )

    def count(self, counters: Counters) -> None:
        """Add what one job did to every counter that is enabled."""
        if not self._control & _ENABLE:
            return
        if self._enabled & _CYCLE_BIT:
            total = self._cycles + counters.total_cycles
            self._overflow |= _CYCLE_BIT if total >> _CYCLE_BITS else 0
            self._cycles = total & (1 << _CYCLE_BITS) - 1
        for index, event in enumerate(self._types):
            if self._enabled >> index & 1:
                total = self._values[index] + self._kind.value(event, counters)
                self._overflow |= 1 << index if total >> _EVENT_BITS else 0
                self._values[index] = total & (1 << _EVENT_BITS) - 1
