"""The NPU as software sees it: its register window, interrupt line and PMU in front of the machine.

A job is carried out in full by the write that starts it: software never sees STATUS.state running. Behaviour of
the registers: comments of Arm's ethosu55_interface.h (ethos-u-core-driver, Apache-2.0) and, for Ethos-U85, of the
Linux driver's copy of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base.errors import SdkError, SimulationError
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BranchError, BusError, CommandError, WeightStreamError
from ethosu_sdk.npu.machine import Counters, Machine, Ports
from ethosu_sdk.npu.operation import Bytes
from ethosu_sdk.npu.pmu import Pmu, pmu_of
from ethosu_sdk.npu.program import Reach
from ethosu_sdk.npu.tables import IDENTIFICATION, Register, registers
from ethosu_sdk.npu.timing.price import OperationTrace
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.npu.weight_cache import WeightCache

__all__ = ["BusError", "Device", "GuestMemory", "Job", "NpuConfig"]

# Hardware shows its own memory, its units' states and the command stream's registers here; this model keeps none of
# them in that form.
_DEBUG_WINDOWS = {
    "u55": (range(0x400, 0xFC0),),
    "u85": (range(0x144, 0x14C), range(0x240, 0x2C0), range(0x400, 0xFC0), range(0x1100, 0x1118)),
}
_REGIONS = 8
_ALIGNMENT = 16

# STATUS bits
_IRQ_RAISED, _BUS_STATUS, _PARSE_ERROR, _END_REACHED, _PMU_IRQ, _WD_FAULT, _BRANCH_FAULT = (
    1 << bit for bit in (1, 2, 4, 5, 6, 7, 9)
)
_FATAL = _BUS_STATUS | _PARSE_ERROR | _WD_FAULT | _BRANCH_FAULT
_FAULTING_INTERFACE, _FAULTING_CHANNEL, _IRQ_HISTORY = 11, 12, 16
# CMD bits
_RUN, _CLEAR_IRQ, _STOP_REQUEST, _Q_ENABLES = 1 << 0, 1 << 1, 1 << 4, 0xC
_AXI_PORT = 1 << 2  # in MEM_ATTR


class GuestMemory(Protocol):
    """The memory of the system that the NPU sits in."""

    def window(self, address: int) -> npt.NDArray[np.uint8]:
        """The bytes from `address` to the end of its memory, writable in place. BusError when there is none.

        Every operation asks anew: an error that this raises ends the job.
        """
        ...


@dataclass(frozen=True)
class Job:
    """One command stream that was run: STATUS at its end, what made it fail, and what the machine did."""

    status: int
    failure: SdkError | None
    counters: Counters
    operations: tuple[OperationTrace, ...]

    @property
    def error(self) -> str:
        """The reason of a failure in words; empty without one."""
        return "" if self.failure is None else self.failure.message

    @property
    def cycles(self) -> int:
        """Estimated cycles of the whole job."""
        return self.counters.total_cycles


@dataclass
class _GuestRegions:
    """Regions as BASEP and the guest's memory define them; those that `known` has end where it says."""

    memory: GuestMemory
    bases: list[int]
    known: Mapping[int, Bytes] | None = None

    def __getitem__(self, region: int) -> Bytes:
        if self.known is None:
            return self.window(region)
        if region not in self.known:
            raise BusError(f"there is no region {region}", region)
        if self.known[region].size:
            self.window(region)  # asked anew, see GuestMemory
        return self.known[region]

    def window(self, region: int) -> Bytes:
        """The memory from the region's base on."""
        base = self.bases[region]
        if base % _ALIGNMENT:
            raise BusError(f"BASEP{region} = {base:#x} is not a multiple of {_ALIGNMENT}", region)
        return self.memory.window(base)


