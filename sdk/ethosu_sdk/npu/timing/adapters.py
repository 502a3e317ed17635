"""Timing adapters: Arm's boards and FVPs put one in front of each memory that the NPU reaches.

An adapter delays every transaction by a latency, and lets through at most BWCAP beats in each pulse of PULSE_ON open
and PULSE_OFF closed cycles. What it is set to, not vela.ini, is then the speed of the memory.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.npu.timing import constants
from ethosu_sdk.npu.timing.system_config import Memory, SystemConfig
from ethosu_sdk.targets import family

_SIZED = re.compile(r"_\d+(KB|MB)$")
_UNLIMITED = 1 << 16  # transactions, where the register holds 0
_LARGEST = 1 << 24
# Members of a table in a user's file, in the order of the rows of adapters.toml.
_MEMBERS = ("max_reads", "max_writes", "read_latency", "write_latency", "pulse_on", "pulse_off", "bwcap")


@dataclass(frozen=True)
class TimingAdapter:
    """The registers MAXR, MAXW, RLATENCY, WLATENCY, PULSE_ON, PULSE_OFF and BWCAP; 0 of a limit is none."""

    max_reads: int
    max_writes: int
    read_latency: int
    write_latency: int
    pulse_on: int
    pulse_off: int
    bwcap: int

    @property
    def beats_per_cycle(self) -> float:
        """Data beats that pass in a cycle, on average; one at most.

        Transactions that are accepted before BWCAP is reached pass as a whole.
        """
        pulse = self.pulse_on + self.pulse_off
        if not pulse or not self.pulse_on:
            return 0.0 if pulse else 1.0
        passed = self.bwcap + constants.ADAPTER_EXCESS_BEATS if self.bwcap else math.inf
        return min(1.0, min(passed, self.pulse_on) / pulse)

    def in_front_of(self, memory: Memory, npu: str) -> Memory:
        """`memory` as an NPU such as ``ethos-u55`` sees it through the adapter."""
        return replace(
            memory,
            bytes_per_cycle=family(npu).axi_beat_bytes * self.beats_per_cycle,
            read_latency_cycles=self.read_latency,
            write_latency_cycles=self.write_latency,
            max_reads=self.max_reads or _UNLIMITED,
            max_writes=self.max_writes or _UNLIMITED,
        )


Adapters = tuple[TimingAdapter, TimingAdapter]  # of AXI interface 0 and 1


def behind(system: SystemConfig, adapters: Adapters, npu: str) -> SystemConfig:
    """`system` with an adapter in front of each interface."""

    def seen(memory: Memory) -> Memory:
        return adapters[memory.interface].in_front_of(memory, npu)

    return replace(
        system, constants=seen(system.constants), arena=seen(system.arena), cache=seen(system.cache)
    )


def of_executorch(system_config: str, memory_mode: str) -> Adapters:
    """What ExecuTorch's runner sets. UsageError for a configuration and mode that it does not know."""
    modes = _table().get(system_config, {})
    rows = modes.get(_SIZED.sub("", memory_mode))
    if rows is None:
        known = ", ".join(f"{name} with {' or '.join(row)}" for name, row in _table().items())
        raise UsageError(
            f"ExecuTorch's runner has no timing adapter settings for {system_config} with {memory_mode}",
            f"it has settings for: {known}",
        )
    first, second = (TimingAdapter(*row) for row in rows)
    return first, second


@functools.cache
def _table() -> dict[str, dict[str, list[list[int]]]]:
    place = importlib.resources.files("ethosu_sdk.npu.timing") / "adapters.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))


def from_tables(tables: Mapping[str, Any], name: str) -> Adapters:
    """The adapters in a user's file: tables ``axi0`` and ``axi1`` with a value for every register.

    InputError, with `name` of the file, for anything else.
    """
    if sorted(tables) != ["axi0", "axi1"]:
        raise InputError(f"{name} has {', '.join(tables) or 'nothing'}", "it needs two tables: axi0 and axi1")
    first, second = (_adapter(tables[key], f"{key} of {name}") for key in ("axi0", "axi1"))
    return first, second


def _adapter(table: Any, where: str) -> TimingAdapter:
    if not isinstance(table, Mapping) or sorted(table) != sorted(_MEMBERS):
        raise InputError(
            f"{where} does not have each register once", f"give these registers: {', '.join(_MEMBERS)}"
        )
    values: Sequence[Any] = [table[key] for key in _MEMBERS]
    for key, value in zip(_MEMBERS, values, strict=True):
        if type(value) is not int or not 0 <= value < _LARGEST:
            raise InputError(f"{key} in {where} is {value!r}, not a number from 0 to {_LARGEST - 1:,}")
    found = TimingAdapter(*values)
    if not found.beats_per_cycle:
        raise InputError(f"{where} blocks all traffic: PULSE_ON is 0", "give PULSE_ON of at least 1")
    return found
