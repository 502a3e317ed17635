"""The time of an inference: the CPU's cycles and the NPU's on one axis, each by its clock.

The firmware makes the two take turns: the driver starts a job, and the CPU sleeps until the NPU's interrupt. So the
line is the CPU's parts in the order of time, with each job after the part that starts it. The CPU's waits for its
memories are in its parts where a board profile tells them. What nobody modelled is not in it: the time that an
interrupt takes to arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.cpu_cycles import band as cpu_band
from ethosu_sdk.cpu_cycles.waits import LineWaits, Moved, wait_cycles
from ethosu_sdk.npu import timing
from ethosu_sdk.records import Record, common
from ethosu_sdk.records.common import CpuPart, Target
from ethosu_sdk.records.parts import time_line
from ethosu_sdk.records.parts.time_line import TimeLine, TimePart
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.steps.shared import cpu_waits
from ethosu_sdk.steps.shared.cpu_waits import CpuMemories
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
_OTHER_CLOCK = (
    "--cpu-clock-mhz gives another clock than the profile {board}, whose waits are cycles of its own"
)
_NO_MOVED = "the run does not say what its parts move"
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

    `npu` is the clock that the NPU has on the board. Without a board, it is the system's. `profile` is the board's.
    """

    board: str
    clock: Clock | None
    core: str = ""
    reason: str = ""
    npu: Clock | None = None
    profile: BoardProfile | None = None

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
    return CpuClock(profile.name, clock, profile.cpu.core, "" if clock else reason, npu, profile)


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
    memories = _memories(facts)
    no_waits = [{"path": time_line.WAITS_PATH, "reason": memories.reason}] if memories.waits is None else []
    return {"time": _make(facts, memories).to_json()}, no_waits


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


def _memories(facts: Facts) -> CpuMemories:
    """The memories of the CPU, or why its waits are not known."""
    parts = facts.run.cpu.parts or ()
    if parts and all(row.moved is None for row in parts):
        return CpuMemories(reason=_NO_MOVED)
    profile, clock = facts.cpu.profile, facts.cpu.clock
    if profile is not None and clock is not None and clock.hz != profile.cpu.clock_hz:
        return CpuMemories(reason=_OTHER_CLOCK.format(board=profile.name))
    code_bytes = sum(row.moved.code_bytes or 0 for row in parts if row.moved is not None)
    system = None if facts.priced is None else facts.priced.system
    return cpu_waits.of_board(profile, system, code_bytes)


@dataclass(frozen=True)
class _Step:
    """A part with its cycles, and what the CPU moves in it."""

    operator: int
    what: str
    cycles: int
    moved: Moved


def _make(facts: Facts, memories: CpuMemories) -> TimeLine:
    cpu, npu = facts.cpu.clock, facts.npu_clock
    assert cpu is not None  # _missing
    start, parts = 0.0, []
    for step in _steps(facts):
        part = _part(step, start, facts, memories.waits)
        start = part.end_s
        parts.append(part)
    return _of_parts(tuple(parts), facts, (cpu, npu), memories)


def _part(step: _Step, start: float, facts: Facts, waits: LineWaits | None) -> TimePart:
    cpu, npu = facts.cpu.clock, facts.npu_clock
    assert cpu is not None  # _missing
    is_job = step.what == "npu"
    hz = cpu.hz if not is_job or npu is None else npu.hz
    waiting = 0.0 if waits is None else wait_cycles([step.moved], waits)
    return TimePart(
        operator=step.operator,
        what=cast(time_line.What, step.what),
        on="NPU" if is_job else "CPU",
        name=facts.run.operators[step.operator].name if step.what == "kernel" else None,
        start_s=start,
        duration_s=(step.cycles + waiting) / hz,
        waits_s=waiting / hz if waiting else None,
    )


def _steps(facts: Facts) -> Iterator[_Step]:
    """The parts in the order of time. What comes after the last operator has the next number."""
    left = {
        row.part: _Step(len(facts.run.operators), row.part, 0, Moved()) for row in facts.run.cpu.parts or ()
    }
    for row in facts.run.cpu.parts or ():
        left[row.part] = _add(left[row.part], row, 1)
    for number, operator in enumerate(facts.run.operators):
        job = _job_cycles(facts, operator) if operator.kind == "delegate" else None
        parts = operator.cpu_parts or ()
        names = [part.part for part in parts]
        start = len(names) - names[::-1].index("driver_start") if "driver_start" in names else len(names)
        found = [_add(_Step(number, part.part, 0, Moved()), part, 1) for part in parts]
        for part in parts:
            left[part.part] = _add(left[part.part], part, -1)
        if job is not None:
            found.insert(start, _Step(number, "npu", job, Moved()))
        yield from found
    yield from (step for step in left.values() if step.cycles)


def _add(step: _Step, row: CpuPart, times: int) -> _Step:
    """`step` and so many times `row`."""
    names = common.Moved.__struct_fields__
    more = {name: times * (getattr(row.moved, name, None) or 0) for name in names}
    every = {name: getattr(step.moved, name) + size for name, size in more.items()}
    return replace(step, cycles=step.cycles + times * int(row.cycles.value), moved=Moved(**every))


def _of_parts(
    parts: tuple[TimePart, ...], facts: Facts, clocks: tuple[Clock, Clock | None], memories: CpuMemories
) -> TimeLine:
    cpu, npu = clocks
    sums = time_line.sums(parts)
    total = sum(row.duration_s for row in parts)
    target = facts.run.target
    return TimeLine(
        place=facts.cpu.board
        or ("" if facts.priced is None else facts.priced.system.name)
        or facts.run.board,
        total=_total(total, sums, None if npu is None else target, waits=memories.waits is not None),
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
        waits=_waits(parts, memories),
        parts=parts,
    )


def _waits(parts: Sequence[TimePart], memories: CpuMemories) -> time_line.Waits | None:
    if memories.names is None:
        return None
    duration = sum(row.waits_s or 0.0 for row in parts)
    return time_line.Waits(duration_s=duration, memories=memories.names, source=memories.source)


def _total(
    total: float, sums: time_line.TimeSums, target: Target | None, *, waits: bool
) -> time_line.TimeTotal:
    """The sum with its band; without a `target` the CPU does all of the work. `waits` says whether those of the CPU
    are in it."""
    cpu = cpu_band.band(waits=waits)
    error = 0.0 if target is None else timing.error(target.npu, target.macs)
    words = [] if target is None else [f"NPU: {timing.band(target.npu, target.macs)}"]
    return time_line.TimeTotal(
        duration_s=total,
        source="modelled",
        least_s=sums.npu_s * (1 - error) + sums.cpu_s / (1 + cpu_band.ERROR),
        most_s=sums.npu_s * (1 + error) + sums.cpu_s / (1 - cpu.too_low),
        band=(*words, f"CPU: {cpu.words}"),
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
