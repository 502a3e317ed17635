"""From the name of a simulator to the simulator."""

from __future__ import annotations

from ethosu_sdk.errors import UsageError
from ethosu_sdk.simulators.base import Simulator


def create(
    name: str, npu: str = "", *, fast: bool = False, simulated_limit_s: float | None = None
) -> Simulator:
    """The simulator called `name` for a firmware that uses `npu`; ``auto`` takes QEMU, which needs no licence.

    `fast` and `simulated_limit_s` are for the FVP: UsageError with another. ToolError when the simulator is missing.
    """
    if name == "fvp":
        from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

        return FvpSimulator(npu, fast=fast, simulated_limit_s=simulated_limit_s)
    if name not in ("auto", "qemu"):
        raise ValueError(name)
    if fast or simulated_limit_s is not None:
        option = "--fast" if fast else "--simulated-limit"
        raise UsageError(f"{option} is for the FVP: QEMU does not simulate time", "leave it out")
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator

    return QemuSimulator()
