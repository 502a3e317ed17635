"""`.pte` → bare-metal firmware: selective kernels, memory placement, CMake and the GNU Arm toolchain."""

from __future__ import annotations

from ethosu_sdk.firmware_build.board_choice import BoardChoice, choose_board
from ethosu_sdk.firmware_build.firmware import WORK_FILES, BuildOptions, FirmwareBuild, Pool, build
from ethosu_sdk.firmware_build.fit import MemoryFitError

__all__ = [
    "WORK_FILES",
    "BoardChoice",
    "BuildOptions",
    "FirmwareBuild",
    "MemoryFitError",
    "Pool",
    "build",
    "choose_board",
]
