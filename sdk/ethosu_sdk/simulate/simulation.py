"""The interface of every simulator: the request, the result, its log and the :class:`Simulator` protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target

if TYPE_CHECKING:
    from ethosu_sdk.simulate.block_counts import BlockCounts, Mark


# Sources of metrics.
MODELLED = "modelled"
MEASURED = "measured"
COUNTED = "counted"  # executed instructions


@dataclass(frozen=True)
class Figures:
    """How far the NPU's counters of a simulator can be trusted.

    `source` is that of every metric of the NPU. `absent` is empty, or the reason why no counter means anything. A
    simulator that has `every_event` counts those too which the NPU model cannot know. `no_cpu_cycles` is why there
    are none; `instructions_per_cycle`, that a run which counts instructions executes in a cycle of the processor's
    clock, is 0 where it cannot count them.
    """

    source: str
    every_event: bool
    no_cpu_cycles: str
    absent: str = ""
    instructions_per_cycle: float = 0.0


MODEL_FIGURES = Figures(
    MODELLED,
    every_event=False,
    no_cpu_cycles="the simulator is functional: it does not model the time that the CPU takes",
)


def cycles_band(npu: str | None, macs: int | None = None) -> str:
    """For a line of fidelity: how far the modelled cycles of `npu` are to be believed; nothing without an NPU.

    `macs` are its MACs per cycle; None stands for the family.
    """
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import timing

    return "" if npu is None else f"; cycles: {timing.band(npu, macs)}"


@dataclass(frozen=True)
class SimulationRequest:
    """One run of one firmware.

    `images` are (address, bytes) pairs that stand in the board's DDR before the first instruction. `target` is the
    NPU, None for a firmware that does not touch one; its system configuration and memory mode are for modelled
    cycles, and the family's defaults stand in for those that vela.ini does not have. `timeout_s` bounds the whole run
    by wall clock, `idle_timeout_s` the time in which the firmware neither prints a byte nor accesses the NPU.
    `uart_log` is written while the firmware runs, and `uart_tee` gets the same bytes as they come. QEMU's board reads
    what comes from the descriptor `uart_input`.

    The firmware may read and write files of the host only if `semihosting_cwd` is given: Arm semihosting then finds
    relative names in that folder. This is not a sandbox: the firmware's absolute names are the host's.
    `semihosting_arguments` is its command line, the program's own name first. `fast` asks a simulator that can for
    speed at the cost of its counters, `count_instructions` for the same time for every instruction of the processor.

    A firmware that does not end itself ends with the first of `end_marks` that it prints. `read_back` are (address,
    bytes) of memory that is read after the end. With `compare_loaded`, a simulator that can compares what it loaded
    with the ELF file. With `marks`, a simulator that can counts the executed blocks, in segments from one of these
    marks to the next.
    """

    elf: Path
    images: tuple[tuple[int, bytes], ...] = field(repr=False)
    target: Target | None
    timeout_s: float
    idle_timeout_s: float
    uart_log: Path
    semihosting_cwd: Path | None = None
    semihosting_arguments: tuple[str, ...] = ()
    uart_tee: IO[bytes] | None = field(default=None, repr=False)
    uart_input: int | None = None
    fast: bool = False
    count_instructions: bool = False
    end_marks: tuple[bytes, ...] = ()
    read_back: tuple[tuple[int, int], ...] = ()
    compare_loaded: bool = False
    marks: tuple[Mark, ...] | None = None


@dataclass(frozen=True)
class LoadedSegment:
    """A segment of the ELF file that stood in the board's memory, byte for byte, before the first instruction."""

    address: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class LoadedElf:
    """What was read back of the ELF file with the digest `sha256` before the first instruction."""

    sha256: str
    segments: tuple[LoadedSegment, ...]


@dataclass(frozen=True)
class SimulationResult:
    """A run that the firmware ended, by semihosting or a mark. Whether it went well is for the caller to judge.

    `uart` holds every byte that the firmware printed, `npu_jobs` what the NPU model kept of each job in turn, None
    from a simulator that does not show what its NPU does. `memory` is what was to be read back, in its order, and
    `loaded` what was compared of the ELF file, None from a simulator that cannot. `block_counts` are there if they
    were asked for and the simulator can count.
    """

    uart: bytes = field(repr=False)
    exit_code: int
    npu_accesses: int
    npu_jobs: tuple[Any, ...] | None
    memory: tuple[bytes, ...] = field(default=(), repr=False)
    loaded: LoadedElf | None = None
    block_counts: BlockCounts | None = field(default=None, repr=False)


class Simulator(Protocol):
    """A way to run a firmware."""

    name: str

    @property
    def figures(self) -> Figures: ...

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        """One line, for the run's record: what of a run with `npu` of `macs` is real, measured or modelled."""
        ...

    def version(self) -> str:
        """The version of the simulator that is installed. ToolError when it is missing or too old."""
        ...

    def no_block_counts(self) -> str:
        """Why it cannot count executed blocks, and how to get what can; empty if it can."""
        ...

    def run(self, request: SimulationRequest) -> SimulationResult:
        """Run the firmware to its own end.

        Raises SimulationError when it crashes, locks up, hangs, overruns a time-out, or when the simulator
        itself ends early; InputError when the request cannot be laid into the board's memories; ToolError
        when the simulator cannot be started.
        """
        ...


def last_lines(uart: bytes, count: int) -> list[str]:
    """The last lines that the firmware printed, with everything unprintable replaced: fit for a terminal."""
    text = uart[-(1 << 16) :].decode("ascii", errors="replace")
    lines = ["".join(c if c.isprintable() else "·" for c in line) for line in text.splitlines()]
    return lines[-count:]


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[IO[bytes]]:
    """The new file at `path`, open for the time of a `with` block. InputError when it cannot be written."""
    try:
        log = filesystem.open_replacing(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    with log:
        yield log
