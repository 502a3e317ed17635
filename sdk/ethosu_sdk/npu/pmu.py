"""PMU events of Ethos-U55 and Ethos-U65, and what this model can say about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

# Numbers and names: the register headers of ethos-u-vela 5.1.0.
_NAMES = """
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
CYCLE, NPU_ACTIVE, MAC_ACTIVE = 17, 35, 48
# (port, is write) → event; REGIONCFG says which port a region uses.
BEATS: Mapping[tuple[int, bool], int] = {(0, False): 130, (0, True): 135, (1, False): 386, (1, True): 391}
_MODELLED = frozenset({CYCLE, NPU_ACTIVE, MAC_ACTIVE, *BEATS.values()})


def _unit(name: str) -> str:
    if "DATA_BEAT_RECEIVED" in name or "DATA_BEAT_WRITTEN" in name:
        return "beats"
    return "events" if "_TRANS_" in name or name.startswith("ECC") else "cycles"


def _event(text: str) -> Event:
    number, name = text.split()
    beats = int(number) in BEATS.values()
    return Event(int(number), name, _unit(name), int(number) in _MODELLED, _BEAT_BYTES if beats else 0)


EVENTS: Mapping[int, Event] = {
    event.number: event for event in map(_event, _NAMES.replace("\n", " ").strip().split(", "))
}
# What ExecuTorch 1.5.1's executor_runner counts on Ethos-U55 and Ethos-U65.
DEFAULT_EVENTS = (130, 386, 135, 32)
EVENT_COUNTERS = 4


def beats(length: int) -> int:
    """Data beats for `length` bytes, moved once and without gaps: a lower bound of what hardware needs."""
    return -(-length // _BEAT_BYTES)


# Register offsets of the PMU block of Ethos-U55 and Ethos-U65.
_PMCR, _CNTENSET, _CNTENCLR, _OVSSET, _OVSCLR, _INTSET, _INTCLR = range(0x180, 0x19C, 4)
_CCNTR, _CCNTR_HI, _CCNTR_CFG, _AXI_CHAN = 0x1A0, 0x1A4, 0x1A8, 0x1AC
_EVCNTR, _EVTYPER = 0x300, 0x380
_PLAIN = (_CCNTR_CFG, _AXI_CHAN)

_ENABLE, _EVENT_RESET, _CYCLE_RESET, _MASK_ENABLE = 1, 2, 4, 8
_CYCLE_BIT = 1 << 31
_WRITABLE_BITS = _CYCLE_BIT | (1 << EVENT_COUNTERS) - 1
_EVENT_BITS, _CYCLE_BITS = 32, 48


class Pmu:
    """The PMU's registers: four event counters of 32 bits, a cycle counter of 48, overflow flags."""

    def __init__(self) -> None:
        self._control = 0
        self._enabled = 0
        self._overflow = 0
        self._interrupt = 0
        self._cycles = 0
        self._values = [0] * EVENT_COUNTERS
        self._types = [0] * EVENT_COUNTERS
        self._plain = dict.fromkeys(_PLAIN, 0)

    def has(self, offset: int) -> bool:
        """Whether `offset` is one of the PMU's registers."""
        arrays = any(start <= offset < start + 4 * EVENT_COUNTERS for start in (_EVCNTR, _EVTYPER))
        return _PMCR <= offset <= _AXI_CHAN or arrays

    def read(self, offset: int) -> int:
        """The register at byte `offset` of the NPU's window."""
        if offset >= _EVTYPER:
            return self._types[(offset - _EVTYPER) // 4]
        if offset >= _EVCNTR:
            return self._values[(offset - _EVCNTR) // 4]
        return {
            _PMCR: self._control | EVENT_COUNTERS << 11,
            _CNTENSET: self._enabled,
            _CNTENCLR: self._enabled,
            _OVSSET: self._overflow,
            _OVSCLR: self._overflow,
            _INTSET: self._interrupt,
            _INTCLR: self._interrupt,
            _CCNTR: self._cycles & 0xFFFF_FFFF,
            _CCNTR_HI: self._cycles >> 32,
        }.get(offset, self._plain.get(offset, 0))

    def write(self, offset: int, value: int) -> None:
        """Write the register at byte `offset` of the NPU's window."""
        if offset >= _EVTYPER:
            self._types[(offset - _EVTYPER) // 4] = value & 0x3FF
        elif offset >= _EVCNTR:
            self._values[(offset - _EVCNTR) // 4] = value & 0xFFFF_FFFF
        elif offset == _PMCR:
            self._write_control(value)
        elif offset == _CCNTR:
            self._cycles = self._cycles >> 32 << 32 | value
        elif offset == _CCNTR_HI:
            self._cycles = (value & 0xFFFF) << 32 | self._cycles & 0xFFFF_FFFF
        elif offset in _PLAIN:
            self._plain[offset] = value
        else:
            self._write_bits(offset, value & _WRITABLE_BITS)

    def _write_control(self, value: int) -> None:
        self._control = value & (_ENABLE | _MASK_ENABLE)
        if value & _EVENT_RESET:
            self._values = [0] * EVENT_COUNTERS
        if value & _CYCLE_RESET:
            self._cycles = 0

    def _write_bits(self, offset: int, bits: int) -> None:
        if offset == _CNTENSET:
            self._enabled |= bits
        elif offset == _CNTENCLR:
            self._enabled &= ~bits
        elif offset == _OVSSET:
            self._overflow |= bits
        elif offset == _OVSCLR:
            self._overflow &= ~bits
        elif offset == _INTSET:
            self._interrupt |= bits
        elif offset == _INTCLR:
            self._interrupt &= ~bits

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
                total = self._values[index] + event_value(event, counters)
                self._overflow |= 1 << index if total >> _EVENT_BITS else 0
                self._values[index] = total & (1 << _EVENT_BITS) - 1


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
