"""Whether one run is faster than another: by the first figure for the whole inference that both know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ethosu_sdk.records import wording
from ethosu_sdk.records.common import Source
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.time_line import headline

Word = Literal["FASTER", "SLOWER", "SAME", "NOT COMPARABLE"]
TIME = "time"
_CYCLES = "cycles of NPU and CPU"
_NPU_CYCLES = "cycles of the NPU, without the CPU's"
_OF_CPU = "cycles of the CPU"
_BY_VELA = "cycles by Vela"
_ORDER = (TIME, _CYCLES, _OF_CPU, _NPU_CYCLES, _BY_VELA)
_SAME_SHARE = 0.001  # less is no difference
_TIMES_FROM = 1.1  # a smaller ratio is told in percent alone


class Speed(NamedTuple):
    """What an inference takes, in milliseconds or cycles; `place` is the board that a time is for."""

    value: float
    source: Source
    place: str = ""


class SpeedVerdict(NamedTuple):
    """`ratio` is such as ``2.9 times``, empty where it is small; `figures` has what was and is, with the change."""

    word: Word
    ratio: str
    figures: str

    @property
    def words(self) -> str:
        return ": ".join(filter(None, (self.ratio, self.figures)))


def speed_verdict(before: Iterable[object], after: Iterable[object]) -> SpeedVerdict:
    """What the records of two runs say of their speed."""
    old, new = (dict(_speeds(records)) for records in (before, after))
    shared = [name for name in _ORDER if name in old and name in new and old[name].source == new[name].source]
    if not shared:
        return SpeedVerdict("NOT COMPARABLE", "", "no figure that both have says how long an inference takes")
    what = shared[0]
    one, two = old[what], new[what]
    places = " and ".join(dict.fromkeys(filter(None, (one.place, two.place))))
    is_time = what == TIME
    values = (milliseconds_texts if is_time else wording.number_texts)(one.value, two.value)
    unit = "ms" if is_time else what
    origin = ", ".join(filter(None, (one.source, places)))
    if one.value == two.value:
        return SpeedVerdict("SAME", "", f"{values[0]} {unit} ({origin})")
    figures = f"{' → '.join(values)} {unit} ({', '.join(filter(None, (percent_text(one.value, two.value), origin)))})"
    if one.value and abs(two.value / one.value - 1) < _SAME_SHARE:
        return SpeedVerdict("SAME", "", figures)
    less, more = sorted((one.value, two.value))
    ratio = more / less if less else 0.0
    times = f"{ratio:,.1f} times" if ratio >= _TIMES_FROM else ""
    return SpeedVerdict("FASTER" if two.value < one.value else "SLOWER", times, figures)


def milliseconds_texts(*values: float) -> list[str]:
    """Milliseconds as a run has them, with more digits where they would look alike."""
    texts = [wording.milliseconds(value / 1e3).removesuffix(" ms") for value in values]
    return texts if len(set(texts)) == len(set(values)) else wording.number_texts(*values)


def percent_text(before: float, after: float) -> str:
    """The change in percent, with a sign; empty where there was nothing before."""
    if not before:
        return ""
    return wording.signed_percent(100 * (after - before) / before)


def _speeds(records: Iterable[object]) -> Iterator[tuple[str, Speed]]:
    """All that the records of one run say of it; of what several say, the last one counts."""
    for record in records:
        if isinstance(record, Run | Profile):
            time = headline(record)
            if time is not None:
                yield TIME, Speed(time.total.duration_s * 1e3, time.total.source, time.place)
        if isinstance(record, Run):
            yield from _cycles(record)
        elif isinstance(record, Profile):
            known = (row for row in record.totals.npu.cycles if row.source != "estimated")
            yield from ((_NPU_CYCLES, Speed(row.value, row.source)) for row in known)
        elif isinstance(record, Compilation):
            estimates = [
                row for part in record.delegates for row in part.estimates if row.name == "total_cycles"
            ]
            if estimates:
                yield _BY_VELA, Speed(sum(row.value for row in estimates), "estimated")


def _cycles(run: Run) -> Iterator[tuple[str, Speed]]:
    npu = None if run.npu is None else run.npu.cycles
    cpu = None if run.cpu is None else run.cpu.cycles
    if npu is not None:
        yield _NPU_CYCLES, Speed(npu.value, npu.source)
        if cpu is not None:
            yield _CYCLES, Speed(npu.value + cpu.value, npu.source)
    elif run.npu is None and cpu is not None:
        yield _OF_CPU, Speed(cpu.value, cpu.source)
