"""The options of `profile` alone. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass

from ethosu_sdk.program_options import Option, option


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The NPU's clock (None: that of the system configuration), and how many rows the terminal shows at most.

    With `split`, every NPU operation is run as a job of its own too, and its counters are read. With `cpu_cycles` the
    CPU's cycles are modelled where the simulator and LLVM can. `prefill` is the number of steps of a sequence's first
    phase.
    """

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
    rows: int | None = option(
        None,
        Option("Show the N slowest operations.", metavar="N", minimum=1, shown_default="all, up to 100"),
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
