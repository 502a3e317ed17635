"""Compiles the test programs of this folder, and says what their parameters mean."""

import enum
import struct
import subprocess
from pathlib import Path

_FOLDER = Path(__file__).parent
_SOURCES = {"scenarios": ("start.c", "scenarios.c"), "forms": ("start.c", "forms.c", "forms.S")}
_COMMAND = (
    *("arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m55+nomve+nofp", "-mfloat-abi=soft", "-O2"),
    *("-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib"),
    *("-Wl,--fatal-warnings", "-Wl,--no-warn-rwx-segments"),
)

# The linker script and what board.h is told, by board.
_BOARDS = {"corstone-300": ("board.ld", ()), "corstone-320": ("board_320.ld", ("-DCORSTONE_320",))}

PARAMETERS_ADDRESS = 0x7000_0000  # the first thing in DDR, see board.ld


class Scenario(enum.IntEnum):
    """What scenarios.c does; its enumeration has the same values."""

    EXIT = 0
    SPIN = 1
    SLEEP = 2
    HALF_LINE = 3
    LOCKUP = 4
    RESET_BOARD = 5
    CHATTER = 6
    PRINT_MANY = 7
    WAIT_FOR_IRQ = 8
    MEMORIES = 9
    SUM_PAYLOAD = 10
    EXCLUSIVE = 11
    WRITE_REGISTER = 12
    UNALIGNED = 13
    STRADDLE = 14
    MANY_READS = 15
    READ_REGISTER = 16
    POLL = 17
    PRIVATE_MEMORY = 18
    COUNT_CYCLES = 19


def compile_program(name: str, folder: Path, board: str = "corstone-300") -> Path:
    """The ELF file of the test program `name` for `board`, made in `folder`."""
    script, options = _BOARDS[board]
    elf = folder / f"{name}.elf"
    sources = [str(_FOLDER / source) for source in _SOURCES[name]]
    place = ["-T", str(_FOLDER / script), "-o", str(elf)]
    command = [*_COMMAND, *options, *place, *sources, "-lc", "-lgcc"]
    subprocess.run(command, check=True, timeout=120)
    return elf


def parameters(
    scenario: Scenario, first: int = 0, second: int = 0, payload: bytes = b""
) -> tuple[int, bytes]:
    """The image that makes scenarios.c do `scenario`."""
    return PARAMETERS_ADDRESS, struct.pack("<3I", scenario, first, second) + payload
