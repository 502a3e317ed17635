"""The options of `run` that are not those of `compile`.

The module is imported for every `--help`: it must stay light.
"""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.boards import BOARDS
from ethosu_sdk.program_options import INPUTS, Option, option

HOST = "host"
FVP = "fvp"
SIMULATORS = ("auto", "qemu", FVP, HOST)
OWN = "own"
EXECUTORCH = "executorch"
BOTH = "both"
RUNTIMES = (OWN, EXECUTORCH, BOTH)
_IDLE_LIMIT_S = 30.0
VELA_TIMING = "vela"  # memories as vela.ini has them
LONGEST_S = 604_800.0  # a week: a limit that is never reached is none
TIMEOUT = Option(
    "Wall-clock limit of the run in seconds.", name="--timeout", metavar="S", minimum=0.1, maximum=LONGEST_S
)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` as given on the command line, and what other commands ask of a run.

    With `count_instructions`, a simulator that can counts what the CPU executes: that takes longer. With `split`, one
    more inference runs each NPU operation as a job of its own. `memory_timing` names the timing adapters that
    modelled cycles are for.
    """

    inputs: Path | None = option(None, INPUTS)
    expect: Path | None = option(None, Option("output0 … that must come back.", metavar="F.npz"))
    atol: float = option(0.0, Option("Allowed absolute difference.", minimum=0.0, finite=True))
    rtol: float = option(0.0, Option("Allowed relative difference.", minimum=0.0, finite=True))
    simulator: str = option(
        "auto",
        Option(
            "The firmware on a board, on QEMU or Arm's FVP; or ExecuTorch's runtime here.", choices=SIMULATORS
        ),
    )
    runtime: str = option(
        OWN,
        Option(
            "What interprets the program on the board: the SDK's firmware, Arm's build of ExecuTorch, or both.",
            choices=RUNTIMES,
        ),
    )
    timeout_s: float = option(300.0, TIMEOUT)
    events: str | None = option(
        None,
        Option(
            "PMU events to count; more than 4 (8 on Ethos-U85) take several inferences.",
            metavar="NAME,…",
            shown_default="ExecuTorch's",
            completion="events",
        ),
    )
    memory_timing: str = option(
        VELA_TIMING,
        Option(
            "Memories that modelled cycles are for: vela.ini's, or behind timing adapters.",
            metavar="vela|executorch|FILE.toml",
        ),
    )
    fast: bool = option(False, Option("FVP: skip the NPU's timing; its counters then mean nothing."))
    simulated_limit_s: float | None = option(
        None,
        Option(
            "FVP: limit of simulated seconds.",
            name="--simulated-limit",
            metavar="S",
            minimum=0.001,
            maximum=LONGEST_S,
        ),
    )
    repeat: int = option(
        1,
        Option(
            "Inferences of each set of inputs; all must agree.", metavar="N", minimum=1, maximum=1_000_000
        ),
    )
    keep_state: bool = option(
        False, Option("Repeats go on from the state of the one before, and need not agree.")
    )
    resident: bool = option(
        False, Option("Load MODEL into a firmware with all kernels: nothing is built for it.")
    )
    board: str | None = option(
        None,
        Option("The board.", choices=tuple(BOARDS), shown_default="that of the simulator that is installed"),
    )
    allow_spill: bool = option(
        False,
        Option("Let what is too large for the memory mode's SRAM lie in DDR; the record says so."),
    )
    count_instructions: bool = False
    split: bool = False

    @property
    def idle_timeout_s(self) -> float:
        """How long a firmware may neither print nor use the NPU."""
        return min(_IDLE_LIMIT_S, self.timeout_s)
