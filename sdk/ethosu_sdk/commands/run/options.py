"""The options of `run` that are not those of `compile`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HOST = "host"
FVP = "fvp"
SIMULATORS = ("auto", "qemu", FVP, HOST)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` as given on the command line, and what other commands ask of a run.

    With `count_instructions`, a simulator that can counts what the CPU executes: that takes longer.
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
    allow_spill: bool = False
    count_instructions: bool = False