class Device:
    """One Ethos-U: :meth:`read32`, :meth:`write32`, and the level of its interrupt line in `irq`."""

    def __init__(
        self,
        config: NpuConfig,
        memory: GuestMemory,
        system: SystemConfig | None = None,
        streams: Mapping[bytes, Reach] | None = None,
    ) -> None:
        """`system` gives the cycles; by default it is the family's default.

        A job of one of the `streams` reaches what its delegate may, any other all of the memory, as on hardware.
        """
        self._streams = streams or {}
        self._system = system
        self._config = config
        self._memory = memory
        self._cache = WeightCache()
        self._table = registers(config.generation)
        self._window = range(config.register_window_bytes)
        self.jobs: list[Job] = []
        self._reset(0)

    def _reset(self, protection: int) -> None:
        """Soft reset: instant. The pending protection becomes the active one."""
        self._values = dict.fromkeys((register.name for register in self._table.values()), 0)
        self._values |= {name: values[self._config.generation] for name, values in IDENTIFICATION.items()}
        self._values["ID"] = self._config.id_word
        self._values["CONFIG"] = self._config.config_word
        self._values["PROT"] = protection
        self._values["CMD"] = _Q_ENABLES
        self._condition: bool | None = False
        self.pmu = Pmu(pmu_of(self._config.npu))

    @property
    def irq(self) -> bool:
        """Level of the interrupt line."""
        return bool(self._values["STATUS"] & _IRQ_RAISED)

    def read32(self, offset: int) -> int:
        """The register at byte `offset`; 0 where there is none.

        Raises SimulationError for offsets that are no register of this NPU, or whose value only the model lacks.
        """
        register = self._register(offset)
        if register is None:
            return 0
        if register.name == "COND_STATUS":
            if self._condition is None:
                raise SimulationError(
                    "the NPU model does not know COND_STATUS: the last job left no single result to read"
                )
            return int(self._condition)
        return self.pmu.read(register.name) if register.name.startswith("PM") else self._values[register.name]

    def write32(self, offset: int, value: int) -> None:
        """Write the register at byte `offset`. Starting a job runs it to its end.

        Raises UnsupportedCommand for what only this model cannot do, WeightOrderError for weights that cannot be
        what the operation needs, SimulationError for a request that the model cannot answer honestly. What
        hardware would report sets STATUS and raises nothing, but for one case: Ethos-U85 has no STATUS bit for
        weights that cannot be decoded (bit 7, wd_fault, is reserved there), and what it does with them is not
        documented. WeightStreamError then ends the simulation, as no state of the registers would be true.
        """
        register = self._register(offset)
        if register is None or not register.writable:
            return
        value &= register.mask
        if register.name.startswith("PM"):
            self.pmu.write(register.name, value)
        elif register.name == "RESET":
            self._reset(value)
        elif register.name == "CMD":
            self._command(value)
        else:
            self._values[register.name] = value
            if register.name in ("QBASE", "QBASE_HI", "QSIZE"):
                self._values["STATUS"] &= ~_END_REACHED

    def _register(self, offset: int) -> Register | None:
        if offset not in self._window or offset % 4:
            raise SimulationError(f"{offset:#x} is not the offset of an NPU register")
        register = self._table.get(offset)
        if register is None and any(offset in span for span in _DEBUG_WINDOWS[self._config.generation]):
            raise SimulationError(
                f"the NPU model does not have the debug registers, which include {offset:#x}"
            )
        return register

    def _command(self, value: int) -> None:
        # No command is ever under way between two writes, so a request to stop finds nothing to stop.
        if value & _RUN and value & _STOP_REQUEST:
            raise SimulationError(
                "CMD both starts a job and requests a stop: the NPU model cannot tell which comes first",
                "write transition_to_running_state and stop_request one after the other",
            )
        self._values["CMD"] = value
        self._values["STATUS"] &= ~(value & 0xFFFF << _IRQ_HISTORY)
        if value & _CLEAR_IRQ:
            self._values["STATUS"] &= ~(_IRQ_RAISED | _PMU_IRQ)
        # After a fault, the NPU starts nothing more until it is reset.
        if value & _RUN and not self._values["STATUS"] & _FATAL:
            self._run()

    def _run(self) -> None:
        self.pmu.check()
        regions = _GuestRegions(
            self._memory, [self._address(f"BASEP{n}", f"BASEP_HI{n}") for n in range(_REGIONS)]
        )
        ports = Ports(self._port, self._command_port())
        machine = Machine(self._config, regions, self._cache, ports, self._system)
        status, failure, position = self._outcome(machine, regions)
        if failure is not None:
            failure.with_traceback(None)  # it would keep views of the memory
        self._values["QREAD"] = position
        self._condition = machine.result_flag
        self.pmu.count(machine.counters)
        status |= _IRQ_RAISED | machine.irq_mask << _IRQ_HISTORY | (_PMU_IRQ if self.pmu.irq else 0)
        self._values["STATUS"] |= status
        self.jobs.append(Job(self._values["STATUS"], failure, machine.counters, tuple(machine.trace)))

    def _outcome(self, machine: Machine, regions: _GuestRegions) -> tuple[int, SdkError | None, int]:
        """Run the command stream: bits for STATUS, the reason of a failure, and where the queue stopped."""
        try:
            stream = self._stream()
            if stream in self._streams:
                regions.known = self._streams[stream].regions(regions.window)
            machine.run(stream)
        except BranchError as problem:
            return _BRANCH_FAULT, problem, problem.offset
        except CommandError as problem:
            return _PARSE_ERROR, problem, problem.offset
        except WeightStreamError as problem:
            if self._config.generation == "u85":  # see write32
                raise
            return _WD_FAULT, problem, machine.position
        except BusError as problem:
            port = self._command_port() if problem.region is None else self._port(problem.region)
            fault = port << _FAULTING_INTERFACE | problem.channel << _FAULTING_CHANNEL
            return _BUS_STATUS | fault, problem, machine.position
        return _END_REACHED, None, machine.position

    def _stream(self) -> bytes:
        base, size = self._address("QBASE", "QBASE_HI"), self._values["QSIZE"]
        if base % _ALIGNMENT:
            raise BusError(f"QBASE = {base:#x} is not a multiple of {_ALIGNMENT}")
        window = self._memory.window(base)
        if size > window.size:
            raise BusError(f"QSIZE = {size:#x} reaches past the end of the memory at {base:#x}")
        return window[:size].tobytes()

    def _address(self, low: str, high: str) -> int:
        return self._values[high] << 32 | self._values[low]

    def _port(self, region: int) -> int:
        """The AXI port that a region's traffic takes, by its two bits in REGIONCFG."""
        return self._port_of_setting(self._values["REGIONCFG"] >> (2 * region) & 3)

    def _command_port(self) -> int:
        return self._port_of_setting(self._values["QCONFIG"])

    def _port_of_setting(self, setting: int) -> int:
        """Settings 0 and 1 are port 0 and the others port 1; Ethos-U85 looks the port up in MEM_ATTR instead."""
        if self._config.generation == "u85":
            return int(bool(self._values[f"MEM_ATTR{setting}"] & _AXI_PORT))
        return setting >> 1
