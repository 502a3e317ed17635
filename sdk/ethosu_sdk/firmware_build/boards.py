"""The boards that firmware can be built for (boards.toml)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import suggestion


@dataclass(frozen=True)
class Memory:
    """One memory of a board; `origin` is the address that the firmware uses."""

    name: str
    origin: int
    size_bytes: int

    def holds(self, address: int) -> bool:
        """Whether `address` lies in this memory."""
        return self.origin <= address < self.origin + self.size_bytes


@dataclass(frozen=True)
class Board:
    """A board: its CMake preset, its memories and what each is for, and the NPUs it has in each simulator.

    Simulators in `on_request` run it when it is asked for, and have another as their default. `fast` lies next to the
    NPU, `bulk` takes everything large, `near` the method pool unless it is large.
    """

    name: str
    preset: str
    fast: Memory
    bulk: Memory
    near: Memory
    memories: tuple[Memory, ...]
    simulators: dict[str, tuple[str, ...]]
    on_request: tuple[str, ...] = ()

    @property
    def npus(self) -> tuple[str, ...]:
        """Every NPU that this board can have somewhere, such as ``ethos-u55``."""
        return tuple(dict.fromkeys(npu for row in self.simulators.values() for npu in row))

    def is_in(self, simulator: str, npu: str | None) -> bool:
        """Whether `simulator` has this board with `npu` (None: with any)."""
        npus = self.simulators.get(simulator, ())
        return bool(npus) if npu is None else npu in npus

    def is_default_in(self, simulator: str, npu: str | None) -> bool:
        """Whether `simulator` may take this board for a program with `npu` when none is asked for."""
        return simulator not in self.on_request and self.is_in(simulator, npu)


@functools.cache
def boards() -> dict[str, Board]:
    """All boards by name, read once from boards.toml."""
    table = tomllib.loads((Path(__file__).parent / "boards.toml").read_text(encoding="utf-8"))
    return {name: _board(name, row) for name, row in table.items()}


def _board(name: str, row: dict[str, object]) -> Board:
    rows = row["memories"]
    simulators, on_request = row["simulators"], row.get("on_request", [])
    assert isinstance(rows, dict)
    assert isinstance(simulators, dict)
    assert isinstance(on_request, list)
    memories = {key: Memory(key, **value) for key, value in rows.items()}
    return Board(
        name=name,
        preset=str(row["preset"]),
        fast=memories[str(row["fast"])],
        bulk=memories[str(row["bulk"])],
        near=memories[str(row["near"])],
        memories=tuple(memories.values()),
        simulators={key: tuple(npus) for key, npus in simulators.items()},
        on_request=tuple(on_request),
    )


BOARDS = tuple(boards())


def board(name: str) -> Board:
    """The board called `name`; UsageError with the known ones when there is none."""
    if name not in boards():
        raise UsageError(f"no firmware can be built for board '{name}'", suggestion(name, BOARDS))
    return boards()[name]
