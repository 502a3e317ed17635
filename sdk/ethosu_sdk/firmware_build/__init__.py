"""`.pte` → bare-metal firmware: selective kernels, memory placement, CMake and the GNU Arm toolchain."""

from __future__ import annotations

from ethosu_sdk.firmware_build.boards import BOARDS
from ethosu_sdk.firmware_build.firmware import FirmwareBuild, Pool, build

__all__ = ["BOARDS", "FirmwareBuild", "Pool", "build"]
