"""The time line of an inference, in records of runs and profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Protocol

from msgspec import Meta

from ethosu_sdk.records.common import Amount, Count, Part, PositiveAmount, Priced, Some, Text

Processor = Literal["CPU", "NPU"]
What = Literal["runtime", "kernel", "copy_in", "driver_start", "npu", "interrupt", "driver_stop", "copy_out"]

Percent = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100.000001)]

WAITS_PATH = "/time/waits"  # where a record says why there are none

_ROUNDING = 1e-9  # of the total: what sums of doubles may be off by


class Clock(Part):
    hz: PositiveAmount
    source: Text  #: where the frequency is from


class Clocks(Part):
    cpu: Clock
    npu: Clock | None = None


class TimePart(Part):
    operator: Count  #: place in the run's operators; their number for what comes after the last
    what: What  #: npu: a job of the NPU, in which the CPU waits; the others as in cpu_parts
    on: Processor
    name: Text | None = None  #: of a kernel: its operator
    start_s: Amount
    duration_s: Amount
    #: of it, waits for memory; absent where there are none or they are not known
    waits_s: Amount | None = None

    @property
    def label(self) -> str:
        """What people call it: the kernel's operator, or the part."""
        return self.name or self.what.replace("_", " ")

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


class TimeTotal(Part):
    duration_s: Amount  #: of one inference: the first one
    source: Literal["modelled"]
    #: with the errors of both processors' cycles; absent where one is not known
    least_s: Amount | None = None
    most_s: Amount | None = None  #: the same, with memory waits of the CPU where they are not modelled
    band: Some[Text]  #: of each processor, in words


class TimeSums(Part):
    cpu_before_npu_s: Amount  #: the CPU before the NPU's first job; all of its time without one
    npu_s: Amount  #: the NPU's jobs, in which the CPU waits
    cpu_between_npu_s: Amount
    cpu_after_npu_s: Amount  #: the CPU after the NPU's last job

    @property
    def cpu_s(self) -> float:
        """All of the CPU's."""
        return self.cpu_before_npu_s + self.cpu_between_npu_s + self.cpu_after_npu_s


class Shares(Part):
    cpu_percent: Percent
    npu_percent: Percent


class Contributor(Part):
    name: Text
    duration_s: Amount


class WaitsFor(Part):
    code: Text
    constants: Text
    arena: Text


class Waits(Part):
    duration_s: Amount
    memories: WaitsFor  #: the memories of the board in which the CPU's things lie
    source: Text  #: of the cycles for which the CPU waits


class Engines(Part):
    mac_percent: Amount
    weight_decoder_percent: Amount
    memory_percent: Amount
    active_cycles: Count | None = None  #: of the NPU's clock in the jobs: NPU_ACTIVE of the inference
    #: of the NPU's clock in the rest of the inference: NPU_IDLE if the counters run all the time
    idle_cycles: Count | None = None


class VelaTime(Part):
    duration_s: Amount  #: Vela's estimate of the NPU's cycles by the NPU's clock


class TimeLine(Part):
    """One inference on one axis: the CPU's cycles and the NPU's, each by its clock."""

    place: Text  #: the board profile that it is for, else the system, else the simulated board
    total: TimeTotal
    clocks: Clocks
    sums: TimeSums
    shares: Shares  #: of the total
    #: the operator's kernel or other part that takes the CPU longest, over all of its calls
    largest: Contributor
    #: of the CPU for its memories, which are part of its parts; absent where they are not known and not in
    #: the time
    waits: Waits | None = None
    #: how much of the NPU's time each of its engines works; 100 at most, as operations overlap
    engines: Engines | None = None
    vela: VelaTime | None = None
    parts: Some[TimePart]  #: in the order of time, without gap or overlap


class _Timed(Protocol):
    @property
    def time(self) -> TimeLine | None: ...

    @property
    def priced(self) -> Priced | None: ...


def headline(record: _Timed) -> TimeLine | None:
    """The time of an inference, which is no headline where it is for another system than the program's."""
    caveat = record.priced.caveat if record.priced is not None else ""
    return None if caveat else record.time


def time_adds_up(record: _Timed) -> Iterator[str]:
    """The parts follow one another without gap or overlap, and every sum is that of the parts."""
    time = record.time
    if time is None:
        return
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
    """The time before the NPU's first job (all of it without one), in its jobs, between them, and after the last."""
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
