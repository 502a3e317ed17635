"""The time of an inference: the CPU's cycles and the NPU's on one axis, each by its clock.

The firmware makes the two take turns: the driver starts a job, and the CPU sleeps until the NPU's interrupt. So the
line is the CPU's parts in the order of time, with each job after the part that starts it. What nobody modelled is not
in it: a memory's waits for the CPU, and the time that an interrupt takes to arrive.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.cpu_cycles import band as cpu_band
from ethosu_sdk.npu import timing
from ethosu_sdk.records import Record, time_line
from ethosu_sdk.records.common import Target
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.records.time_line import TimeLine, TimePart
from ethosu_sdk.steps.shared.systems import Priced

PATH = "/time"
_GIVEN = "--cpu-clock-mhz"
_NO_CLOCK = (
    "the clock of the CPU is not known: --system NAME prices a board, and --cpu-clock-mhz gives the clock of "
    "its CPU"
)
_NOT_PUBLIC = "the clock of the CPU of {board} is not known ({why}): --cpu-clock-mhz gives it"
_NO_NPU_CLOCK = "the clock of the NPU of {board} is not known: a profile with npu_hz gives it"
_OTHER_CORE = "the CPU's cycles are those of a {found}, and {board} has a {core}"
_NO_SYSTEM = "the system that the program was compiled for is not known: --vela-config or --system gives it"
_ADAPTERS = "modelled cycles are for memories behind timing adapters, which belong to no board"
_NO_JOB_CYCLES = "the NPU's cycles are not known for every call of a delegate"


@dataclass(frozen=True)
class Clock:
    """A clock, and where its frequency is from."""

    hz: float
    source: str

    def part(self) -> Record:
        """The clock as records have it."""
        return {"hz": self.hz, "source": self.source}


@dataclass(frozen=True)
class CpuClock:
    """The `clock` of the CPU `core` of a `board`, empty where they are not known; `reason` is why there is none.

    `npu` is the clock that the NPU has on the board. Without a board, it is the system's.
    """

    board: str
    clock: Clock | None
    core: str = ""
    reason: str = ""
    npu: Clock | None = None

    def was_asked_for(self, board: str | None) -> bool:
        """Whether the user gave it, or the `board` that it is of."""
        return board is not None or (self.clock is not None and self.clock.source == _GIVEN)


def cpu_clock(board: str | None, mhz: float | None, priced: Priced | None) -> CpuClock:
    """The clock of the CPU: the given one, else that of the board profile `board`, else of the profile that the
    program was compiled for.

    UsageError for an unknown profile, InputError for a file that is not one.
    """
    profile = profiles.find(board) if board is not None else _compiled_for(priced)
    given = None if mhz is None else Clock(mhz * 1e6, _GIVEN)
    if profile is None:
        return CpuClock("", given, reason=_NO_CLOCK)
    clock = given or _of_profile(profile, "cpu.clock_hz", profile.cpu.clock_hz)
    reason = _NOT_PUBLIC.format(board=profile.name, why=profile.source("cpu.clock_hz"))
    npu = _of_profile(profile, "npu_hz", profile.npu_hz)
    return CpuClock(profile.name, clock, profile.cpu.core, "" if clock else reason, npu)


def _of_profile(profile: BoardProfile, place: str, hz: int | None) -> Clock | None:
    return None if hz is None else Clock(hz, f"{profile.ini_source}: {profile.source(place)}")


def _compiled_for(priced: Priced | None) -> BoardProfile | None:
    """The SDK's board profile whose configuration the program was compiled with."""
    for name in profiles.names() if priced is not None and priced.is_compiled_for else ():
        profile = profiles.find(name)
        if priced is not None and priced.system.source == profile.ini_source:
            return profile if priced.system.sha256 == profile.ini_sha256 else None
    return None


@dataclass(frozen=True)
class Facts:
    """What a time line is made from: a run, the cycles of each delegate's call where they are not the run's, the
    system that they are for, and the clocks."""

    run: Run
    priced: Priced | None
    cpu: CpuClock
    npu_hz: float | None = None  # None: the system's
    job_cycles: Mapping[int, int] | None = None  # by instruction

    @property
    def npu_clock(self) -> Clock | None:
        """The NPU's; None without an NPU, and for a board on which it is not known."""
        if self.priced is None:
            return None
        if self.npu_hz is not None:
            return Clock(self.npu_hz, "--clock-mhz")
        if self.cpu.board:
            return self.cpu.npu
        system = self.priced.system
        return Clock(system.clock_hz, f"core_clock of {system.name} in {system.source}")


def member(facts: Facts) -> tuple[Record, list[Record]]:
    """The member `time` of a record, and what is unavailable."""
    reason = _missing(facts)
    if reason:
        return {}, [{"path": PATH, "reason": reason}]
    return {"time": _make(facts).to_json()}, []


def _missing(facts: Facts) -> str:
    """Why there is no time line; empty if there is one."""
    run = facts.run
    if run.cpu.cycles is None:
        reasons = [row.reason for row in run.unavailable if row.path == "/cpu/cycles"]
        return reasons[0] if reasons else "the run has no cycles of the CPU"
    return _missing_of_cpu(facts) or _missing_of_npu(facts)


