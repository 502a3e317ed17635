"""From the name of a simulator to the simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ethosu_sdk.errors import SdkError
from ethosu_sdk.simulators.base import Simulator

if TYPE_CHECKING:
    from ethosu_sdk.npu.reach import Reach
    from ethosu_sdk.npu.timing.system_config import SystemConfig


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    """What a simulator can be asked for.

    `fast` and `simulated_limit_s` are for the FVP: QEMU does not simulate time. `memories` are those that QEMU's
    modelled cycles are for, by default the target's: the FVP has its own. `streams` are the command streams of which
    QEMU's NPU knows what they may reach. `run` refuses what does not apply.
    """

    fast: bool = False
    simulated_limit_s: float | None = None
    memories: SystemConfig | None = None
    streams: Mapping[bytes, Reach] = field(default_factory=dict, repr=False)


def _qemu(board: str | None, _npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.qemu.simulator import QemuSimulator, open_npu_model

    device = functools.partial(open_npu_model, system=options.memories, streams=options.streams)
    return QemuSimulator(device) if board is None else QemuSimulator(device, board=board)


def _fvp(_board: str | None, npu: str | None, options: SimulatorOptions) -> Simulator:
    from ethosu_sdk.simulators.fvp.simulator import FvpSimulator

    return FvpSimulator(npu, fast=options.fast, simulated_limit_s=options.simulated_limit_s)


# Those that run a firmware, in the order in which `auto` looks for them: QEMU needs no licence. Each is made for a
# board and an NPU (None: the simulator's first board, no NPU).
_SIMULATORS: dict[str, Callable[[str | None, str | None, SimulatorOptions], Simulator]] = {
    "qemu": _qemu,
    "fvp": _fvp,
}
FIRMWARE_SIMULATORS = tuple(_SIMULATORS)


def is_installed(name: str, npu: str | None = None, board: str | None = None) -> bool:
    """Whether the simulator called `name` is installed, the one that has `npu` on `board` (None: on its first)."""
    try:
        create(name, npu, board=board).version()
    except SdkError:
        return False
    return True


def create(
    name: str, npu: str | None = None, options: SimulatorOptions | None = None, board: str | None = None
) -> Simulator:
    """The simulator called `name`, one of :data:`FIRMWARE_SIMULATORS`, for a firmware that uses `npu`, or none.

    Its version raises ToolError when it is missing.
    """
    return _SIMULATORS[name](board, npu, options or SimulatorOptions())
