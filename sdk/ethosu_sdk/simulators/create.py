"""From the name of a simulator to the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ethosu_sdk import tools
from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.simulators.base import Simulator


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """What a simulator can be asked for. Both are for the FVP alone: no other simulates time."""

    fast: bool = False
    simulated_limit_s: float | None = None


@dataclass(frozen=True)
class _Row:
    """`create` makes the simulator for an NPU (None for none); `is_installed` tells whether it could run it."""

    create: Callable[[str | None, SimulatorOptions], Simulator]
    is_installed: Callable[[str | None], bool]


def _qemu(_npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator

    if options.fast or options.simulated_limit_s is not None:
        option = "--fast" if options.fast else "--simulated-limit"
        raise UsageError(f"{option} is for the FVP: QEMU does not simulate time", "leave it out")
    return QemuSimulator()


def _has_qemu(_npu: str | None) -> bool:
    return tools.probe("qemu-system-arm").status == "found"


def _fvp(npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

    return FvpSimulator(npu, fast=options.fast, simulated_limit_s=options.simulated_limit_s)


def _has_fvp(npu: str | None) -> bool:
    try:
        _fvp(npu, SimulatorOptions()).version()
    except SdkError:
        return False
    return True


# Those that run a firmware, in the order in which `auto` looks for them: QEMU needs no licence.
_ROWS = {"qemu": _Row(_qemu, _has_qemu), "fvp": _Row(_fvp, _has_fvp)}
FIRMWARE_SIMULATORS = tuple(_ROWS)


def is_installed(name: str, npu: str | None = None) -> bool:
    """Whether the simulator called `name` is installed, the one that has `npu`. QEMU has every NPU."""
    return _ROWS[name].is_installed(npu)


def create(name: str, npu: str | None = None, options: SimulatorOptions | None = None) -> Simulator:
    """The simulator called `name`, one of :data:`FIRMWARE_SIMULATORS`, for a firmware that uses `npu`, or none.

    UsageError for options that it does not have, ToolError when it is missing.
    """
    return _ROWS[name].create(npu, options or SimulatorOptions())
