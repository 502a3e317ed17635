"""All rules on the facts of a program: what they advise, and why the others are silent."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from ethosu_sdk.readers.advise.advice import (
    CHANNELS,
    COMPUTING_OPERATORS,
    CPU_CYCLES,
    CPU_INSTRUCTIONS,
    CPU_OPERATORS,
    DELEGATES,
    IO_BYTES,
    MAC_UNITS,
    NPU_CYCLES,
    SQNR,
    SRAM,
    TIME,
    change,
)
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import RULES
from ethosu_sdk.records.advice import Item, SilentRule
from ethosu_sdk.records.parts.time_line import headline

_METRICS = (
    SQNR,
    COMPUTING_OPERATORS,
    DELEGATES,
    TIME,
    NPU_CYCLES,
    CPU_INSTRUCTIONS,
    CPU_CYCLES,
    CPU_OPERATORS,
    SRAM,
    IO_BYTES,
    CHANNELS,
    MAC_UNITS,
)
_HOW = "the cycles of CPU and NPU that are saved, each by its clock"
_ORDER = [metric.name for metric in _METRICS]


@dataclass(frozen=True)
class Verdict:
    """What the rules advise, what saves most first, and the silent rules."""

    advice: tuple[Item, ...]
    silent: tuple[SilentRule, ...]


def judge(facts: Facts) -> Verdict:
    """Apply all rules to the facts."""
    advice: list[Item] = []
    silent: list[SilentRule] = []
    for rule in RULES:
        missing = next((facts.missing[kind] for kind in rule.needs if kind in facts.missing), "")
        found = [] if missing else [_timed(row.item(rule.name), facts) for row in rule.find(facts)]
        advice += found
        if missing:
            silent.append(SilentRule(rule=rule.name, state="unknown", reason=missing))
        elif not found:
            silent.append(SilentRule(rule=rule.name, state="absent", reason=f"not seen: {rule.pattern}"))
    advice.sort(key=_rank)  # stable: the table's order where gains are alike
    return Verdict(tuple(advice), tuple(silent))


def _timed(item: Item, facts: Facts) -> Item:
    """`item` with what its cycles are of the time of an inference, where that is known and something is saved.

    It is the first of the gains, by which advice is ranked, unless the advice is about wrong results.
    """
    time = headline(facts.profile)
    if time is None or item.gains[0].metric == SQNR.name:
        return item
    clocks = {CPU_CYCLES.name: time.clocks.cpu}
    if time.clocks.npu is not None:
        clocks[NPU_CYCLES.name] = time.clocks.npu
    saved_s = sum(
        (row.before - row.after) / clocks[row.metric].hz
        for row in (*item.gains, *item.costs)
        if row.metric in clocks
    )
    if saved_s <= 0:
        return item
    before = time.total.duration_s * 1e3
    after = max(0.0, before - saved_s * 1e3)
    return replace(item, gains=(change(TIME, before, after, _HOW, "modelled"), *item.gains))


def _rank(advice: Item) -> tuple[int, float]:
    """What is wrong comes before what is slow, that before what is large; then by the share of the gain."""
    gain = advice.gains[0]
    share = abs(gain.after - gain.before) / abs(gain.before) if gain.before else 1.0
    return _ORDER.index(gain.metric), -share
