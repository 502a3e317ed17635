"""The options of `run` that are not those of `compile`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HOST = "host"
FVP = "fvp"
SIMULATORS = ("auto", "qemu", FVP, HOST)
OWN = "own"
EXECUTORCH = "executorch"
BOTH = "both"
RUNTIMES = (OWN, EXECUTORCH, BOTH)
_IDLE_LIMIT_S = 30.0
VELA_TIMING = "vela"  # memories as vela.ini has them


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` as given on the command line, and what other commands ask of a run.

    With `count_instructions`, a simulator that can counts what the CPU executes: that takes longer. With `split`, one
    more inference runs each NPU operation as a job of its own. `memory_timing` names the timing adapters that
    modelled cycles are for.
    """

    inputs: Path | None = None
    expect: Path | None = None
    atol: float = 0.0
    rtol: float = 0.0
    simulator: str = "auto"
    timeout_s: float = 300.0
    events: str | None = None
    board: str | None = None
    fast: bool = False
    simulated_limit_s: float | None = None
    resident: bool = False
    repeat: int = 1
    keep_state: bool = False
    allow_spill: bool = False
    count_instructions: bool = False
    split: bool = False
    runtime: str = OWN
    memory_timing: str = VELA_TIMING

    @property
    def idle_timeout_s(self) -> float:
        """How long a firmware may neither print nor use the NPU."""
        return min(_IDLE_LIMIT_S, self.timeout_s)
