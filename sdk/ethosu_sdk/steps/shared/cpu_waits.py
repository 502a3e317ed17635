"""The memories of a board's CPU: where its code, the constants and the arena lie, and how long it waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ethosu_sdk.boards.profile import CODE, BoardMemory, BoardProfile
from ethosu_sdk.cpu_cycles.waits import LineWaits
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records.parts.time_line import WaitsFor

_NO_PROFILE = "the memories of the CPU are not known: --system NAME prices a board"
_NO_AREAS = "the profile {board} does not say which memories the areas of {system} are"
_NO_WAITS = "the profile {board} does not say how long the CPU waits for {memory}"
_NOT_CACHED = (
    "{memory} of {board} is not cached, or not known to be: the waits of single accesses are not modelled"
)
_NO_CACHE = "the CPU of {board} has no {kind} cache: the waits of single accesses are not modelled"
_SMALL = (
    "the code of the inference, {size:,} bytes, does not stay in the {cache:,} bytes of the instruction cache"
)


@dataclass(frozen=True)
class CpuMemories:
    """The memories by what lies in them, with their waits; `reason` is why there are none."""

    names: WaitsFor | None = None
    waits: LineWaits | None = None
    source: str = ""
    reason: str = ""


def of_board(profile: BoardProfile | None, system: SystemConfig | None, code_bytes: int) -> CpuMemories:
    """Where things lie on the board of `profile` in a `system` of it (None: its default), for an inference with so
    many bytes of code."""
    if profile is None:
        return CpuMemories(reason=_NO_PROFILE)
    system = system or _default(profile)
    row = profile.system(system.name)
    areas = {} if row is None else row.areas
    names = {
        "code": areas.get(CODE, ""),
        "constants": areas.get(system.constants.name, ""),
        "arena": areas.get(system.arena.name, ""),
    }
    if not all(names.values()):
        return CpuMemories(reason=_NO_AREAS.format(board=profile.name, system=system.name))
    reason = _missing(profile, names, code_bytes)
    if reason:
        return CpuMemories(reason=reason)
    waits = {part: float(_wait(profile.memory(name)) or 0) for part, name in names.items()}
    source = f"{profile.ini_source}: {_sources(profile, names)}"
    return CpuMemories(WaitsFor(**names), LineWaits(**waits), source)


def _default(profile: BoardProfile) -> SystemConfig:
    system, npu = profile.default_system, profile.npus[0].rpartition("-")[0]
    return system_config.system_from_ini(
        profile.vela_ini(), profile.ini_source, npu, system.name, system.memory_modes[0]
    )


def _wait(memory: BoardMemory | None) -> float | None:
    """Cycles for a line; None where they are not known."""
    if memory is None:
        return None
    return 0 if memory.kind == "tcm" else memory.cpu_wait_cycles


def _missing(profile: BoardProfile, names: Mapping[str, str], code_bytes: int) -> str:
    """Why waits cannot be priced; empty if they can."""
    for part, name in names.items():
        memory = profile.memory(name)
        if memory is None or _wait(memory) is None:
            return _NO_WAITS.format(board=profile.name, memory=name)
        if memory.kind == "tcm":
            continue
        if not memory.cached:
            return _NOT_CACHED.format(memory=name, board=profile.name)
        kind = "instruction" if part == "code" else "data"
        cache = profile.cpu.icache_bytes if part == "code" else profile.cpu.dcache_bytes
        if cache == 0:
            return _NO_CACHE.format(board=profile.name, kind=kind)
        if part == "code" and cache is not None and code_bytes > cache:
            return _SMALL.format(size=code_bytes, cache=cache)
    return ""


def _sources(profile: BoardProfile, names: Mapping[str, str]) -> str:
    """The sources of the waits, each once."""
    slow = (row for name in names.values() if (row := profile.memory(name)) is not None and row.kind != "tcm")
    places = (f"memories.{row.name}.cpu_wait_cycles" for row in slow)
    found = dict.fromkeys(map(profile.source, places))
    return "; ".join(found) or profile.source("areas")
