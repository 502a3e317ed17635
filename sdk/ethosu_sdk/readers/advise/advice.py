"""What a rule says: what it saw, what to change, and what that is expected to bring and to cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ethosu_sdk.records.advice import Change, Evidence, Item, MetricName
from ethosu_sdk.records.common import Source


class Metric(NamedTuple):
    """A figure that advice changes."""

    name: MetricName
    unit: str
    better: Literal["less", "more"]


TIME = Metric("time of an inference", "ms", "less")
NPU_CYCLES = Metric("NPU cycles", "cycles", "less")
CPU_OPERATORS = Metric("CPU operators", "calls", "less")
CPU_CYCLES = Metric("CPU cycles", "cycles", "less")
CPU_INSTRUCTIONS = Metric("CPU instructions", "instructions", "less")
COMPUTING_OPERATORS = Metric("operators that compute on the CPU", "calls", "less")
DELEGATES = Metric("delegates", "delegates", "less")
SRAM = Metric("SRAM", "bytes", "less")
FLASH = Metric("flash", "bytes", "less")
TOTAL_CYCLES = Metric("total cycles", "cycles", "less")
IO_BYTES = Metric("inputs and outputs", "bytes", "less")
CHANNELS = Metric("output channels", "channels", "more")
MAC_UNITS = Metric("MACs per cycle that the NPU has", "MACs", "less")
SQNR = Metric("SQNR", "dB", "more")


def figure(name: str, value: float, unit: str, source: Source | None = None) -> Evidence:
    """A figure that the advice rests on; without `source` the program itself says it."""
    return Evidence(name=name, value=value, unit=unit, source=source)


def change(metric: Metric, before: float, after: float, how: str, source: Source | None = None) -> Change:
    """What becomes of a figure when the advice is followed, and `how` that was computed. `before` comes from
    `source`, `after` is the expectation."""
    return Change(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        before=before,
        after=after,
        how=how,
        source=source,
    )


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to change. `where` is the module or layer that it is about; `command` is a whole command line, `code`
    lines of the model's file; the first of `gains` is why it is given; `limits` say where it does not hold."""

    finding: str
    where: str = ""
    evidence: tuple[Evidence, ...]
    command: str = ""
    code: tuple[str, ...] = ()
    gains: tuple[Change, ...]
    costs: tuple[Change, ...] = ()
    limits: tuple[str, ...]

    def item(self, rule: str) -> Item:
        """As records have it."""
        return Item(
            rule=rule,
            finding=self.finding,
            where=self.where or None,
            evidence=self.evidence,
            command=self.command or None,
            code=self.code or None,
            gains=self.gains,
            costs=self.costs,
            limits=self.limits,
        )
