"""The board's memories as the NPU sees them: shared ones in place, the others as snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.device import BusError
from ethosu_sdk.simulators.qemu.bank_access import BankAccess
from ethosu_sdk.simulators.qemu.memory_map import MPS3_AN547, Bank, BoardMap

Bytes = npt.NDArray[np.uint8]

_PAGE_BYTES = 4096


@dataclass
class _Snapshot:
    """A memory that lives inside QEMU: what it held when it was read, and what the NPU made of it."""

    before: Bytes
    current: Bytes


class NpuMemory:
    """The memories that the NPU's AXI ports reach; implements :class:`ethosu_sdk.npu.device.GuestMemory`.

    Memories in `shared`, DDR at least, are shared with QEMU: their windows are views of the very bytes. Others can
    only be copied: the first window on one reads it, :meth:`flush` writes the pages that changed back. A window
    therefore is valid until the next :meth:`flush`, that is, during one register access.

    A whole job is one register access, and the NPU asks for memory with every operation: after the
    :mod:`~ethosu_sdk.npu.deadline` it gets none, so that a job cannot outlast the run, whichever model it runs on.
    """

    def __init__(self, shared: Mapping[str, Bytes], banks: BankAccess, board: BoardMap = MPS3_AN547) -> None:
        self._shared = shared
        self._banks = banks
        self._board = board
        self._snapshots: dict[Bank, _Snapshot] = {}

    def window(self, address: int) -> Bytes:
        """The bytes from `address` to the end of its memory; BusError where the NPU sees no memory.

        Raises SimulationError after the deadline.
        """
        deadline.check()
        found = self._board.find_bank(address)
        if found is None:
            raise BusError(f"no memory at {address:#010x}")
        bank, offset = found
        if not bank.npu_visible:
            raise BusError(f"{address:#010x} lies in {bank.name}, which is private to the processor")
        storage = self._shared.get(bank.name)
        return (self._snapshot(bank).current if storage is None else storage)[offset:]

    def _snapshot(self, bank: Bank) -> _Snapshot:
        if bank not in self._snapshots:
            before = np.frombuffer(self._banks.read(bank), np.uint8)
            self._snapshots[bank] = _Snapshot(before, before.copy())
        return self._snapshots[bank]

    def flush(self) -> None:
        """Write what changed back to QEMU and forget all snapshots, for the guest runs on."""
        for bank, snapshot in self._snapshots.items():
            for start, end in changed_ranges(snapshot.before, snapshot.current):
                self._banks.write(bank, start, snapshot.current[start:end].data)
        self._snapshots.clear()


def changed_ranges(before: Bytes, after: Bytes) -> list[tuple[int, int]]:
    """Half-open byte ranges, made of whole pages, that cover every difference; both are whole pages long."""
    pages = (before.reshape(-1, _PAGE_BYTES) != after.reshape(-1, _PAGE_BYTES)).any(axis=1)
    edges = np.flatnonzero(np.diff(pages.astype(np.int8), prepend=0, append=0))
    return [(int(start) * _PAGE_BYTES, int(end) * _PAGE_BYTES) for start, end in edges.reshape(-1, 2)]
