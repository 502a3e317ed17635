"""Two ways to read and write memories inside QEMU while the guest is stopped.

The gdb stub moves some 60 MB/s, which makes a 4 MiB SRAM cost more than everything else in an inference.
Linux lets a parent read and write its child's memory through ``/proc/PID/mem`` (proc(5)) a hundred times
faster, where ptrace(2) access is allowed. The place of a memory in QEMU is found by content and
proved before use: tokens of 256 random bits are laid at both of its ends through the stub, and one back.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk.simulators.qemu.gdbremote import GdbError, GdbRemote
from ethosu_sdk.simulators.qemu.memory_map import Bank

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
        """The whole memory. Raises GdbError."""
        places = self.places(bank)
        if places is None:
            return super().read(bank)
        data = bytearray(bank.size_bytes)
        for index, place in enumerate(places):
            start = index * bank.block_bytes
            piece = memoryview(data)[start : start + bank.block_bytes]
            try:
                moved = os.preadv(self._memory, [piece], place)
            except OSError as error:
                raise GdbError(f"QEMU's memory cannot be read: {error.strerror}") from error
            _check_moved(moved, piece)
        return data

    def write(self, bank: Bank, offset: int, data: memoryview) -> None:
        """Replace the bytes at `offset`. Raises GdbError."""
        places = self.places(bank)
        if places is None:
            super().write(bank, offset, data)
            return
        for index, place in enumerate(places):
            start = index * bank.block_bytes
            piece = data[max(0, start - offset) : max(0, start + bank.block_bytes - offset)]
            if not len(piece):
                continue
            try:
                moved = os.pwritev(self._memory, [piece], place + max(0, offset - start))
            except OSError as error:
                raise GdbError(f"QEMU's memory cannot be written: {error.strerror}") from error
            _check_moved(moved, piece)

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


def _check_moved(moved: int, piece: memoryview) -> None:
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
