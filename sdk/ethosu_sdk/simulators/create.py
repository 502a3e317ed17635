"""From the name of a simulator to the simulator."""

from __future__ import annotations

from ethosu_sdk import tools
from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.simulators.base import Simulator

# Those that run a firmware, in the order in which `auto` looks for them: QEMU needs no licence.
FIRMWARE_SIMULATORS = ("qemu", "fvp")


def is_installed(name: str, npu: str = "") -> bool:
    """Whether the simulator called `name` is installed, the one that has `npu`. QEMU has every NPU."""
    if name == "qemu":
        return tools.probe("qemu-system-arm").status == "found"
    from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

    try:
        FvpSimulator(npu).version()
    except SdkError:
        return False
    return True


def create(
    name: str, npu: str = "", *, fast: bool = False, simulated_limit_s: float | None = None
) -> Simulator:
    """The simulator called `name`, one of :data:`FIRMWARE_SIMULATORS`, for a firmware that uses `npu`.

    `fast` and `simulated_limit_s` are for the FVP: UsageError with another. ToolError when the simulator is missing.
    """
    if name == "fvp":
        from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

        return FvpSimulator(npu, fast=fast, simulated_limit_s=simulated_limit_s)
    if name != "qemu":
        raise ValueError(name)
    if fast or simulated_limit_s is not None:
        option = "--fast" if fast else "--simulated-limit"
        raise UsageError(f"{option} is for the FVP: QEMU does not simulate time", "leave it out")
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator

    return QemuSimulator()
