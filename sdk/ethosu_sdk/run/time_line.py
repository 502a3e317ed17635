"""The time of an inference: the CPU's cycles and the NPU's on one axis, and the memories that the CPU waits for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from msgspec import Struct, structs

from ethosu_sdk.base.board_profiles import CODE, BoardMemory, BoardProfile
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.npu import timing
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.records import common, time_line as record_parts
from ethosu_sdk.records.common import CpuPart, Target, Unavailable
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.simulate import cpu_cycles as cpu_band
from ethosu_sdk.simulate.cpu_cycles import LineWaits, MovedBytes, wait_cycles

_NO_AREAS = "the profile {board} does not say which memories the areas of {system} are"
_NO_WAITS = "the profile {board} does not say how long the CPU waits for {memory}"
_NOT_CACHED = (
    "{memory} of {board} is not cached, or not known to be: the waits of single accesses are not modelled"
)
_NO_CACHE = "the CPU of {board} has no {kind} cache: the waits of single accesses are not modelled"
_SMALL = (
    "the code of the inference, {size:,} bytes, does not stay in the {cache:,} bytes of the instruction cache"
)


class CpuMemories(Struct, frozen=True):
    """The memories of a board's CPU by what lies in them, with their waits; `reason` is why there are none."""

    names: record_parts.WaitsFor | None = None
    waits: LineWaits | None = None
    source: str = ""
    reason: str = ""


def cpu_memories_of_board(
    profile: BoardProfile | None, system: SystemConfig | None, code_bytes: int
) -> CpuMemories:
    """Where things lie on the board of `profile` in a `system` (None: its default), for so many bytes of code."""
    if profile is None:
        return CpuMemories(reason="the memories of the CPU are not known: --system NAME prices a board")
    system = system or pricing_system.system_of_board(profile)
    row = profile.system(system.name)
    areas = {} if row is None else row.areas
    names = {
        "code": areas.get(CODE, ""),
        "constants": areas.get(system.constants.name, ""),
        "arena": areas.get(system.arena.name, ""),
    }
    if not all(names.values()):
        return CpuMemories(reason=_NO_AREAS.format(board=profile.name, system=system.name))
    reason = _missing_waits(profile, names, code_bytes)
    if reason:
        return CpuMemories(reason=reason)
    waits = {part: float(_wait(profile.memory(name)) or 0) for part, name in names.items()}
    slow = (memory for name in names.values() if (memory := profile.memory(name)) is not None)
    sources = dict.fromkeys(
        profile.source(f"memories.{memory.name}.cpu_wait_cycles") for memory in slow if memory.kind != "tcm"
    )
    source = f"{profile.ini_source}: {'; '.join(sources) or profile.source('areas')}"
    return CpuMemories(record_parts.WaitsFor(**names), LineWaits(**waits), source)


def _wait(memory: BoardMemory | None) -> float | None:
    if memory is None:
        return None
    return 0 if memory.kind == "tcm" else memory.cpu_wait_cycles


def _missing_waits(profile: BoardProfile, names: Mapping[str, str], code_bytes: int) -> str:
    for part, name in names.items():
        memory = profile.memory(name)
        if memory is None or _wait(memory) is None:
            return _NO_WAITS.format(board=profile.name, memory=name)
        if memory.kind == "tcm":
            continue
        if not memory.cached:
            return _NOT_CACHED.format(memory=name, board=profile.name)
        kind = "instruction" if part == "code" else "data"
        cache = profile.cpu.icache_bytes if part == "code" else profile.cpu.dcache_bytes
        if cache == 0:
            return _NO_CACHE.format(board=profile.name, kind=kind)
        if part == "code" and cache is not None and code_bytes > cache:
            return _SMALL.format(size=code_bytes, cache=cache)
    return ""


GIVEN = "--cpu-clock-mhz"
_NO_CLOCK = "the CPU's clock is not known: --system NAME or --cpu-clock-mhz"
_NOT_PUBLIC = "the clock of the CPU of {board} is not known ({why}): --cpu-clock-mhz gives it"
_NO_NPU_CLOCK = "the clock of the NPU of {board} is not known: a profile with npu_hz gives it"
_OTHER_CORE = "the CPU's cycles are of a {found}; {board} has a {core}"
_OTHER_CLOCK = (
    "--cpu-clock-mhz gives another clock than the profile {board}, whose waits are cycles of its own"
)
_NO_JOB_CYCLES = "the NPU's cycles are not known for every call of a delegate"


@dataclass(frozen=True)
class KnownClock:
    hz: float
    source: str


@dataclass(frozen=True)
class CpuClock:
    """The `clock` of the CPU `core` of a `board`, empty where they are not known; `reason` is why there is none.
    `npu` is the clock that the NPU has on the board. Without a board, it is the system's. `profile` is the
    board's."""

    board: str
    clock: KnownClock | None
    core: str = ""
    reason: str = ""
    npu: KnownClock | None = None
    profile: BoardProfile | None = None

    @property
    def is_given(self) -> bool:
        """Whether --cpu-clock-mhz gave it."""
        return self.clock is not None and self.clock.source == GIVEN


