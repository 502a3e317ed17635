"""The options of `check`, `profile` and `debug`. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.compile.program_options import INPUTS, Option, option
from ethosu_sdk.run.options import TIMEOUT


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of `check`. The pools are those of the user's application; None: those of the board's pack."""

    memory_mode: str | None = option(
        None,
        Option(
            "Where things lie on the board.",
            metavar="NAME",
            shown_default="as in the program, or the board's first",
            completion="memory_modes",
        ),
    )
    address: str | None = option(
        None, Option("Where the program is to lie, such as 0x3AB7B000.", metavar="ADDRESS")
    )
    method_pool: int | None = option(
        None, Option("Bytes of ExecuTorch's method pool in your application.", metavar="BYTES", minimum=0)
    )
    temp_pool: int | None = option(None, Option("Bytes of its temporary pool.", metavar="BYTES", minimum=0))


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options of `profile` alone. `cpu_cycles` are modelled where the simulator and LLVM can."""

    clock_mhz: float | None = option(
        None,
        Option(
            "Clock of the NPU in MHz.",
            metavar="MHZ",
            minimum=0.001,
            maximum=1e6,
            shown_default="the system configuration's",
        ),
    )
    rows: int = option(
        10, Option("Show the N calls of modules or operators that take longest.", metavar="N", minimum=1)
    )
    split: bool = option(
        False,
        Option("Also run each NPU operation as a separate job, and read the NPU's counters for each."),
    )
    prefill: int | None = option(
        None,
        Option(
            "The first N steps of a sequence are those of a prompt: a phase of their own.",
            metavar="N",
            minimum=1,
            shown_default="1",
        ),
    )
    cpu_cycles: bool = option(True, Option("Do not model the CPU's cycles.", name="--no-cpu-cycles"))


@dataclass(frozen=True, kw_only=True)
class DebugOptions:
    """The options of `debug` that are not those of `compile`.

    A layer breaks where its SQNR is below `threshold_db` and that of its inputs is not; there is advice for one whose
    own quantisation leaves less than `advice_db`.
    """

    inputs: Path | None = option(None, INPUTS)
    threshold_db: float = option(
        20.0,
        Option("SQNR below which a layer counts as broken.", name="--threshold", metavar="DB", finite=True),
    )
    advice_db: float = option(
        30.0,
        Option(
            "Give advice for layers whose own quantisation leaves an SQNR below this.",
            name="--advice",
            metavar="DB",
            finite=True,
        ),
    )
    dump: Path | None = option(None, Option("Write the tensors of all layers to this file.", metavar="F.npz"))
    rows: int | None = option(
        None,
        Option("Show the N worst layers.", metavar="N", minimum=1, shown_default="all, up to 100"),
    )
    timeout_s: float = option(300.0, TIMEOUT)
