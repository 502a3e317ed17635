"""The time line of an inference, in records of runs and profiles: schemas/common.v1.schema.json says what each member
means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, Protocol

from ethosu_sdk.records.common import Number, Priced
from ethosu_sdk.records.kind import Part

Processor = Literal["CPU", "NPU"]
What = Literal["runtime", "kernel", "copy_in", "driver_start", "npu", "interrupt", "driver_stop", "copy_out"]

WAITS_PATH = "/time/waits"  # where a record says why there are none

_ROUNDING = 1e-9  # of the total: what sums of doubles may be off by


class Clock(Part):
    hz: Number
    source: str


class Clocks(Part):
    cpu: Clock
    npu: Clock | None = None


class TimePart(Part):
    operator: int
    what: What
    on: Processor
    name: str | None = None
    start_s: Number
    duration_s: Number
    waits_s: Number | None = None

    @property
    def label(self) -> str:
        """What people call it: the kernel's operator, or the part."""
        return self.name or self.what.replace("_", " ")

    @property
    def end_s(self) -> float:
        """When it ends."""
        return self.start_s + self.duration_s


class TimeTotal(Part):
    duration_s: Number
    source: Literal["modelled"]
    least_s: Number | None = None
    most_s: Number | None = None
    band: tuple[str, ...]


class TimeSums(Part):
    cpu_before_npu_s: Number
    npu_s: Number
    cpu_between_npu_s: Number
    cpu_after_npu_s: Number

    @property
    def cpu_s(self) -> float:
        """All of the CPU's."""
        return self.cpu_before_npu_s + self.cpu_between_npu_s + self.cpu_after_npu_s


class Shares(Part):
    cpu_percent: Number
    npu_percent: Number


class Contributor(Part):
    name: str
    duration_s: Number


class WaitsFor(Part):
    code: str
    constants: str
    arena: str


class Waits(Part):
    duration_s: Number
    memories: WaitsFor
    source: str


class Engines(Part):
    mac_percent: Number
    weight_decoder_percent: Number
    memory_percent: Number
    active_cycles: int | None = None
    idle_cycles: int | None = None


class VelaTime(Part):
    duration_s: Number
    difference_percent: Number


class TimeLine(Part):
    """One inference on one axis, CPU and NPU in turn."""

    place: str
    total: TimeTotal
    clocks: Clocks
    sums: TimeSums
    shares: Shares
    largest: Contributor
    waits: Waits | None = None
    engines: Engines | None = None
    vela: VelaTime | None = None
    parts: tuple[TimePart, ...]


class _Timed(Protocol):
    @property
    def time(self) -> TimeLine | None: ...

    @property
    def priced(self) -> Priced | None: ...


def headline(record: _Timed) -> TimeLine | None:
    """The time of an inference, which is no headline where it is for another system than the program's."""
    caveat = record.priced.caveat if record.priced is not None else ""
    return None if caveat else record.time


def time_adds_up(record: _Timed) -> list[str]:
    """The parts follow one another without gap or overlap, and every sum is that of the parts."""
    return [] if record.time is None else list(_faults(record.time))


def _faults(time: TimeLine) -> Iterator[str]:
    yield from _gaps(time)
    total, expected = time.total.duration_s, sums(time.parts)
    for name in TimeSums.__struct_fields__:
        if _differ(getattr(time.sums, name), getattr(expected, name), total):
            yield f"{name} of the time line is {getattr(time.sums, name)}, its parts say {getattr(expected, name)}"
    for name, share, duration in (
        ("CPU", time.shares.cpu_percent, expected.cpu_s),
        ("NPU", time.shares.npu_percent, expected.npu_s),
    ):
        if total and _differ(share / 100 * total, duration, total):
            yield f"the {name}'s share of the time is {share} %, its parts say {100 * duration / total} %"
    yield from _waits(time)
    yield from _engines(time)
    least, most = time.total.least_s, time.total.most_s
    known = [row for row in (least, most) if row is not None]
    if len(known) == 1 or sorted((*known[:1], total, *known[1:])) != [*known[:1], total, *known[1:]]:
        yield "the band of the time does not contain the time"


def _engines(time: TimeLine) -> Iterator[str]:
    """NPU_ACTIVE and NPU_IDLE that are not all of the time."""
    engines, clock = time.engines, time.clocks.npu
    if engines is None or clock is None or engines.active_cycles is None or engines.idle_cycles is None:
        return
    cycles, span = engines.active_cycles + engines.idle_cycles, time.total.duration_s * clock.hz
    if abs(cycles - span) > 1:
        yield f"the NPU is active or idle for {cycles} cycles, the time is {span:.1f}"


def _gaps(time: TimeLine) -> Iterator[str]:
    """Parts that do not begin where the one before ends, and an end that is not the total."""
    end, total = 0.0, time.total.duration_s
    for number, part in enumerate(time.parts):
        if _differ(part.start_s, end, total):
            yield f"part {number} of the time line begins at {part.start_s} s, the one before ends at {end} s"
        if (part.on == "NPU") != (part.what == "npu"):
            yield f"part {number} of the time line is '{part.what}' on the {part.on}"
        end = part.end_s
    if _differ(end, total, total):
        yield f"the parts of the time line end at {end} s, the total is {total} s"


def _waits(time: TimeLine) -> Iterator[str]:
    """Waits that are longer than their part, and a sum that is not that of the parts."""
    for number, part in enumerate(time.parts):
        if part.waits_s is not None and (part.on == "NPU" or part.waits_s > part.duration_s):
            yield f"part {number} of the time line waits {part.waits_s} s of {part.duration_s} s on the {part.on}"
    found = sum(part.waits_s or 0 for part in time.parts)
    stated = 0.0 if time.waits is None else time.waits.duration_s
    if _differ(found, stated, time.total.duration_s):
        yield f"the waits of the time line are {stated} s, its parts say {found} s"


def _differ(one: float, other: float, total: float) -> bool:
    return not math.isclose(one, other, rel_tol=0, abs_tol=_ROUNDING * total)


def sums(parts: tuple[TimePart, ...]) -> TimeSums:
    """The time before the NPU's first job, in its jobs, between them, and after the last.

    Without a job, all of it is before.
    """
    jobs = [number for number, part in enumerate(parts) if part.on == "NPU"]
    first, last = (jobs[0], jobs[-1]) if jobs else (len(parts), len(parts))
    found = {"before": 0.0, "npu": 0.0, "between": 0.0, "after": 0.0}
    for number, part in enumerate(parts):
        place = "before" if number < first else "after" if number > last else "between"
        found["npu" if part.on == "NPU" else place] += part.duration_s
    return TimeSums(
        cpu_before_npu_s=found["before"],
        npu_s=found["npu"],
        cpu_between_npu_s=found["between"],
        cpu_after_npu_s=found["after"],
    )
