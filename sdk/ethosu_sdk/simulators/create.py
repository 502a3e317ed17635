"""From the name of a simulator to the simulator."""

from __future__ import annotations

from ethosu_sdk.simulators.base import Simulator


def create(name: str) -> Simulator:
    """The simulator called `name`; ``auto`` takes QEMU, which needs no licence. ToolError when it is missing."""
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator

    if name not in ("auto", "qemu"):
        raise ValueError(name)
    return QemuSimulator()
