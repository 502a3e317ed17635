"""Vela's memory modes as the firmware has them (memory_modes.toml)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import BuildError
from ethosu_sdk.targets import suggestion

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


def memory_mode(name: str | None) -> MemoryMode:
    """The mode called `name`, that of a program without delegates for None. BuildError for an unknown one: the place
    of its buffers is not guessed."""
    mode = memory_modes().get(name or WITHOUT_NPU)
    if mode is None:
        raise BuildError(
            f"the firmware does not know where memory mode '{name}' has its buffers",
            suggestion(name or "", memory_modes()),
        )
    return mode
