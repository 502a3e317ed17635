"""The options of `sweep`. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.compile.program_options import TRUST, Option, option

_MOST_JOBS = 1024


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of `sweep` that its file does not have.

    `jobs` None is one a core. `scheduler` is the address of a Dask scheduler that runs already. With `retry`, cells
    that did not come to an end are done again. `vela_config` is the Vela configuration file that has the system
    configurations and memory modes of all cells; `system` is a board profile in its place. With it or a CPU clock,
    cells that run on QEMU have the time of an inference.
    """

    jobs: int | None = option(
        None,
        Option(
            "Number of worker processes.",
            short="-j",
            metavar="N",
            minimum=1,
            maximum=_MOST_JOBS,
            shown_default="one per core",
        ),
    )
    scheduler: str | None = option(
        None,
        Option(
            "Address of a Dask scheduler whose workers do the work. With tcp://, anyone who can reach it "
            "can run code.",
            metavar="tls://HOST:PORT",
        ),
    )
    vela_config: Path | None = option(
        None,
        Option(
            "Vela configuration file with the system configurations and memory modes of all cells.",
            metavar="FILE.ini",
            shown_default="Vela's own",
        ),
    )
    system: str | None = option(
        None,
        Option(
            "Board profile that all cells are compiled for and priced on.",
            metavar="NAME|FILE.toml",
            completion="systems",
        ),
    )
    cpu_clock_mhz: float | None = option(
        None,
        Option(
            "Clock of the CPU in MHz, for the time of an inference on QEMU.",
            metavar="MHZ",
            minimum=0.001,
            maximum=1e6,
            shown_default="that of --system",
        ),
    )
    dry_run: bool = option(False, Option("Show what would be done, and do nothing."))
    retry: bool = option(False, Option("Repeat cells that failed, timed out or were killed."))
    trust: bool = option(False, TRUST)
