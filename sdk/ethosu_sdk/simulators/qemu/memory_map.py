"""The machines that QEMU has for the boards (boards.toml): their memories, who sees them, and where the NPU is."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import boards
from ethosu_sdk.errors import UsageError


@dataclass(frozen=True)
class Bank:
    """One memory: its size and the addresses at which it appears.

    A memory with an `option`, of QEMU's ``-machine``, is shared with QEMU. Others QEMU keeps as one or several blocks
    of `block_bytes` each, which are contiguous for the guest only.
    """

    name: str
    bases: tuple[int, ...]
    size_bytes: int
    block_bytes: int
    npu_visible: bool
    option: str = ""

    def offset(self, address: int) -> int | None:
        """The offset of `address` in this memory; None when it lies elsewhere."""
        for base in self.bases:
            if base <= address < base + self.size_bytes:
                return address - base
        return None


@dataclass(frozen=True)
class BoardMap:
    """A board: QEMU's `machine` for it, and its memories.

    With `own_build` the machine is in the QEMU of our own build (qemu/), which has the NPU as a device.
    """

    name: str
    machine: str
    banks: tuple[Bank, ...]
    npu_bases: tuple[int, ...]  # Non-secure and Secure alias of the same registers
    core_hz: float
    own_build: bool = False

    def find_bank(self, address: int) -> tuple[Bank, int] | None:
        """The memory that `address` falls into and the offset there; None when no memory is there."""
        for bank in self.banks:
            offset = bank.offset(address)
            if offset is not None:
                return bank, offset
        return None

    def npu_offset(self, address: int, size_bytes: int, window_bytes: int) -> int | None:
        """The register offset of an access of `size_bytes` at `address`; None when it misses the window."""
        for base in self.npu_bases:
            if base <= address and address + size_bytes <= base + window_bytes:
                return address - base
        return None

    @property
    def shared(self) -> tuple[Bank, ...]:
        """The memories that QEMU takes from us: both sides have the very bytes."""
        return tuple(bank for bank in self.banks if bank.option)


@functools.cache
def _maps() -> dict[str, BoardMap]:
    return {name: _map(name, row) for name, row in boards.table().items() if "qemu" in row}


def _map(name: str, row: dict[str, Any]) -> BoardMap:
    machine = row["qemu"]
    return BoardMap(
        name=name,
        machine=machine["machine"],
        banks=tuple(_bank(key, **facts) for key, facts in machine["banks"].items()),
        npu_bases=tuple(row["npu_bases"]),
        core_hz=float(row["core_hz"]),
        own_build=machine.get("own_build", False),
    )


def _bank(
    name: str,
    bases: list[int],
    size_bytes: int,
    blocks: int = 1,
    option: str = "",
    *,
    npu_visible: bool = True,
) -> Bank:
    return Bank(name, tuple(bases), size_bytes, size_bytes // blocks, npu_visible, option)


def board_map(name: str) -> BoardMap:
    """The board called `name`, such as ``corstone-300``. UsageError when QEMU has no board of that name."""
    if name not in _maps():
        raise UsageError(f"QEMU has no board '{name}'", f"one of: {', '.join(_maps())}")
    return _maps()[name]


MPS3_AN547 = board_map("corstone-300")
