"""The firmware in the board's memories: what its ELF file loads, which function an address is in, and reading
memory back.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError, SdkError, SimulationError
from ethosu_sdk.simulate.qemu.gdb_remote import GdbClosedError, GdbError
from ethosu_sdk.simulate.qemu.machine import Machine
from ethosu_sdk.simulate.qemu.memories import MPS3_AN547, BankAccess, BoardMap
from ethosu_sdk.simulate.simulation import LoadedElf, LoadedSegment

_MOST_SECTIONS, _MOST_SEGMENTS, _MOST_SYMBOLS = 1 << 12, 1 << 8, 1 << 20  # far more than firmwares have


@dataclass(frozen=True)
class Range:
    """A range of guest memory."""

    address: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


def read_loaded(path: Path, board: BoardMap = MPS3_AN547) -> tuple[Range, ...]:
    """Where the contents of the ELF file at `path` come to stand in the memories of `board`, section by section.

    Raises InputError when it is no little-endian 32-bit Arm executable, or reaches outside of the memories.
    """
    try:
        with filesystem.open_regular(path) as stream:
            elf = ELFFile(stream)
            if elf["e_machine"] != "EM_ARM" or elf.elfclass != 32 or not elf.little_endian:
                raise InputError(f"{path} is not a 32-bit little-endian Arm executable")
            if elf.num_sections() > _MOST_SECTIONS or elf.num_segments() > _MOST_SEGMENTS:
                raise InputError(
                    f"{path} has {elf.num_sections():,} sections and {elf.num_segments():,} segments, at most "
                    f"{_MOST_SECTIONS:,} and {_MOST_SEGMENTS:,} are read"
                )
            segments = [row for row in elf.iter_segments() if row["p_type"] == "PT_LOAD" and row["p_memsz"]]
            _check_segments(path, segments, board)
            return tuple(_loaded_sections(elf, segments))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ELFError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise InputError(f"{path} is not an ELF file that can be read: {error}") from error


def _check_segments(path: Path, segments: Sequence[Any], board: BoardMap) -> None:
    if not segments:
        raise InputError(f"{path} holds nothing to load")
    for row in segments:
        address, size_bytes = row["p_paddr"], row["p_memsz"]
        if board.find_bank(address, size_bytes) is None:
            raise InputError(
                f"{path}: the segment of {size_bytes:,} bytes at {address:#010x} does not lie in one memory"
                " of the board",
                f"link the firmware for {board.name}",
            )


def _loaded_sections(elf: Any, segments: Sequence[Any]) -> Iterator[Range]:
    """Sections and not segments: between two sections a segment may cover one that is not loaded."""
    for section in elf.iter_sections():
        if section["sh_type"] in ("SHT_NULL", "SHT_NOBITS") or not section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
            continue
        for row in segments:
            inside = section["sh_offset"] - row["p_offset"]
            if section["sh_size"] and 0 <= inside < row["p_filesz"]:
                yield Range(row["p_paddr"] + inside, section["sh_size"])


def check_images(
    images: Sequence[tuple[int, bytes]], loaded: Sequence[Range], board: BoardMap = MPS3_AN547
) -> None:
    """InputError when an image lies outside of the memories that QEMU shares, or over other contents."""
    taken = list(loaded)
    for address, data in images:
        image = Range(address, len(data))
        found = board.find_bank(address, len(data))
        if found is None or not found[0].option:
            names = " or ".join(bank.name for bank in reversed(board.shared))
            raise InputError(
                f"the image of {len(data):,} bytes at {address:#010x} does not lie in the board's {names}"
            )
        for other in taken:
            if image.address < other.end and other.address < image.end:
                raise InputError(
                    f"the image of {len(data):,} bytes at {address:#010x} overlaps the {other.size_bytes:,}"
                    f" bytes at {other.address:#010x}"
                )
        taken.append(image)


@dataclass(frozen=True)
class Symbols:
    """The functions of a firmware, ordered by address."""

    addresses: tuple[int, ...]
    sizes: tuple[int, ...]
    names: tuple[str, ...]

    def locate(self, address: int) -> str:
        """``"name+0x12"`` for the function that holds `address`; empty when none does."""
        index = bisect.bisect_right(self.addresses, address) - 1
        if index < 0 or address >= self.addresses[index] + max(self.sizes[index], 4):
            return ""
        return f"{self.names[index]}+{address - self.addresses[index]:#x}"


def read_symbols(path: Path) -> Symbols:
    """The functions in the symbol table of the ELF file at `path`; none when it cannot be read."""
    found: set[tuple[int, int, str]] = set()
    try:
        with filesystem.open_regular(path) as stream:
            elf = ELFFile(stream)
            for section in elf.iter_sections() if elf.num_sections() <= _MOST_SECTIONS else ():
                if isinstance(section, SymbolTableSection) and section.num_symbols() <= _MOST_SYMBOLS:
                    found.update(
                        (row["st_value"] & ~1, row["st_size"], row.name)  # bit 0 marks Thumb code
                        for row in section.iter_symbols()
                        if row["st_info"]["type"] == "STT_FUNC" and row["st_shndx"] != "SHN_UNDEF"
                    )
    except (SdkError, OSError, ELFError, ValueError, KeyError, ZeroDivisionError, TypeError, AttributeError):
        found = set()  # symbols serve an error message: their lack must not hide the error itself
    rows = sorted(found)
    return Symbols(tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(r[2] for r in rows))


def compare_loaded(path: Path, machine: Machine) -> LoadedElf:
    """The segments of the ELF file at `path` as the memories of a guest hold them that has not run yet.

    SimulationError when they are not those of the file, or cannot be read.
    """
    with filesystem.open_regular(path) as stream:
        try:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return LoadedElf(digest, tuple(_compared(path, stream, machine)))
        except (OSError, ELFError, ValueError) as error:
            raise InputError(f"{path} cannot be read again: {error}") from error
        except GdbError as error:
            raise SimulationError(f"QEMU does not show its memory before the run: {error}") from error


def _compared(path: Path, stream: BinaryIO, machine: Machine) -> Iterator[LoadedSegment]:
    for segment in ELFFile(stream).iter_segments("PT_LOAD"):
        address, size_bytes = segment["p_paddr"], segment["p_filesz"]
        if not size_bytes:
            continue
        shared = machine.shared_bytes(address, size_bytes)
        held = machine.gdb.read_memory(address, size_bytes) if shared is None else bytes(shared)
        if held != segment.data():
            raise SimulationError(
                f"QEMU did not load {path.name} correctly: its memory at {address:#010x} has other bytes than the "
                f"segment of {size_bytes:,} bytes",
                "the file was changed while the run began, or this QEMU loads it in another way",
            )
        yield LoadedSegment(address, size_bytes, hashlib.sha256(held).hexdigest())


_STOP_S = 2.0


def check_ranges(ranges: Sequence[tuple[int, int]], board: BoardMap) -> None:
    """InputError for a range that does not lie in one memory of the board."""
    for address, size_bytes in ranges:
        if size_bytes <= 0 or board.find_bank(address, size_bytes) is None:
            raise InputError(
                f"the {size_bytes:,} bytes at {address:#010x} to read do not lie in one memory of the board"
            )


def stop_guest(machine: Machine) -> None:
    """Stop a guest that may still run, so that its memories can be read. SimulationError when it does not."""
    try:
        machine.gdb.interrupt()
        stopped = machine.gdb.receive(_STOP_S)
    except GdbClosedError:
        return  # after its last character, the firmware ended QEMU itself before we could stop it
    except GdbError as error:
        raise SimulationError(f"QEMU does not take part as expected: {error}") from error
    if stopped is None:
        raise SimulationError("QEMU did not stop at the end of the run")


def read_ranges(ranges: Sequence[tuple[int, int]], machine: Machine, banks: BankAccess) -> tuple[bytes, ...]:
    """The bytes of each of the `ranges`. SimulationError for a memory that went with QEMU."""
    return tuple(_read_range(address, size_bytes, machine, banks) for address, size_bytes in ranges)


def _read_range(address: int, size_bytes: int, machine: Machine, banks: BankAccess) -> bytes:
    shared = machine.shared_bytes(address, size_bytes)
    if shared is not None:  # which is there after QEMU's end
        return bytes(shared)
    found = machine.board.find_bank(address)
    assert found is not None  # checked before the run
    bank, offset = found
    try:
        return bytes(banks.read(bank)[offset : offset + size_bytes])
    except GdbError as error:
        raise SimulationError(
            f"{bank.name} at {address:#010x} cannot be read after the run: the firmware ended QEMU by semihosting",
            "read it from DDR, or end the firmware with a character on its UART",
        ) from error
