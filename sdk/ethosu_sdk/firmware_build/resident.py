"""The resident firmware: one for each board, with every kernel, that takes programs at run time.

It is built like a model's firmware and in the same tree, so that what both share is compiled once. The board's large
memory is divided among a program of any size and its pools; which of them a program uses, and whether it fits, the
firmware finds out itself from the program (firmware/app/resident).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import __version__, pte, records, resources
from ethosu_sdk.errors import BuildError
from ethosu_sdk.firmware_build import boards, cache, cmake, fit, generate, kernels
from ethosu_sdk.firmware_build.boards import Board
from ethosu_sdk.firmware_build.elf import RegionUse, Section, Symbol, read_elf, region_use
from ethosu_sdk.firmware_build.firmware import DEFAULT_NPU_TIMEOUT_MS, allowed_modes, requirements
from ethosu_sdk.firmware_build.layout import aligned

# app/resident/main.cpp: the input image, the header in front of a program, the program.
SYMBOLS = ("input_image", "program_header", "program_memory")
EXECUTABLE = "resident_runner"

# Shares of the large memory, in 32nds: 256 MiB give a program 64 MiB. What is left over is for alignment.
_SHARES = {"program": 8, "planned": 8, "input_image": 6, "scratch": 6, "method_pool": 1}
_PARTS = 32
# Where the linker script's pools lie: the fast scratch pool stands for all memory beside the NPU.
_POOLS = ("MODEL", "SCRATCH", "PLANNED", "METHOD_POOL", "INPUT_IMAGE")


@dataclass(frozen=True)
class ResidentBuild:
    """A resident firmware that is ready to run; `symbols` hold those of :data:`SYMBOLS`."""

    elf: Path
    map: Path
    elf_sha256: str
    build_key: str
    cached: bool  # nothing had to be compiled
    board: str
    regions: tuple[RegionUse, ...]
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]
    kernels: tuple[kernels.Kernel, ...]
    toolchain: dict[str, str]  # program → version
    wall_time_s: float


def build(out_dir: Path, board: str | None = None) -> ResidentBuild:
    """Build the resident firmware of `board`, by default the first, and put ELF and map into `out_dir`.

    It serves every NPU of the board. Raises UsageError for an unknown board, BuildError when a tool fails, ToolError
    when one is missing.
    """
    start = time.monotonic()
    chosen = boards.board(board or boards.BOARDS[0])
    source = resources.directory("firmware")
    every_kernel = tuple(kernels.manifest(source / "kernels" / "kernels.toml").values())
    files = {
        "resident_config.hpp": _config(chosen).encode(),
        "placement.ld": _placement(chosen).encode(),
        "selected_kernels.cpp": generate.selected_kernels(every_kernel).encode(),
    }
    toolchain = cmake.find_toolchain()
    configuration = cmake.Configuration(cache.sources(source), chosen.preset, toolchain)
    key = cache.build_key(
        {
            "files": cache.hashes(files),
            "sources": cache.hashes(configuration.sources),
            "preset": configuration.preset,
            "toolchain": toolchain.versions(),
        }
    )
    products = {name: out_dir / name for name in (f"{EXECUTABLE}.elf", f"{EXECUTABLE}.map")}
    work = out_dir / EXECUTABLE
    with records.locked(work):
        stamp = work / "current.json"
        cached = cache.is_current(stamp, key, products)
        if not cached:
            shared = cache.work_directory({"source": str(source), "preset": configuration.preset})
            cmake.publish(configuration, files, work, shared, tuple(products.values()), EXECUTABLE)
            cache.remember(stamp, key, products)
    elf, linker_map = products.values()
    image = read_elf(elf)
    for name in SYMBOLS:
        image.symbol(name)
    return ResidentBuild(
        elf=elf,
        map=linker_map,
        elf_sha256=records.sha256_file(elf),
        build_key=key,
        cached=cached,
        board=chosen.name,
        regions=region_use(image, chosen),
        sections=image.sections,
        symbols=image.symbols,
        kernels=every_kernel,
        toolchain=toolchain.versions(),
        wall_time_s=time.monotonic() - start,
    )


def check_fit(program: pte.Pte, method: str, board_name: str, *, allow_spill: bool) -> tuple[str, ...]:
    """Whether the resident firmware has room for `program`; notes on what lies elsewhere than its memory mode has it.

    It is what the firmware finds out itself (firmware/app/resident/placement.cpp), said before the run. BuildError,
    with the arithmetic, for what does not fit; without `allow_spill` also for what would leave the fast memory.
    """
    board = boards.board(board_name)
    plan, target = program.plan(method), program.target()
    needs = requirements(program.size, plan, target, None)
    placed = fit.plan(needs, board, 1, allowed_modes(target), allow_spill=allow_spill)
    room = _pool_bytes(board)
    in_bulk = {row.name for row in placed.placements if row.memory == board.bulk}
    wanted = {
        "program": needs.model_bytes,
        "planned": sum(aligned(size) for size in needs.planned_bytes),
        "method_pool": needs.method_pool_bytes,
        "scratch": needs.scratch_bytes if "SCRATCH" in in_bulk else 0,
    }
    for name, size in wanted.items():
        if size > room[name]:
            raise BuildError(
                f"the {name.replace('_', ' ')} of {size:,} bytes does not fit the resident firmware of {board.name}, "
                f"which has {room[name]:,} for it ({size - room[name]:,} too many)",
                "run it without --resident: a firmware of its own divides the memory as the program needs it",
            )
    if "MODEL" not in in_bulk and target is not None:
        return (*placed.notes, _note_on_model(target.memory_mode, board))
    return placed.notes


def _note_on_model(memory_mode: str, board: Board) -> str:
    return (
        f"{memory_mode} has the model in {board.fast.name}, but the resident firmware holds every program in "
        f"{board.bulk.name}: outputs are the same, memory traffic is not that of the mode"
    )


def _pool_bytes(board: Board) -> dict[str, int]:
    part = board.bulk.size_bytes // _PARTS
    return {name: share * part for name, share in _SHARES.items()}


def _config(board: Board) -> str:
    """The text of resident_config.hpp: constants only."""
    sizes = _pool_bytes(board) | {"fast": board.fast.size_bytes}
    return "\n".join(
        [
            "// Generated by ethosu-sdk for one board: do not edit.",
            "#pragma once",
            "",
            "#include <cstddef>",
            "#include <cstdint>",
            "",
            "namespace ethosu_sdk::resident_config {",
            "",
            f'constexpr char firmware[] = "{EXECUTABLE} {__version__}";',
            f"constexpr std::uint32_t npu_timeout_ms = {DEFAULT_NPU_TIMEOUT_MS};",
            *(f"constexpr std::size_t {name}_bytes = {size};" for name, size in sizes.items()),
            "",
            "}  // namespace ethosu_sdk::resident_config",
            "",
        ]
    )


def _placement(board: Board) -> str:
    """The text of placement.ld: which memory each pool of the linker script lies in."""
    rows = [f'REGION_ALIAS("{name}", {board.bulk.name})' for name in _POOLS]
    rows.append(f'REGION_ALIAS("FAST_SCRATCH", {board.fast.name})')
    return "\n".join(["/* Generated by ethosu-sdk for one board: do not edit. */", *rows, ""])
