"""One run, resolved: what runs, where, with which inputs, memories and clock, and what must come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy.typing as npt

from ethosu_sdk.base import boards, toml_source
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import Target, suggestion
from ethosu_sdk.base.toml_source import TomlKind
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.records import common
from ethosu_sdk.records.run import Run
from ethosu_sdk.run.input_values import Samples
from ethosu_sdk.run.kept_state import KeptState
from ethosu_sdk.run.options import EXECUTORCH, VELA_TIMING, RunOptions
from ethosu_sdk.run.time_line import CpuClock
from ethosu_sdk.simulate.program_board import BoardAndSimulator

# ---- steps.run.memory_timing
# The memory timing for modelled cycles: that of the system, or timing adapters.

_KIND = TomlKind("timing adapters", most_bytes=1 << 16, most_lines=1000)


def choose_memories(target: Target | None, priced: PricingSystem | None, choice: str) -> SystemConfig | None:
    """The memories of the system that is `priced`, behind the timing adapters that `choice` names; None without an
    NPU.

    UsageError for a choice that does not exist, or has no values for the target; InputError for a damaged file.
    """
    plain = None if priced is None else priced.system
    if choice == VELA_TIMING:
        return plain
    if target is None or plain is None:
        raise UsageError("--memory-timing needs a program that uses the NPU", "leave --memory-timing out")
    if choice == EXECUTORCH:
        found = systems.executorch_adapters(target.system_config, target.memory_mode)
    elif choice.endswith(".toml"):
        _, tables = toml_source.read_toml(Path(choice), _KIND)
        found = systems.adapters_from_tables(tables, choice)
    else:
        names = (VELA_TIMING, EXECUTORCH)
        hint = suggestion(choice, names)
        raise UsageError(f"unknown memory timing '{choice}'", f"{hint}; or a FILE.toml" if hint else "")
    return systems.behind_adapters(plain, found, target.npu)


def memory_timing_part(system: SystemConfig | None, choice: str) -> Record:
    """The member `memory_timing` of a record's `npu`; empty where the system's memories hold."""
    if system is None or choice == VELA_TIMING:
        return {}
    memories = {row.interface: row for row in (system.constants, system.arena, system.cache)}
    return {
        "memory_timing": {
            "name": Path(choice).name,
            "interfaces": [{"axi": number, **_facts(row)} for number, row in sorted(memories.items())],
        }
    }


def _facts(memory: Memory) -> Record:
    return {
        "bytes_per_cycle": memory.bytes_per_cycle,
        "read_latency_cycles": memory.read_latency_cycles,
        "write_latency_cycles": memory.write_latency_cycles,
    }


def system_of_run(run: Run, system: SystemConfig) -> SystemConfig:
    """`system` with the memories as the record of a run has them."""
    timing = run.npu.memory_timing if run.npu is not None else None
    facts: dict[int, Record] = {row.axi: row.to_json() for row in timing.interfaces} if timing else {}

    def seen(memory: Memory) -> Memory:
        row = facts.get(memory.interface, {})
        return replace(memory, **{key: value for key, value in row.items() if key != "axi"})

    return replace(
        system, constants=seen(system.constants), arena=seen(system.arena), cache=seen(system.cache)
    )


# ---- steps.run.job
# One run, resolved: what runs, where, with which inputs, and what must come out.

UART_NAME = "uart.log"


@dataclass(frozen=True)
class RunJob:
    """A run of the `program` in the `.pte` at `path`; results go to `folder`.

    `choice` names the board and the simulator. `events` are the numbers of the PMU events to count. `priced` is the
    system that modelled cycles are for, `memories` are its memories, behind timing adapters if the options ask for
    them, `cpu_clock` is the clock of the CPU. `expected` holds the outputs that must come out (None: any), `kept` is
    the program's state.
    """

    path: Path
    program: pte.Pte
    folder: Path
    options: RunOptions
    choice: BoardAndSimulator
    samples: Samples
    expected: Sequence[npt.NDArray[Any]] | None
    events: tuple[int, ...]
    priced: PricingSystem | None
    memories: SystemConfig | None
    cpu_clock: CpuClock
    kept: KeptState

    @property
    def plan(self) -> ExecutionPlan:
        """The method that runs."""
        return self.program.plan(self.options.method)

    @property
    def target(self) -> Target | None:
        """What the program is compiled for; None without an NPU."""
        return self.program.target()

    @property
    def core(self) -> str:
        """The CPU that cycles are for: that of the board whose clock is known, where it is modelled."""
        wanted = self.cpu_clock.core
        return wanted if wanted in get_args(common.Core) else boards.core_of_board(self.choice.board)

    @property
    def npu(self) -> str | None:
        """The NPU that the program uses, such as ``ethos-u55``; None without one."""
        return self.program.npu()

    @property
    def macs(self) -> int | None:
        """The NPU's MACs per cycle, where the program names its target."""
        return None if self.target is None else self.target.macs