def cpu_clock(profile: BoardProfile | None, mhz: float | None) -> CpuClock:
    """The clock of the CPU: the given one, else that of the board of `profile`."""
    given = None if mhz is None else KnownClock(mhz * 1e6, GIVEN)
    if profile is None:
        return CpuClock("", given, reason=_NO_CLOCK)
    clock = given or _of_profile(profile, "cpu.clock_hz", profile.cpu.clock_hz)
    reason = _NOT_PUBLIC.format(board=profile.name, why=profile.source("cpu.clock_hz"))
    npu = _of_profile(profile, "npu_hz", profile.npu_hz)
    return CpuClock(profile.name, clock, profile.cpu.core, "" if clock else reason, npu, profile)


def _of_profile(profile: BoardProfile, place: str, hz: int | None) -> KnownClock | None:
    return None if hz is None else KnownClock(hz, f"{profile.ini_source}: {profile.source(place)}")


@dataclass(frozen=True)
class TimeFacts:
    """What a time line is made from; `cpu` are the clocks, `priced` the system that the NPU's cycles are for."""

    run: Run
    priced: PricingSystem | None
    cpu: CpuClock
    npu_hz: float | None = None  # None: the system's
    job_cycles: Mapping[int, int] | None = None  # by instruction

    @property
    def npu_clock(self) -> KnownClock | None:
        """The NPU's; None without an NPU, and for a board on which it is not known."""
        if self.priced is None:
            return None
        if self.npu_hz is not None:
            return KnownClock(self.npu_hz, "--clock-mhz")
        if self.cpu.board:
            return self.cpu.npu
        system = self.priced.system
        return KnownClock(system.clock_hz, f"core_clock of {system.name} in {system.source}")


def time_of_run(facts: TimeFacts) -> tuple[record_parts.TimeLine | None, list[Unavailable]]:
    """The record's `time`: the CPU's cycles and the NPU's on one axis, each by its clock; and what is unavailable.
    The firmware makes the two take turns: the driver starts a job, and the CPU sleeps until the NPU's interrupt. So
    the line is the CPU's parts in the order of time, with each job after the part that starts it. The CPU's waits for
    its memories are in its parts where a board profile tells them. What nobody modelled is not in it: the time that
    an interrupt takes to arrive."""
    reason = _missing(facts)
    if reason:
        return None, [Unavailable(path="/time", reason=reason)]
    memories = _memories(facts)
    no_waits = (
        [Unavailable(path=record_parts.WAITS_PATH, reason=memories.reason)] if memories.waits is None else []
    )
    return _make(facts, memories), no_waits


def _missing(facts: TimeFacts) -> str:
    run, cpu = facts.run, facts.cpu
    if run.cpu.cycles is None:
        reasons = [row.reason for row in run.unavailable if row.path == "/cpu/cycles"]
        return reasons[0] if reasons else "the run has no cycles of the CPU"
    if cpu.clock is None:
        return cpu.reason
    if cpu.core and cpu.core != run.cpu.core:
        return _OTHER_CORE.format(found=run.cpu.core, board=cpu.board, core=cpu.core)
    return _missing_of_npu(facts)


def _missing_of_npu(facts: TimeFacts) -> str:
    run = facts.run
    if facts.priced is not None and facts.priced.areas is None:
        return "the system that the program was compiled for is not known: --vela-config or --system gives it"
    if run.npu is not None and run.npu.memory_timing is not None:
        return "modelled cycles are for memories behind timing adapters, which belong to no board"
    if facts.priced is not None and facts.npu_clock is None:
        return _NO_NPU_CLOCK.format(board=facts.cpu.board)
    jobs = [row for row in run.operators if row.kind == "delegate"]
    known = [row for row in jobs if _job_cycles(facts, row) is not None]
    return _NO_JOB_CYCLES if len(known) < len(jobs) or (jobs and facts.priced is None) else ""


def _job_cycles(facts: TimeFacts, row: Operator) -> int | None:
    if facts.job_cycles is not None:
        return facts.job_cycles.get(row.instruction)
    return None if row.npu_cycles is None else int(row.npu_cycles.value)


def _memories(facts: TimeFacts) -> CpuMemories:
    parts = facts.run.cpu.parts or ()
    if parts and all(row.moved is None for row in parts):
        return CpuMemories(reason="the run does not say what its parts move")
    profile, clock = facts.cpu.profile, facts.cpu.clock
    if profile is not None and clock is not None and clock.hz != profile.cpu.clock_hz:
        return CpuMemories(reason=_OTHER_CLOCK.format(board=profile.name))
    code_bytes = sum(row.moved.code_bytes or 0 for row in parts if row.moved is not None)
    system = None if facts.priced is None else facts.priced.system
    return cpu_memories_of_board(profile, system, code_bytes)


class _Step(Struct, frozen=True):
    operator: int
    what: str
    cycles: int
    moved: MovedBytes


