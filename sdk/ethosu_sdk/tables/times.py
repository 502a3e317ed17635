"""Words for the time of an inference."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.records.parts.time_line import WAITS_PATH, TimeLine, headline
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run


def milliseconds(duration_s: float) -> str:
    """A duration with three digits at least: ``21.4 ms``."""
    value = duration_s * 1e3
    digits = 3 if value < 1 else 2 if value < 10 else 1
    return f"{value:,.{digits}f} ms"


def line(time: TimeLine) -> str:
    """The time of an inference, its band, and who takes it, in one line."""
    total = time.total
    band = "band not known"
    if total.least_s is not None and total.most_s is not None:
        band = f"{milliseconds(total.least_s)} to {milliseconds(total.most_s)}"
    return (
        f"{milliseconds(total.duration_s)} on {time.place} ({total.source}, {band}): "
        f"{sums(time)}; "
        f"largest on the CPU: {largest_on_cpu(time)}"
    )


def sums(time: TimeLine) -> str:
    """What the NPU takes and what the CPU; of a program that has no work for the NPU, the CPU's alone."""
    cpu = f"CPU {milliseconds(time.sums.cpu_s)}"
    return f"NPU {milliseconds(time.sums.npu_s)}, {cpu}" if time.sums.npu_s else cpu


def rate(time: TimeLine) -> Iterator[str]:
    """How many inferences a second the time allows, where it takes time. A token of a language model is one."""
    if time.total.duration_s:
        yield f"{1 / time.total.duration_s:,.1f} inferences/s"


def largest_on_cpu(time: TimeLine) -> str:
    """What takes the CPU longest, without the runtime's part around a kernel: ``avg_pool2d kernel 0.514 ms``."""
    name = short(time.largest.name) + (" kernel" if _kernels(time) else "")
    return f"{name} {milliseconds(time.largest.duration_s)}{calls_of_largest(time)}"


def calls_of_largest(time: TimeLine) -> str:
    """In how many calls, where the time is that of several; else nothing."""
    calls = _kernels(time)
    return f" in {calls:,} calls" if calls > 1 else ""


def _kernels(time: TimeLine) -> int:
    return sum(row.what == "kernel" and row.name == time.largest.name for row in time.parts)


def short(name: str) -> str:
    """An operator's name without its library and overload."""
    return name.rpartition("::")[2].partition(".")[0].replace("_", " " if "::" not in name else "_")


def rows(record: Run | Profile) -> Iterator[tuple[str, str]]:
    """Name and text of what people see of the time: the headline, or the same with its caveat."""
    time = record.time
    if time is None:
        return
    if headline(record) is not None:
        yield "inference", line(time)
        yield from (("", f"{words}, one after the other") for words in rate(time))
    elif record.priced is not None:
        yield "at those clocks", f"{line(time)}, {record.priced.caveat}"
    clocks = [("CPU", time.clocks.cpu), ("NPU", time.clocks.npu)]
    for name, clock in clocks:
        if clock is not None:
            yield "", f"{name} at {clock.hz / 1e6:,g} MHz ({clock.source})"
    yield "", _waits(record, time)


def _waits(record: Run | Profile, time: TimeLine) -> str:
    if time.waits is not None:
        lies = time.waits.memories
        places = f"code in {lies.code}, constants in {lies.constants}, arena in {lies.arena}"
        return f"waits of the CPU: {milliseconds(time.waits.duration_s)} ({places})"
    reasons = [row.reason for row in record.unavailable if row.path == WAITS_PATH]
    return f"waits of the CPU for memory are not included: {', '.join(reasons) or 'not known'}"
