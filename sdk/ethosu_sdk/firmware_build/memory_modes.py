"""Vela's memory modes as the firmware has them (memory_modes.toml)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.errors import BuildError
from ethosu_sdk.targets import MemoryAreas, suggestion

_AT = ("fast", "bulk")  # AXI interface 0 is that of the memory beside the NPU, 1 that of the large one
WITHOUT_NPU = "Shared_Sram"  # what a program that delegates nothing is laid out as


@dataclass(frozen=True)
class MemoryMode:
    """One memory mode: which kind of memory (``fast`` or ``bulk``) the model and the scratch lie in.

    `fast_scratch` says that part of the scratch lies in fast memory as region 2, `fast_scratch_bytes` how much at
    most; None when the mode has no limit. `settings` is the name of the NPU's register settings.
    """

    name: str
    settings: str
    model: str
    scratch: str
    fast_scratch: bool = False
    fast_scratch_bytes: int | None = None


@functools.cache
def memory_modes() -> dict[str, MemoryMode]:
    """All modes by name, in the order in which one is offered for another."""
    table = tomllib.loads((Path(__file__).parent / "memory_modes.toml").read_text(encoding="utf-8"))
    return {name: MemoryMode(name, **row) for name, row in table.items()}


def memory_mode(name: str | None, areas: MemoryAreas | None = None) -> MemoryMode:
    """The mode called `name` that has things at `areas`; without these the one of Vela's that bears the name, or that
    of a program without delegates for None.

    BuildError for an unknown one, and for areas that the firmware has no settings for: the place of buffers is not
    guessed.
    """
    if areas is not None:
        return _by_areas(name or "", areas)
    mode = memory_modes().get(name or WITHOUT_NPU)
    if mode is None:
        raise BuildError(
            f"the firmware does not know where memory mode '{name}' has its buffers",
            f"--vela-config gives the file that has it; {suggestion(name or '', memory_modes())}",
        )
    return mode


def _by_areas(name: str, areas: MemoryAreas) -> MemoryMode:
    place = (_AT[areas.constants], _AT[areas.arena], areas.cache != areas.arena)
    alike = next((mode for mode in memory_modes().values() if _place(mode) == place), None)
    if alike is None or _AT[areas.cache] != "fast":
        raise BuildError(
            f"memory mode '{name}' has constants at AXI {areas.constants}, arena at AXI {areas.arena} and cache at "
            f"AXI {areas.cache}, for which the firmware has no settings",
            "it has those of Sram_Only (0, 0, 0), Shared_Sram (1, 0, 0) and Dedicated_Sram (1, 1, 0)",
        )
    limit = areas.cache_bytes if alike.fast_scratch else None
    return replace(alike, name=name, fast_scratch_bytes=limit)


def _place(mode: MemoryMode) -> tuple[str, str, bool]:
    return mode.model, mode.scratch, mode.fast_scratch
