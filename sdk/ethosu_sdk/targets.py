"""Ethos-U targets, system configurations and memory modes: the SDK's own tables (targets.toml)."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.errors import UsageError


@dataclass(frozen=True)
class Family:
    """One NPU family: its MAC counts, its board and its Vela configurations."""

    name: str
    macs: tuple[int, ...]
    board: str
    default_system_config: str
    default_memory_mode: str
    system_configs: dict[str, tuple[str, ...]]  # name -> the memory modes that go with it


@dataclass(frozen=True)
class Target:
    """An NPU with its MAC count, system configuration and memory mode."""

    npu: str
    macs: int
    system_config: str
    memory_mode: str

    @property
    def name(self) -> str:
        """The target as the command line spells it, such as ``ethos-u55-128``."""
        return f"{self.npu}-{self.macs}"

    @property
    def family(self) -> Family:
        """The family whose tables this target belongs to."""
        return families()[self.npu]


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "targets.toml").read_text(encoding="utf-8"))


@functools.cache
def families() -> dict[str, Family]:
    """All families by name, read once from targets.toml."""
    table = _table()
    modes = {name: tuple(values) for name, values in table["memory_modes"].items()}
    return {
        name: Family(
            name=name,
            macs=tuple(row["macs"]),
            board=row["board"],
            default_system_config=row["default_system_config"],
            default_memory_mode=row["default_memory_mode"],
            system_configs={config: modes[key] for config, key in row["system_configs"].items()},
        )
        for name, row in table["families"].items()
    }


def target_names() -> tuple[str, ...]:
    """Every target that exists, such as ``ethos-u55-128``."""
    return tuple(f"{family.name}-{macs}" for family in families().values() for macs in family.macs)


def suggestion(word: str, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest one first, then all of them."""
    names = list(known)
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    listed = "one of: " + ", ".join(names)
    if not near:
        return listed
    original = next(name for name in names if name.lower() == near[0])
    return f"did you mean '{original}'? {listed}"


def parse_target(name: str, system_config: str | None = None, memory_mode: str | None = None) -> Target:
    """The target called `name`, with the family's defaults for what is not given.

    Raises UsageError for an unknown name or a pairing that the family does not have.
    """
    family, macs = parse_name(name)
    system = system_config or family.default_system_config
    if system not in family.system_configs:
        raise UsageError(
            f"system configuration '{system}' does not belong to {family.name}",
            suggestion(system, family.system_configs),
        )
    mode = memory_mode or family.default_memory_mode
    if memory_mode is None and mode not in family.system_configs[system]:
        mode = _table()["defaults"]["memory_mode_without_dram"]
    if mode not in family.system_configs[system]:
        raise UsageError(
            f"memory mode '{mode}' cannot be used with {system}",
            suggestion(mode, family.system_configs[system]),
        )
    return Target(npu=family.name, macs=macs, system_config=system, memory_mode=mode)


def parse_name(name: str) -> tuple[Family, int]:
    """The family and the MAC count that a target's name stands for. UsageError when there is no such
    target."""
    if name not in target_names():
        raise UsageError(f"unknown target '{name}'", suggestion(name, target_names()))
    npu, _, macs = name.rpartition("-")
    return families()[npu], int(macs)


def custom_target(name: str, system_config: str, memory_mode: str) -> Target:
    """The target whose system configuration comes from a user's own Vela configuration file.

    The firmware places memories by the memory mode's name: UsageError for one that Vela's own file does not have.
    """
    family, macs = parse_name(name)
    modes = {mode for row in families().values() for known in row.system_configs.values() for mode in known}
    if memory_mode not in modes:
        raise UsageError(
            f"the firmware knows no memory mode '{memory_mode}'", suggestion(memory_mode, sorted(modes))
        )
    return Target(npu=family.name, macs=macs, system_config=system_config, memory_mode=memory_mode)
