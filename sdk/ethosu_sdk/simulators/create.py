"""From the name of a simulator to the simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.simulators.base import Simulator

if TYPE_CHECKING:
    from ethosu_sdk.npu.timing.system_config import SystemConfig


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """What a simulator can be asked for.

    `fast` and `simulated_limit_s` are for the FVP alone: no other simulates time. `memories` are those that modelled
    cycles are for, by default the target's.
    """

    fast: bool = False
    simulated_limit_s: float | None = None
    memories: SystemConfig | None = None


@dataclass(frozen=True)
class _Row:
    """`create` makes the simulator for a board and an NPU (None: the first board of the simulator, no NPU);
    `is_installed` tells whether it could run them."""

    create: Callable[[str | None, str | None, SimulatorOptions], Simulator]
    is_installed: Callable[[str | None, str | None], bool]


def _qemu(board: str | None, _npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator, open_npu_model

    if options.fast or options.simulated_limit_s is not None:
        option = "--fast" if options.fast else "--simulated-limit"
        raise UsageError(f"{option} is for the FVP: QEMU does not simulate time", "leave it out")
    device = functools.partial(open_npu_model, system=options.memories)
    return QemuSimulator(device) if board is None else QemuSimulator(device, board=board)


def _has_qemu(board: str | None, npu: str | None) -> bool:
    try:
        _qemu(board, npu, SimulatorOptions()).version()
    except SdkError:
        return False
    return True


def _fvp(_board: str | None, npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

    if options.memories is not None:
        raise UsageError(
            "the FVP has timing adapters of its own, which a firmware sets", "leave --memory-timing out"
        )
    return FvpSimulator(npu, fast=options.fast, simulated_limit_s=options.simulated_limit_s)


def _has_fvp(board: str | None, npu: str | None) -> bool:
    try:
        _fvp(board, npu, SimulatorOptions()).version()
    except SdkError:
        return False
    return True


# Those that run a firmware, in the order in which `auto` looks for them: QEMU needs no licence.
_ROWS = {"qemu": _Row(_qemu, _has_qemu), "fvp": _Row(_fvp, _has_fvp)}
FIRMWARE_SIMULATORS = tuple(_ROWS)


def is_installed(name: str, npu: str | None = None, board: str | None = None) -> bool:
    """Whether the simulator called `name` is installed, the one that has `npu` on `board` (None: on its first)."""
    return _ROWS[name].is_installed(board, npu)


def create(
    name: str, npu: str | None = None, options: SimulatorOptions | None = None, board: str | None = None
) -> Simulator:
    """The simulator called `name`, one of :data:`FIRMWARE_SIMULATORS`, for a firmware that uses `npu`, or none.

    UsageError for options that it does not have, ToolError when it is missing.
    """
    return _ROWS[name].create(board, npu, options or SimulatorOptions())
