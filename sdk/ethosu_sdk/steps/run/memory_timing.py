"""The memory timing for modelled cycles: that of the system, or timing adapters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import toml_source
from ethosu_sdk.files.toml_source import Kind
from ethosu_sdk.npu.timing import adapters
from ethosu_sdk.npu.timing.system_config import Memory, SystemConfig
from ethosu_sdk.records import Record
from ethosu_sdk.records.run import Run
from ethosu_sdk.steps.run.options import EXECUTORCH, VELA_TIMING
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.targets import Target, suggestion

_KIND = Kind("timing adapters", most_bytes=1 << 16, most_lines=1000)


def choose(target: Target | None, priced: Priced | None, choice: str) -> SystemConfig | None:
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
        found = adapters.of_executorch(target.system_config, target.memory_mode)
    elif choice.endswith(".toml"):
        _, tables = toml_source.read(Path(choice), _KIND)
        found = adapters.from_tables(tables, choice)
    else:
        names = (VELA_TIMING, EXECUTORCH)
        hint = suggestion(choice, names)
        raise UsageError(f"unknown memory timing '{choice}'", f"{hint}; or a FILE.toml" if hint else "")
    return adapters.behind(plain, found, target.npu)


def part(system: SystemConfig | None, choice: str) -> Record:
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


def of_run(run: Run, system: SystemConfig) -> SystemConfig:
    """`system` with the memories as the record of a run has them."""
    timing = run.npu.memory_timing if run.npu is not None else None
    facts: dict[int, Record] = {row.axi: row.to_json() for row in timing.interfaces} if timing else {}

    def seen(memory: Memory) -> Memory:
        row = facts.get(memory.interface, {})
        return replace(memory, **{key: value for key, value in row.items() if key != "axi"})

    return replace(
        system, constants=seen(system.constants), arena=seen(system.arena), cache=seen(system.cache)
    )
