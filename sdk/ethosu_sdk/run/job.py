"""One run, resolved: what runs, where, with which inputs, memories and clock, and what must come out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy.typing as npt
from msgspec import Struct

from ethosu_sdk.base import boards, toml_source
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Target, suggestion
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.base.toml_source import TomlKind
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.firmware_build.board_fit import NamedBoard
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.records import common
from ethosu_sdk.records.run import Interface, MemoryTiming, Run
from ethosu_sdk.run.input_values import Samples
from ethosu_sdk.run.kept_state import KeptState
from ethosu_sdk.run.options import BOARD_TIMING, EXECUTORCH, VELA_TIMING, RunOptions
from ethosu_sdk.run.reference import CompileRecord
from ethosu_sdk.run.time_line import CpuClock
from ethosu_sdk.simulate.program_board import BoardAndSimulator

if TYPE_CHECKING:
    from ethosu_sdk.run.execution import Execution

UART_NAME = "uart.log"
_ADAPTERS = TomlKind("timing adapters", most_bytes=1 << 16, most_lines=1000)


class Setting(Struct, frozen=True, kw_only=True):
    """What holds for a run of the `program` in the `.pte` at `path`, whichever method runs. `compiled` is what
    `compile` wrote beside the program. `choice` names the board and the simulator, `execute` runs a job there.
    `events` are the numbers of the PMU events to count. `priced` is the system that modelled cycles are for,
    `memories` are its memories, behind timing adapters if the options ask for them, `cpu_clock` is the clock of the
    CPU. `named` is the board that the user named for the run or the program, whose memories are judged; None where
    that is the simulated one."""

    path: Path
    program: pte.Pte
    compiled: CompileRecord
    options: RunOptions
    choice: BoardAndSimulator
    execute: Callable[[RunJob, Reporter], Execution]
    events: tuple[int, ...]
    priced: PricingSystem | None
    memories: SystemConfig | None
    cpu_clock: CpuClock
    named: NamedBoard | None = None

    @property
    def target(self) -> Target | None:
        """What the program is compiled for; None without an NPU."""
        return self.program.target()

    @property
    def npu(self) -> str | None:
        """The NPU that the program uses, such as ``ethos-u55``; None without one."""
        return self.program.npu()

    @property
    def macs(self) -> int | None:
        """The NPU's MACs per cycle, where the program names its target."""
        return None if self.target is None else self.target.macs

    @property
    def core(self) -> str:
        """The CPU that cycles are for: that of the board whose clock is known, where it is modelled."""
        wanted = self.cpu_clock.core
        return wanted if wanted in get_args(common.Core) else boards.core_of_board(self.choice.board)


class RunJob(Setting, frozen=True, kw_only=True):
    """A run of the method `plan`, resolved. `expected` are outputs that must come out (None: any)."""

    folder: Path
    plan: ExecutionPlan
    samples: Samples
    expected: Sequence[npt.NDArray[Any]] | None
    kept: KeptState


# The memory timing for modelled cycles: that of the system, or timing adapters.


def choose_memories(
    target: Target | None, priced: PricingSystem | None, choice: str, board: BoardProfile | None = None
) -> SystemConfig | None:
    """The memories of the system that is `priced`, behind the timing adapters that `choice` names, which may be those
    of the `board`; None without an NPU. UsageError for a choice that does not exist, or has no values for the target;
    InputError for a damaged file."""
    plain = None if priced is None else priced.system
    if choice == VELA_TIMING:
        return plain
    if target is None or plain is None:
        raise UsageError("--memory-timing needs a program that uses the NPU", "leave --memory-timing out")
    if choice == EXECUTORCH:
        found = systems.executorch_adapters(target.system_config, target.memory_mode)
    elif choice == BOARD_TIMING:
        found = _adapters_of_board(board, target)
    elif choice.endswith(".toml"):
        _, tables = toml_source.read_toml(Path(choice), _ADAPTERS)
        found = systems.adapters_from_tables(tables, choice)
    else:
        names = (VELA_TIMING, BOARD_TIMING, EXECUTORCH)
        hint = suggestion(choice, names)
        raise UsageError(f"unknown memory timing '{choice}'", f"{hint}; or a FILE.toml" if hint else "")
    return systems.behind_adapters(plain, found, target.npu)


def _adapters_of_board(board: BoardProfile | None, target: Target) -> systems.Adapters:
    """What the board sets its timing adapters to for the NPU, whatever the program was compiled for."""
    if board is None:
        raise UsageError(f"--memory-timing {BOARD_TIMING} needs a board", "--system NAME names it")
    settings = board.adapters_for(target.name)
    if settings is None:
        raise UsageError(
            f"{board.name} has no settings of timing adapters for {target.name}", "leave --memory-timing out"
        )
    return systems.adapters_from_tables({"axi0": settings.axi0, "axi1": settings.axi1}, board.name)


def memory_timing_part(system: SystemConfig | None, choice: str) -> MemoryTiming | None:
    """The member `memory_timing` of a record's `npu`; None where the system's memories hold."""
    if system is None or choice == VELA_TIMING:
        return None
    memories = {row.interface: row for row in (system.constants, system.arena, system.cache)}
    rows = (
        Interface(
            axi=1 if number else 0,
            bytes_per_cycle=row.bytes_per_cycle,
            read_latency_cycles=row.read_latency_cycles,
            write_latency_cycles=row.write_latency_cycles,
        )
        for number, row in sorted(memories.items())
    )
    return MemoryTiming(name=Path(choice).name, interfaces=tuple(rows))


def system_of_run(run: Run, system: SystemConfig) -> SystemConfig:
    """`system` with the memories as the record of a run has them."""
    timing = run.npu.memory_timing if run.npu is not None else None
    rows: dict[int, Interface] = {row.axi: row for row in timing.interfaces} if timing else {}

    def seen(memory: Memory) -> Memory:
        row = rows.get(memory.interface)
        if row is None:
            return memory
        return dataclasses.replace(
            memory,
            bytes_per_cycle=row.bytes_per_cycle,
            read_latency_cycles=row.read_latency_cycles,
            write_latency_cycles=row.write_latency_cycles,
        )

    return dataclasses.replace(
        system, constants=seen(system.constants), arena=seen(system.arena), cache=seen(system.cache)
    )
