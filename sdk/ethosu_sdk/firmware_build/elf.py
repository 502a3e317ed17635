"""Facts read from a finished ELF: memory used per region, pools and symbols. Read with pyelftools."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ethosu_sdk.boards import Board, Memory
from ethosu_sdk.errors import BuildError

_SHF_ALLOC = 0x2
_SHT_NOBITS = "SHT_NOBITS"
_STB_GLOBAL = 1
_SYMBOL = struct.Struct("<IIIBBH")  # Elf32_Sym: name, value, size, info, other, section


@dataclass(frozen=True)
class Section:
    """One section that takes memory; `load_address` differs from `address` where start-up code copies it."""

    name: str
    address: int
    load_address: int
    bytes: int
    in_file: bool


@dataclass(frozen=True)
class RegionUse:
    """How much of one memory the firmware takes."""

    name: str
    origin: int
    used_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class Symbol:
    """A symbol of the firmware: its address and size in bytes."""

    name: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Image:
    """The parts of an ELF that a report needs."""

    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]

    def symbol(self, name: str) -> Symbol:
        """The symbol called `name`; BuildError when the firmware has none."""
        if name not in self.symbols:
            raise BuildError(f"the firmware has no symbol '{name}'")
        return self.symbols[name]


def read_elf(path: Path) -> Image:
    """Sections and global symbols of the ELF at `path`. BuildError when it is not an ELF."""
    try:
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            return Image(_sections(elf), _symbols(elf))
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read {path} as an ELF file: {error}") from error


def section_bytes(path: Path, name: str) -> bytes:
    """The content of the section `name` of the ELF at `path`. BuildError when there is none."""
    try:
        with path.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(name)
            if section is not None:
                return bytes(section.data())
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read {path} as an ELF file: {error}") from error
    raise BuildError(f"the firmware has no section '{name}'")


def _sections(elf: ELFFile) -> tuple[Section, ...]:
    segments = [row.header for row in elf.iter_segments("PT_LOAD") if row.header.p_memsz]
    rows = []
    for section in elf.iter_sections():
        if not section["sh_flags"] & _SHF_ALLOC or not section["sh_size"]:
            continue
        address = section["sh_addr"]
        home = next((row for row in segments if row.p_vaddr <= address < row.p_vaddr + row.p_memsz), None)
        rows.append(
            Section(
                name=section.name,
                address=address,
                load_address=address if home is None else address - home.p_vaddr + home.p_paddr,
                bytes=section["sh_size"],
                in_file=section["sh_type"] != _SHT_NOBITS,
            )
        )
    return tuple(rows)


def _symbols(elf: ELFFile) -> dict[str, Symbol]:
    """The global symbols. pyelftools' own reader takes 30 ms for a firmware's thousand."""
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return {}
    names, data = elf.get_section(table["sh_link"]).data(), table.data()
    if elf.elfclass != 32 or not elf.little_endian or len(data) % _SYMBOL.size:
        raise ELFError("its symbols are not those of a 32-bit Arm program")
    found = {}
    for offset, address, size, info, _, _ in _SYMBOL.iter_unpack(data):
        if info >> 4 == _STB_GLOBAL:
            name = names[offset : names.find(b"\0", offset)].decode(errors="replace")
            found[name] = Symbol(name, address, size)
    return found


def region_use(image: Image, board: Board) -> tuple[RegionUse, ...]:
    """Use of every memory of `board`: bytes of the sections that lie or are stored in it."""
    return tuple(
        RegionUse(memory.name, memory.origin, _used(image, memory), memory.size_bytes)
        for memory in board.memories
    )


def _used(image: Image, memory: Memory) -> int:
    used = 0
    for section in image.sections:
        if memory.holds(section.address):
            used += section.bytes
        if section.in_file and section.load_address != section.address and memory.holds(section.load_address):
            used += section.bytes
    return used
