"""The resident firmware: one for each board, with every kernel, that takes programs at run time.

It is built like a model's firmware and in the same tree, so that what both share is compiled once. The board's large
memory is divided among a program of any size and its pools; which of them a program uses, and whether it fits, the
firmware finds out itself from the program (firmware/app/resident).
"""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import __version__
from ethosu_sdk.base import boards
from ethosu_sdk.base.boards import Board
from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.base.targets import MemoryAreas, Target
from ethosu_sdk.firmware_build import executable, generated_files, memory_fit
from ethosu_sdk.firmware_build.executable import Executable, Recipe
from ethosu_sdk.firmware_build.generated_files import header_text
from ethosu_sdk.firmware_build.memory_fit import aligned, memory_mode
from ethosu_sdk.firmware_build.program_firmware import DEFAULT_NPU_TIMEOUT_MS, allowed_modes, requirements
from ethosu_sdk.program import protocol, pte

# The input image, the header in front of a program, the program.
SYMBOLS = (protocol.INPUT_IMAGE_SYMBOL, protocol.PROGRAM_HEADER_SYMBOL, protocol.PROGRAM_MEMORY_SYMBOL)
RESIDENT_EXECUTABLE = "resident_runner"
DEVICE_EXECUTABLE = "device_runner"  # which takes them over its UART

# Shares of the large memory, in 32nds: 256 MiB give a program 64 MiB. What is left over is for alignment.
_SHARES = {"program": 8, "planned": 8, "input_image": 6, "scratch": 6, "method_pool": 1}
_PARTS = 32
# Where the linker script's pools lie: the fast scratch pool stands for all memory beside the NPU.
_POOLS = ("MODEL", "SCRATCH", "PLANNED", "METHOD_POOL", "INPUT_IMAGE")


def build_resident(
    out_dir: Path, board: str | None = None, executable_name: str = RESIDENT_EXECUTABLE
) -> Executable:
    """Build the resident firmware of `board`, by default the first, and put ELF and map into `out_dir`.

    It serves every NPU of the board. Raises UsageError for an unknown board, BuildError when a tool fails, ToolError
    when one is missing.
    """
    chosen = boards.board_named(board or boards.BOARD_NAMES[0])
    recipe = Recipe(
        name=executable_name,
        board=chosen,
        kernels=tuple(generated_files.known_kernels().values()),
        files={
            "resident_config.hpp": _config(chosen, executable_name).encode(),
            "placement.ld": _placement(chosen).encode(),
        },
        symbols=SYMBOLS,
    )
    return executable.make_executable(recipe, out_dir, out_dir / executable_name)


def check_fit(
    program: pte.Pte, method: str, board_name: str, areas: MemoryAreas | None = None, *, allow_spill: bool
) -> tuple[str, ...]:
    """Whether the resident firmware has room for `program`; notes on what lies elsewhere than its memory mode has it.

    It is what the firmware finds out itself (firmware/app/resident/placement.cpp), said before the run. BuildError,
    with the arithmetic, for what does not fit; without `allow_spill` also for what would leave the fast memory.
    """
    board = boards.board_named(board_name)
    plan, target = program.plan(method), program.target()
    needs = requirements(program.size, [plan], target, None, areas)
    modes = allowed_modes(target)
    placed = memory_fit.fitting_layout(needs, board, 1, modes, allow_spill=allow_spill, npu=program.npu())
    room = _pool_bytes(board)
    in_bulk = {row.name for row in placed.placements if row.memory == board.bulk}
    needed_bytes = {
        "program": needs.model_bytes,
        "planned": sum(aligned(size) for size in needs.planned_bytes),
        "method_pool": needs.method_pool_bytes,
        "scratch": needs.scratch_bytes if "SCRATCH" in in_bulk else 0,
    }
    for name, size in needed_bytes.items():
        if size > room[name]:
            raise BuildError(
                f"the {name.replace('_', ' ')} of {size:,} bytes does not fit the resident firmware of "
                f"{board.name}, which has {room[name]:,} for it ({size - room[name]:,} too many)",
                "run it without --resident: firmware built for the program divides the memory as the program needs",
            )
    if "MODEL" in in_bulk or target is None:
        return placed.notes
    note = (
        f"{target.memory_mode} has the model in {board.fast.name}, but the resident firmware holds every program in "
        f"{board.bulk.name}: outputs are the same, memory traffic is not that of the mode"
    )
    return (*placed.notes, note)


def mode_number(target: Target | None, areas: MemoryAreas | None) -> int:
    """How the program header says where the memory mode of `target` has things; `areas` say so of a user's own.

    BuildError for a mode that is not known.
    """
    if target is None:
        return protocol.PROGRAM_MODE_BY_NAME
    return protocol.PROGRAM_MODES[memory_mode(target.memory_mode, areas).settings]


def _pool_bytes(board: Board) -> dict[str, int]:
    part = board.bulk.size_bytes // _PARTS
    return {name: share * part for name, share in _SHARES.items()}


def _config(board: Board, executable_name: str) -> str:
    """The text of resident_config.hpp: constants only."""
    sizes = _pool_bytes(board) | {"fast": board.fast.size_bytes}
    return header_text(
        "// Generated by ethosu-sdk for one board: do not edit.",
        ("<cstddef>", "<cstdint>"),
        "ethosu_sdk::resident_config",
        [
            f'constexpr char firmware[] = "{executable_name} {__version__}";',
            f"constexpr std::uint32_t npu_timeout_ms = {DEFAULT_NPU_TIMEOUT_MS};",
            *(f"constexpr std::size_t {name}_bytes = {size};" for name, size in sizes.items()),
        ],
    )


def _placement(board: Board) -> str:
    """The text of placement.ld: which memory each pool of the linker script lies in."""
    rows = [f'REGION_ALIAS("{name}", {board.bulk.name})' for name in _POOLS]
    rows.append(f'REGION_ALIAS("FAST_SCRATCH", {board.fast.name})')
    return "\n".join(["/* Generated by ethosu-sdk for one board: do not edit. */", *rows, ""])
