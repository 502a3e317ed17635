"""Builds an executable of the firmware's tree unless it is current, and reads facts from its ELF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import resources
from ethosu_sdk.boards import Board
from ethosu_sdk.files import hashing, locks
from ethosu_sdk.firmware_build import cache, cmake, generate, kernels
from ethosu_sdk.firmware_build.elf import RegionUse, Section, Symbol, read_elf, region_use
from ethosu_sdk.firmware_build.kernels import Kernel

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
    regions: tuple[RegionUse, ...]
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]
    kernels: tuple[Kernel, ...]  # exactly those that are linked
    toolchain: dict[str, str]  # program → version


def make(recipe: Recipe, out_dir: Path, work: Path) -> Executable:
    """Put ELF and map into `out_dir`; the folder `work` keeps what tells whether they are current, and the log.

    Raises BuildError when a tool fails, ToolError when one is missing.
    """
    toolchain = cmake.find_toolchain()
    source = resources.directory("firmware")
    configuration = cmake.Configuration(cache.sources(source), recipe.board.name, toolchain)
    files = {
        **recipe.files,
        "selected_kernels.cpp": generate.selected_kernels(recipe.kernels).encode(),
        cmake.OPERATORS: kernels.source_list(recipe.kernels, configuration.sources).encode(),
    }
    key = cache.build_key(
        {
            "files": cache.hashes(files),
            "sources": cache.hashes(configuration.sources),
            "preset": configuration.preset,
            "toolchain": toolchain.versions(),
        }
    )
    elf, linker_map = out_dir / f"{recipe.name}.elf", out_dir / f"{recipe.name}.map"
    products = {path.name: path for path in (elf, linker_map)}
    with locks.locked(work):
        stamp = work / STAMP_NAME
        cached = cache.is_current(stamp, key, products)
        if not cached:
            shared = cache.work_directory({"source": str(source), "preset": configuration.preset})
            cmake.publish(configuration, files, work, shared, (elf, linker_map), recipe.name)
            cache.remember(stamp, key, products)
    image = read_elf(elf)
    for name in recipe.symbols:
        image.symbol(name)
    return Executable(
        elf=elf,
        map=linker_map,
        elf_sha256=hashing.sha256_file(elf),
        build_key=key,
        cached=cached,
        board=recipe.board.name,
        regions=region_use(image, recipe.board),
        sections=image.sections,
        symbols=image.symbols,
        kernels=recipe.kernels,
        toolchain=toolchain.versions(),
    )
