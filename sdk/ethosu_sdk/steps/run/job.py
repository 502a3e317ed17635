"""One run, resolved: what runs, where, with which inputs, and what must come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy.typing as npt

from ethosu_sdk import boards, pte
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import common
from ethosu_sdk.steps.run.inputs import Samples
from ethosu_sdk.steps.run.options import RunOptions
from ethosu_sdk.steps.run.sequences.kept_state import Kept
from ethosu_sdk.steps.shared.board import Choice
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.shared.time_line import CpuClock
from ethosu_sdk.targets import Target

UART_NAME = "uart.log"


@dataclass(frozen=True)
class RunJob:
    """A run of the `program` in the `.pte` at `path`; results go to `folder`.

    `choice` names the board and the simulator. `events` are the numbers of the PMU events to count. `priced` is the
    system that modelled cycles are for, `memories` are its memories, behind timing adapters if the options ask for
    them, `cpu_clock` is the clock of the CPU. `expected` holds the outputs that must come out (None: any), `kept` is
    the program's state.
    """

    path: Path
    program: pte.Pte
    folder: Path
    options: RunOptions
    choice: Choice
    samples: Samples
    expected: Sequence[npt.NDArray[Any]] | None
    events: tuple[int, ...]
    priced: Priced | None
    memories: SystemConfig | None
    cpu_clock: CpuClock
    kept: Kept

    @property
    def plan(self) -> pte.ExecutionPlan:
        """The method that runs."""
        return self.program.plan(self.options.method)

    @property
    def target(self) -> Target | None:
        """What the program is compiled for; None without an NPU."""
        return self.program.target()

    @property
    def core(self) -> str:
        """The CPU that cycles are for: that of the board whose clock is known, where it is modelled."""
        wanted = self.cpu_clock.core
        return wanted if wanted in get_args(common.Core) else boards.core(self.choice.board)

    @property
    def npu(self) -> str | None:
        """The NPU that the program uses, such as ``ethos-u55``; None without one."""
        return self.program.npu()

    @property
    def macs(self) -> int | None:
        """The NPU's MACs per cycle, where the program names its target."""
        return None if self.target is None else self.target.macs
