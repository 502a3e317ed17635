"""From the name of a simulator to the simulator, and which PMU events a run counts."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.simulate.simulation import Simulator

if TYPE_CHECKING:
    from ethosu_sdk.npu.pmu import Event
    from ethosu_sdk.npu.program import Reach
    from ethosu_sdk.npu.timing.systems import SystemConfig

# Those that run a firmware, in the order in which `auto` looks for them: QEMU needs no licence.
FIRMWARE_SIMULATORS = ("qemu", "fvp")
OWN_MEMORIES = "qemu"  # the one whose memories the SDK chooses


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


def create_simulator(
    name: str, npu: str | None = None, options: SimulatorOptions | None = None, board: str | None = None
) -> Simulator:
    """The simulator called `name`, one of :data:`FIRMWARE_SIMULATORS`, for a firmware that uses `npu`, or none.

    Without a `board` it is for the simulator's first. Its version raises ToolError when it is missing.
    """
    # The imports here and not above: NumPy comes with QEMU's, and a command's --help must not wait for that.
    options = options or SimulatorOptions()
    if name == "fvp":
        from ethosu_sdk.simulate.fvp_simulator import FvpSimulator

        return FvpSimulator(npu, fast=options.fast, simulated_limit_s=options.simulated_limit_s)
    from ethosu_sdk.simulate.qemu.simulator import QemuSimulator, open_npu_model

    device = functools.partial(open_npu_model, system=options.memories, streams=options.streams)
    return QemuSimulator(device) if board is None else QemuSimulator(device, board=board)


def is_installed(name: str, npu: str | None = None, board: str | None = None) -> bool:
    """Whether the simulator called `name` is installed, the one that has `npu` on `board` (None: on its first)."""
    try:
        create_simulator(name, npu, board=board).version()
    except SdkError:
        return False
    return True


def pmu_events(npu: str) -> Mapping[int, Event]:
    """The PMU events of `npu`, such as ``"ethos-u55"``, by number. UsageError when they are not known."""
    from ethosu_sdk.npu import pmu

    return pmu.pmu_of(npu).events


def choose_events(npu: str | None, names: str | None) -> tuple[int, ...]:
    """The numbers of the events to count: those in `names`, separated by commas, or ExecuTorch's defaults.

    None without an NPU. UsageError for an unknown or repeated name. There may be more than the NPU has counters:
    :func:`event_groups`.
    """
    from ethosu_sdk.npu import pmu

    if npu is None:
        if names is not None:
            raise UsageError("there are no PMU events to count: the model does not use an NPU")
        return ()
    kind = pmu.pmu_of(npu)
    if names is None:
        return kind.default_events
    numbers = {event.name: event.number for event in kind.events.values()}
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in numbers:
            raise UsageError(f"unknown PMU event '{name}'", suggestion(name.upper(), numbers))
        if chosen.count(name) > 1:
            raise UsageError(f"the PMU event {name} is given twice")
    return tuple(numbers[name] for name in chosen)


def event_groups(npu: str | None, numbers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """`numbers` in groups that `npu` can count together, in their order; none without events."""
    from ethosu_sdk.npu import pmu

    if npu is None or not numbers:
        return ()
    counters = pmu.pmu_of(npu).event_counters
    return tuple(tuple(numbers[start : start + counters]) for start in range(0, len(numbers), counters))
