"""What is known of each core beside LLVM's scheduling models: cores.toml."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import UsageError


@dataclass(frozen=True)
class Replacement:
    """A row of `replaced`: what stands in for LLVM's figures of instructions whose text matches `match`."""

    match: re.Pattern[str]
    source: str
    latency: int = 0
    occupies: int = 0
    per_register: float = 0.0


@dataclass(frozen=True)
class Core:
    """A core's facts; cores.toml explains and gives the source of each. Times are cycles."""

    name: str
    issue_width: int
    pairs_only_narrow: bool
    address_delay: int
    gather_delay: int
    shift_delay: int
    stored_advance: int
    accumulator_advance: int
    base_latency: int
    taken: int
    mispredicted: int
    loop_entry: int
    replaced: tuple[Replacement, ...]


@functools.cache
def _cores() -> Mapping[str, Core]:
    table = tomllib.loads((Path(__file__).parent / "cores.toml").read_text(encoding="utf-8"))
    found = {}
    for name, facts in table.items():
        rows = facts.pop("replaced")
        replaced = tuple(Replacement(re.compile(row.pop("match")), **row) for row in rows)
        found[name] = Core(name=name, replaced=replaced, **facts)
    return found


CORES: tuple[str, ...] = tuple(_cores())


def core_of(name: str) -> Core:
    """The core called `name`. UsageError that names the known ones."""
    if name not in _cores():
        raise UsageError(f"there is no price list for the core '{name}'", f"known are {', '.join(CORES)}")
    return _cores()[name]