def _make(facts: TimeFacts, memories: CpuMemories) -> record_parts.TimeLine:
    cpu, npu = facts.cpu.clock, facts.npu_clock
    assert cpu is not None  # _missing
    start, found = 0.0, []
    for step in _steps(facts):
        part = _part(step, start, facts, memories.waits)
        start = part.end_s
        found.append(part)
    parts = tuple(found)
    spent, total = record_parts.sums(parts), sum(row.duration_s for row in parts)
    waits = None
    if memories.names is not None:
        duration = sum(row.waits_s or 0.0 for row in parts)
        waits = record_parts.Waits(duration_s=duration, memories=memories.names, source=memories.source)
    system = "" if facts.priced is None else facts.priced.system.name
    target = None if npu is None else facts.run.target
    return record_parts.TimeLine(
        place=facts.cpu.board or system or facts.run.board,
        total=_total(total, spent, target, waits=memories.waits is not None),
        clocks=record_parts.Clocks(
            cpu=record_parts.Clock(hz=cpu.hz, source=cpu.source),
            npu=None if npu is None else record_parts.Clock(hz=npu.hz, source=npu.source),
        ),
        sums=spent,
        shares=record_parts.Shares(
            cpu_percent=100 * spent.cpu_s / total if total else 0.0,
            npu_percent=100 * spent.npu_s / total if total else 0.0,
        ),
        largest=_largest(parts),
        waits=waits,
        parts=parts,
    )


def _part(step: _Step, start: float, facts: TimeFacts, waits: LineWaits | None) -> record_parts.TimePart:
    cpu, npu = facts.cpu.clock, facts.npu_clock
    assert cpu is not None  # _missing
    is_job = step.what == "npu"
    hz = cpu.hz if not is_job or npu is None else npu.hz
    waiting = 0.0 if waits is None else wait_cycles([step.moved], waits)
    return record_parts.TimePart(
        operator=step.operator,
        what=cast(record_parts.What, step.what),
        on="NPU" if is_job else "CPU",
        name=facts.run.operators[step.operator].name if step.what == "kernel" else None,
        start_s=start,
        duration_s=(step.cycles + waiting) / hz,
        waits_s=waiting / hz if waiting else None,
    )


def _steps(facts: TimeFacts) -> Iterator[_Step]:
    """The parts in the order of time. What comes after the last operator has the next number."""
    left = {
        row.part: _Step(len(facts.run.operators), row.part, 0, MovedBytes())
        for row in facts.run.cpu.parts or ()
    }
    for row in facts.run.cpu.parts or ():
        left[row.part] = _add(left[row.part], row, 1)
    for number, operator in enumerate(facts.run.operators):
        job = _job_cycles(facts, operator) if operator.kind == "delegate" else None
        parts = operator.cpu_parts or ()
        names = [part.part for part in parts]
        start = len(names) - names[::-1].index("driver_start") if "driver_start" in names else len(names)
        found = [_add(_Step(number, part.part, 0, MovedBytes()), part, 1) for part in parts]
        for part in parts:
            left[part.part] = _add(left[part.part], part, -1)
        if job is not None:
            found.insert(start, _Step(number, "npu", job, MovedBytes()))
        yield from found
    yield from (step for step in left.values() if step.cycles)


def _add(step: _Step, row: CpuPart, times: int) -> _Step:
    names = common.Moved.__struct_fields__
    more = {name: times * (getattr(row.moved, name, None) or 0) for name in names}
    every = {name: getattr(step.moved, name) + size for name, size in more.items()}
    return structs.replace(
        step, cycles=step.cycles + times * int(row.cycles.value), moved=MovedBytes(**every)
    )


def _total(
    total: float, spent: record_parts.TimeSums, target: Target | None, *, waits: bool
) -> record_parts.TimeTotal:
    """The sum with its band; without a `target` the CPU does all the work. `waits`: whether the CPU's are in it."""
    cpu = cpu_band.cpu_band(waits=waits)
    error = 0.0 if target is None else timing.error(target.npu, target.macs)
    words = [] if target is None else [f"NPU: {timing.band(target.npu, target.macs)}"]
    return record_parts.TimeTotal(
        duration_s=total,
        source="modelled",
        least_s=spent.npu_s * (1 - error) + spent.cpu_s / (1 + cpu_band.BAND_ERROR),
        most_s=spent.npu_s * (1 + error) + spent.cpu_s / (1 - cpu.too_low),
        band=(*words, f"CPU: {cpu.words}"),
    )


def _largest(parts: Sequence[record_parts.TimePart]) -> record_parts.Contributor:
    """The operator's kernel or the part of the other work that takes the CPU longest, over all of its calls."""
    found: defaultdict[str, float] = defaultdict(float)
    for row in parts:
        if row.on == "CPU":
            found[row.name or row.what] += row.duration_s
    if not found:
        return record_parts.Contributor(name="runtime", duration_s=0.0)
    name = max(found, key=lambda key: found[key])
    return record_parts.Contributor(name=name, duration_s=found[name])
