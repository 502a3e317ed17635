"""The boards' memories in QEMU (`qemu` of a board pack): where they are, the ways to read and write them, and what of
them the NPU sees.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from ethosu_sdk.base import boards
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.toml_source import Rows
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.device import BusError
from ethosu_sdk.simulate.qemu.gdb_remote import GdbError, GdbRemote

Bytes = npt.NDArray[np.uint8]


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

    def find_bank(self, address: int, size_bytes: int = 1) -> tuple[Bank, int] | None:
        """The memory that all of `size_bytes` at `address` lie in, and the offset there; None when there is none."""
        for bank in self.banks:
            for base in bank.bases:
                if base <= address < base + bank.size_bytes >= address + size_bytes:
                    return bank, address - base
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


class _Bank(Struct, forbid_unknown_fields=True):
    bases: Annotated[list[boards.Address], Meta(min_length=1, max_length=8)]
    size_bytes: Annotated[int, Meta(ge=1, le=1 << 32)]
    npu_visible: bool = True
    blocks: Annotated[int, Meta(ge=1, le=64)] = 1
    option: boards.Word = ""


class _Machine(Struct, forbid_unknown_fields=True):
    machine: boards.Word
    clock_hz: Annotated[int, Meta(ge=1000, le=10**11)]
    banks: Rows[_Bank]
    own_build: bool = False


@functools.cache
def board_map(name: str) -> BoardMap:
    """The board called `name`, such as ``corstone-300``. UsageError when QEMU has no board of that name."""
    if name not in boards.QEMU_NAMES:
        raise UsageError(f"QEMU has no board '{name}'", f"one of: {', '.join(boards.QEMU_NAMES)}")
    source, table = boards.pack_tables(name)
    row = source.convert(table["qemu"], _Machine, ("qemu",))
    banks = (
        Bank(
            key,
            tuple(bank.bases),
            bank.size_bytes,
            bank.size_bytes // bank.blocks,
            bank.npu_visible,
            bank.option,
        )
        for key, bank in row.banks.items()
    )
    npu_bases = boards.device_of(source, table, "npu").bases
    return BoardMap(name, row.machine, tuple(banks), npu_bases, float(row.clock_hz), row.own_build)


MPS3_AN547 = board_map("corstone-300")


# Two ways to read and write memories inside QEMU while the guest is stopped. The gdb stub moves some 60 MB/s, which
# makes a 4 MiB SRAM cost more than everything else in an inference. Linux lets a parent read and write its child's
# memory through ``/proc/PID/mem`` (proc(5)) a hundred times faster, where ptrace(2) access is allowed. The place of a
# memory in QEMU is found by content and proved before use: tokens of 256 random bits are laid at both of its ends
# through the stub, and one back.

_TOKEN_BYTES = 32
_BLOCK_ALIGNMENT = 2 << 20  # QEMU aligns guest memory for huge pages


class BankAccess:
    """Reads and writes a memory that lives inside QEMU through the gdb stub, which is always possible."""

    def __init__(self, gdb: GdbRemote) -> None:
        self._gdb = gdb

    def read(self, bank: Bank) -> bytes | bytearray:
        """The whole memory. Raises GdbError."""
        return self._gdb.read_memory(bank.bases[-1], bank.size_bytes)

    def write(self, bank: Bank, offset: int, data: memoryview) -> None:
        """Replace the bytes at `offset`. Raises GdbError."""
        self._gdb.write_memory(bank.bases[-1] + offset, data)


class ProcessBankAccess(BankAccess):
    """Through QEMU's ``/proc/PID/mem``, open as `memory`; by way of the stub for what is not found there."""

    def __init__(self, pid: int, memory: int, gdb: GdbRemote) -> None:
        super().__init__(gdb)
        self._pid = pid
        self._memory = memory
        self._places: dict[Bank, tuple[int, ...] | None] = {}

    def read(self, bank: Bank) -> bytes | bytearray:
        places = self.places(bank)
        if places is None:
            return super().read(bank)
        data = bytearray(bank.size_bytes)
        for index, place in enumerate(places):
            start = index * bank.block_bytes
            piece = memoryview(data)[start : start + bank.block_bytes]
            _move(os.preadv, self._memory, piece, place, "read")
        return data

    def write(self, bank: Bank, offset: int, data: memoryview) -> None:
        places = self.places(bank)
        if places is None:
            super().write(bank, offset, data)
            return
        for index, place in enumerate(places):
            start = index * bank.block_bytes
            piece = data[max(0, start - offset) : max(0, start + bank.block_bytes - offset)]
            if len(piece):
                _move(os.pwritev, self._memory, piece, place + max(0, offset - start), "written")

    def places(self, bank: Bank) -> tuple[int, ...] | None:
        """Where in QEMU's address space the blocks of `bank` are; None when that cannot be proved."""
        if bank not in self._places:
            found = [
                self._locate(bank.bases[-1] + start, bank.block_bytes)
                for start in range(0, bank.size_bytes, bank.block_bytes)
            ]
            blocks = tuple(place for place in found if place is not None)
            self._places[bank] = blocks if len(blocks) == len(found) else None
        return self._places[bank]

    def _locate(self, address: int, size_bytes: int) -> int | None:
        first, last = secrets.token_bytes(_TOKEN_BYTES), secrets.token_bytes(_TOKEN_BYTES)
        to_last = size_bytes - _TOKEN_BYTES
        ends = (address, first), (address + to_last, last)
        kept = [(at, self._gdb.read_memory(at, _TOKEN_BYTES)) for at, _ in ends]
        for at, token in ends:
            self._gdb.write_memory(at, token)
        try:
            matches = [
                place
                for place in self._candidates(size_bytes)
                if self._peek(place) == first and self._peek(place + to_last) == last
            ]
            proved = len(matches) == 1 and self._writes_reach(address, matches[0], last)
        finally:
            for at, token in kept:
                self._gdb.write_memory(at, token)
        return matches[0] if proved else None

    def _writes_reach(self, address: int, place: int, token: bytes) -> bool:
        """Whether the guest finds at `address` what is written at `place`."""
        try:
            os.pwrite(self._memory, token, place)
        except OSError:
            return False
        return self._gdb.read_memory(address, _TOKEN_BYTES) == token

    def _candidates(self, size_bytes: int) -> Iterator[int]:
        """Every aligned address in QEMU at which a block could start: private writable memory, no file's."""
        try:
            table = Path(f"/proc/{self._pid}/maps").read_text(encoding="ascii", errors="replace")
        except OSError:
            return
        for line in table.splitlines():
            span, mode, _, _, inode, *_ = line.split()
            start, end = (int(text, 16) for text in span.split("-"))
            if mode.startswith("rw") and inode == "0":
                aligned = -(-start // _BLOCK_ALIGNMENT) * _BLOCK_ALIGNMENT
                yield from range(aligned, end - size_bytes + 1, _BLOCK_ALIGNMENT)

    def _peek(self, place: int) -> bytes:
        try:
            return os.pread(self._memory, _TOKEN_BYTES, place)
        except OSError:
            return b""


def _move(
    call: Callable[[int, list[memoryview], int], int], memory: int, piece: memoryview, place: int, done: str
) -> None:
    try:
        moved = call(memory, [piece], place)
    except OSError as error:
        raise GdbError(f"QEMU's memory cannot be {done}: {error.strerror}") from error
    if moved != len(piece):
        raise GdbError("QEMU's memory file became shorter")


@contextlib.contextmanager
def open_bank_access(pid: int, gdb: GdbRemote) -> Iterator[BankAccess]:
    """The fastest way that the host allows, to the memories of the QEMU process `pid`."""
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # the host forbids it, as some sandboxes do
        yield BankAccess(gdb)
        return
    try:
        yield ProcessBankAccess(pid, memory, gdb)
    finally:
        os.close(memory)


_PAGE_BYTES = 4096


class NpuMemory:
    """The memories that the NPU's AXI ports reach; implements :class:`ethosu_sdk.npu.device.GuestMemory`.

    Memories in `shared`, DDR at least, are shared with QEMU: their windows are views of the very bytes. Others can
    only be copied: the first window on one reads it, :meth:`flush` writes the pages that changed back. A window
    therefore is valid until the next :meth:`flush`, that is, during one register access.

    A whole job is one register access, and the NPU asks for memory with every operation: after the deadline of
    :mod:`~ethosu_sdk.npu.errors` it gets none, so that a job cannot outlast the run, whichever model it runs on.
    """

    def __init__(self, shared: Mapping[str, Bytes], banks: BankAccess, board: BoardMap = MPS3_AN547) -> None:
        self._shared = shared
        self._banks = banks
        self._board = board
        self._snapshots: dict[Bank, tuple[Bytes, Bytes]] = {}  # as it was read, and what the NPU made of it

    def window(self, address: int) -> Bytes:
        """The bytes from `address` to the end of its memory; BusError where the NPU sees no memory.

        Raises SimulationError after the deadline.
        """
        errors.check()
        found = self._board.find_bank(address)
        if found is None:
            raise BusError(f"no memory at {address:#010x}")
        bank, offset = found
        if not bank.npu_visible:
            raise BusError(f"{address:#010x} lies in {bank.name}, which is private to the processor")
        if bank.name in self._shared:
            return self._shared[bank.name][offset:]
        if bank not in self._snapshots:
            before = np.frombuffer(self._banks.read(bank), np.uint8)
            self._snapshots[bank] = before, before.copy()
        return self._snapshots[bank][1][offset:]

    def flush(self) -> None:
        """Write what changed back to QEMU and forget all snapshots, for the guest runs on."""
        for bank, (before, current) in self._snapshots.items():
            for start, end in changed_ranges(before, current):
                self._banks.write(bank, start, current[start:end].data)
        self._snapshots.clear()


def changed_ranges(before: Bytes, after: Bytes) -> list[tuple[int, int]]:
    """Half-open byte ranges, made of whole pages, that cover every difference; both are whole pages long."""
    pages = (before.reshape(-1, _PAGE_BYTES) != after.reshape(-1, _PAGE_BYTES)).any(axis=1)
    edges = np.flatnonzero(np.diff(pages.astype(np.int8), prepend=0, append=0))
    return [(int(start) * _PAGE_BYTES, int(end) * _PAGE_BYTES) for start, end in edges.reshape(-1, 2)]
