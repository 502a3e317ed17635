"""The firmware's ELF file as the simulator needs it: what it loads, and which function an address is in."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.files import opening
from ethosu_sdk.simulators.qemu.memory_map import MPS3_AN547, BoardMap

_MOST_SECTIONS, _MOST_SEGMENTS, _MOST_SYMBOLS = 1 << 12, 1 << 8, 1 << 20  # far more than firmwares have


@dataclass(frozen=True)
class Range:
    """A range of guest memory."""

    address: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.address + self.size_bytes


def read_loaded(path: Path, board: BoardMap = MPS3_AN547) -> tuple[Range, ...]:
    """Where the contents of the ELF file at `path` come to stand in the memories of `board`, section by section.

    Raises InputError when it is no little-endian 32-bit Arm executable, or reaches outside of the memories.
    """
    try:
        with opening.regular(path) as stream:
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
        found = board.find_bank(address)
        if found is None or found[1] + size_bytes > found[0].size_bytes:
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
        found = board.find_bank(address)
        if found is None or not found[0].option or found[1] + len(data) > found[0].size_bytes:
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
        with opening.regular(path) as stream:
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
