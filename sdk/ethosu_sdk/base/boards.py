"""The boards (boards.toml): what firmware is built for, and the rows of QEMU's machines."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion


@dataclass(frozen=True)
class Memory:
    """One memory of a board; `origin` is the address that the firmware uses, `access` the linker's attributes."""

    name: str
    access: str
    origin: int
    size_bytes: int

    def holds(self, address: int) -> bool:
        """Whether `address` lies in this memory."""
        return self.origin <= address < self.origin + self.size_bytes


@dataclass(frozen=True)
class Board:
    """A board that firmware can be built for, with its NPUs in each simulator; boards.toml explains the members."""

    name: str
    core_hz: int
    npu_bases: tuple[int, ...]
    uart0_base: int
    npu_irq: int
    irq_count: int
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
def board_table() -> dict[str, Any]:
    """boards.toml as parsed, for modules that read their own section of it."""
    return tomllib.loads((Path(__file__).parent / "boards.toml").read_text(encoding="utf-8"))


@functools.cache
def all_boards() -> dict[str, Board]:
    """All boards that firmware can be built for, by name."""
    return {name: _board(name, row) for name, row in board_table().items() if "memories" in row}


def _board(name: str, row: dict[str, Any]) -> Board:
    memories = {key: Memory(key, **value) for key, value in row["memories"].items()}
    return Board(
        name=name,
        npu_bases=tuple(row["npu_bases"]),
        **{key: row[key] for key in ("core_hz", "uart0_base", "npu_irq", "irq_count")},
        fast=memories[row["fast"]],
        bulk=memories[row["bulk"]],
        near=memories[row["near"]],
        memories=tuple(memories.values()),
        simulators={key: tuple(npus) for key, npus in row["simulators"].items()},
        on_request=tuple(row.get("on_request", ())),
    )


def core_of_board(name: str) -> str:
    """The processor of the board called `name`, such as ``cortex-m55``; of QEMU's boards too."""
    found: str = board_table()[name]["core"]
    return found


BOARD_NAMES = tuple(all_boards())


def board_named(name: str) -> Board:
    """The board called `name`; UsageError with the known ones when there is none."""
    if name not in all_boards():
        raise UsageError(f"no firmware can be built for board '{name}'", suggestion(name, BOARD_NAMES))
    return all_boards()[name]