def _missing_of_cpu(facts: Facts) -> str:
    run = facts.run
    if facts.cpu.clock is None:
        return facts.cpu.reason
    if facts.cpu.core and facts.cpu.core != run.cpu.core:
        return _OTHER_CORE.format(found=run.cpu.core, board=facts.cpu.board, core=facts.cpu.core)
    return ""


def _missing_of_npu(facts: Facts) -> str:
    run = facts.run
    if facts.priced is not None and facts.priced.areas is None:
        return _NO_SYSTEM
    if run.npu is not None and run.npu.memory_timing is not None:
        return _ADAPTERS
    if facts.priced is not None and facts.npu_clock is None:
        return _NO_NPU_CLOCK.format(board=facts.cpu.board)
    jobs = [row for row in run.operators if row.kind == "delegate"]
    known = [row for row in jobs if _job_cycles(facts, row) is not None]
    return _NO_JOB_CYCLES if len(known) < len(jobs) or (jobs and facts.priced is None) else ""


def _job_cycles(facts: Facts, row: Operator) -> int | None:
    if facts.job_cycles is not None:
        return facts.job_cycles.get(row.instruction)
    return None if row.npu_cycles is None else int(row.npu_cycles.value)


def _make(facts: Facts) -> TimeLine:
    cpu, npu = facts.cpu.clock, facts.npu_clock
    assert cpu is not None  # _missing
    steps = list(_steps(facts))
    hz = [cpu.hz if what != "npu" or npu is None else npu.hz for _, what, _ in steps]
    durations = [cycles / each for (_, _, cycles), each in zip(steps, hz, strict=True)]
    operators = facts.run.operators
    starts = accumulate(durations, initial=0.0)
    parts = tuple(
        TimePart(
            operator=operator,
            what=cast(time_line.What, what),
            on="NPU" if what == "npu" else "CPU",
            name=operators[operator].name if what == "kernel" else None,
            start_s=start,
            duration_s=duration,
        )
        for (operator, what, _), start, duration in zip(steps, starts, durations, strict=False)
    )
    return _of_parts(parts, facts, cpu, npu)


def _steps(facts: Facts) -> Iterator[tuple[int, str, int]]:
    """Operator, part and cycles in the order of time. What comes after the last operator has the next number."""
    left: Counter[str] = Counter({row.part: int(row.cycles.value) for row in facts.run.cpu.parts or ()})
    for number, row in enumerate(facts.run.operators):
        job = _job_cycles(facts, row) if row.kind == "delegate" else None
        names = [part.part for part in row.cpu_parts or ()]
        start = len(names) - names[::-1].index("driver_start") if "driver_start" in names else len(names)
        found: list[tuple[str, int]] = [(part.part, int(part.cycles.value)) for part in row.cpu_parts or ()]
        for part, cycles in found:
            left[part] -= cycles
        if job is not None:
            found.insert(start, ("npu", job))
        yield from ((number, part, cycles) for part, cycles in found)
    last = len(facts.run.operators)
    yield from ((last, part, cycles) for part, cycles in left.items() if cycles)


def _of_parts(parts: tuple[TimePart, ...], facts: Facts, cpu: Clock, npu: Clock | None) -> TimeLine:
    sums = time_line.sums(parts)
    total = sum(row.duration_s for row in parts)
    target = facts.run.target
    return TimeLine(
        place=facts.cpu.board
        or ("" if facts.priced is None else facts.priced.system.name)
        or facts.run.board,
        total=_total(total, sums, None if npu is None else target),
        clocks=time_line.Clocks(
            cpu=time_line.Clock(hz=cpu.hz, source=cpu.source),
            npu=None if npu is None else time_line.Clock(hz=npu.hz, source=npu.source),
        ),
        sums=sums,
        shares=time_line.Shares(
            cpu_percent=100 * sums.cpu_s / total if total else 0.0,
            npu_percent=100 * sums.npu_s / total if total else 0.0,
        ),
        largest=_largest(parts),
        parts=parts,
    )


def _total(total: float, sums: time_line.TimeSums, target: Target | None) -> time_line.TimeTotal:
    """The sum with its band; without a `target` the CPU does all of the work."""
    error = 0.0 if target is None else timing.error(target.npu, target.macs)
    words = [] if target is None else [f"NPU: {timing.band(target.npu, target.macs)}"]
    return time_line.TimeTotal(
        duration_s=total,
        source="modelled",
        least_s=sums.npu_s * (1 - error) + sums.cpu_s * (1 - cpu_band.ERROR),
        most_s=sums.npu_s * (1 + error) + sums.cpu_s / (1 - cpu_band.TOO_LOW),
        band=(*words, f"CPU: {cpu_band.BAND}"),
    )


def _largest(parts: Sequence[TimePart]) -> time_line.Contributor:
    """The operator's kernel or the part of the other work that takes the CPU longest, over all of its calls."""
    found: defaultdict[str, float] = defaultdict(float)
    for row in parts:
        if row.on == "CPU":
            found[row.name or row.what] += row.duration_s
    if not found:
        return time_line.Contributor(name="runtime", duration_s=0.0)
    name = max(found, key=lambda key: found[key])
    return time_line.Contributor(name=name, duration_s=found[name])
