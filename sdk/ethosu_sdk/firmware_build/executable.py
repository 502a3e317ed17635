"""Builds an executable of the firmware's tree unless it is current, and reads facts from its ELF."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import cache, filesystem, json_text, resources
from ethosu_sdk.base.boards import Board, Memory
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.firmware_build import cmake, generated_files
from ethosu_sdk.firmware_build.generated_files import Kernel
from ethosu_sdk.records.common import Use

STAMP_NAME = "current.json"  # the record that shows whether a build is current


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an executable is made of. `files` are generated ones by name, beside the table of `kernels`."""

    name: str  # of firmware/cmake
    board: Board
    kernels: tuple[Kernel, ...]
    files: dict[str, bytes]
    symbols: tuple[str, ...]  # those that it is of no use without


@dataclass(frozen=True, kw_only=True)
class Executable:
    """A firmware that is ready to run, and what is known of it."""

    elf: Path
    map: Path
    elf_sha256: str
    build_key: str
    cached: bool  # nothing had to be compiled
    board: str
    regions: tuple[Use, ...]
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]
    kernels: tuple[Kernel, ...]  # exactly those that are linked


def make_executable(recipe: Recipe, out_dir: Path, work: Path) -> Executable:
    """Put ELF and map into `out_dir`; the folder `work` keeps what tells whether they are current, and the log.

    Raises BuildError when a tool fails, ToolError when one is missing.
    """
    toolchain = cmake.find_toolchain()
    source = resources.directory("firmware")
    configuration = cmake.TreeConfiguration(
        firmware_sources(source, recipe.board), recipe.board.name, toolchain
    )
    files = {
        **recipe.files,
        "selected_kernels.cpp": generated_files.selected_kernels(recipe.kernels).encode(),
        cmake.OPERATORS: generated_files.source_list(recipe.kernels, configuration.sources).encode(),
    }
    key = build_key(
        {
            "files": content_hashes(files),
            "sources": content_hashes(configuration.sources),
            "board": configuration.board,
            "toolchain": toolchain.versions(),
        }
    )
    elf, linker_map = out_dir / f"{recipe.name}.elf", out_dir / f"{recipe.name}.map"
    products = {path.name: path for path in (elf, linker_map)}
    with filesystem.locked_folder(work):
        stamp = work / STAMP_NAME
        cached = is_current(stamp, key, products)
        if not cached:
            shared = work_directory({"source": str(source), "board": configuration.board})
            cmake.publish_products(configuration, files, work, shared, (elf, linker_map), recipe.name)
            remember(stamp, key, products)
    image = read_elf(elf)
    for name in recipe.symbols:
        image.symbol(name)
    return Executable(
        elf=elf,
        map=linker_map,
        elf_sha256=filesystem.sha256_file(elf),
        build_key=key,
        cached=cached,
        board=recipe.board.name,
        regions=region_use(image, recipe.board),
        sections=image.sections,
        symbols=image.symbols,
        kernels=recipe.kernels,
    )


def work_directory(identity: Mapping[str, object]) -> Path | None:
    """A folder for the objects that all models share. Each `identity` has its own; its user takes its lock.

    None where the cache cannot be written, or CMake cannot build.
    """
    part = f"firmware/{build_key(identity)[:16]}"
    if cmake.unfit_characters(cache.place(part)):
        return None
    try:
        return cache.directory(part)
    except BuildError:
        return None


def firmware_sources(root: Path, board: Board | None = None) -> dict[str, bytes]:
    """All files below `root` that a firmware is built from, and the generated ones, by their names relative to it;
    with those of a user's `board`.

    Raises InputError when one cannot be read.
    """
    found = generated_files.shared_sources(board)
    rows = [(path, path.relative_to(root)) for path in sorted(root.rglob("*"))]
    if board is not None and board.folder is not None:
        place = Path("board", board.name)
        rows += [(path, place / path.relative_to(board.folder)) for path in sorted(board.folder.rglob("*"))]
    for path, relative in rows:
        if path.is_file() and not {"tests", "README.md"} & set(relative.parts):
            try:
                found[relative.as_posix()] = path.read_bytes()
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror}") from error
    return found


def content_hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: filesystem.sha256_bytes(content) for name, content in files.items()}


def build_key(parts: Mapping[str, object]) -> str:
    """SHA-256 over everything that shapes a firmware: content hashes, generated texts, versions; never times or
    paths."""
    return filesystem.sha256_bytes(json.dumps(parts, sort_keys=True).encode())


def is_current(stamp: Path, key: str, products: Mapping[str, Path]) -> bool:
    """Whether `products` are those that `remember` noted in `stamp` under the same `key`."""
    try:
        return json_text.read_json(stamp) == _stamp_of(key, products)
    except InputError:  # no stamp, a damaged one, or a product that is gone
        return False


def remember(stamp: Path, key: str, products: Mapping[str, Path]) -> None:
    """Note that `products` are what `key` gives."""
    json_text.write_json(stamp, _stamp_of(key, products))


def _stamp_of(key: str, products: Mapping[str, Path]) -> Record:
    return {"key": key, "sha256": {name: filesystem.sha256_file(path) for name, path in products.items()}}


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
    with _opened(path) as elf:
        return Image(_sections(elf), _symbols(elf))


def section_bytes(path: Path, name: str) -> bytes:
    """The content of the section `name` of the ELF at `path`. BuildError when there is none."""
    with _opened(path) as elf:
        section = elf.get_section_by_name(name)
        if section is None:
            raise BuildError(f"the firmware has no section '{name}'")
        return bytes(section.data())


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[ELFFile]:
    try:
        with path.open("rb") as stream:
            yield ELFFile(stream)
    except (OSError, ELFError) as error:
        raise BuildError(f"cannot read {path} as an ELF file: {error}") from error


def _sections(elf: ELFFile) -> tuple[Section, ...]:
    segments = [row.header for row in elf.iter_segments("PT_LOAD") if row.header.p_memsz]
    rows = []
    for section in elf.iter_sections():
        if not section["sh_flags"] & SH_FLAGS.SHF_ALLOC or not section["sh_size"]:
            continue
        address = section["sh_addr"]
        home = next((row for row in segments if row.p_vaddr <= address < row.p_vaddr + row.p_memsz), None)
        rows.append(
            Section(
                name=section.name,
                address=address,
                load_address=address if home is None else address - home.p_vaddr + home.p_paddr,
                bytes=section["sh_size"],
                in_file=section["sh_type"] != "SHT_NOBITS",
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
        if info >> 4 == 1:  # STB_GLOBAL
            name = names[offset : names.find(b"\0", offset)].decode(errors="replace")
            found[name] = Symbol(name, address, size)
    return found


def region_use(image: Image, board: Board) -> tuple[Use, ...]:
    """Use of every memory of `board`: bytes of the sections that lie or are stored in it."""
    return tuple(
        Use(name=memory.name, used_bytes=_used(image, memory), size_bytes=memory.size_bytes)
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
