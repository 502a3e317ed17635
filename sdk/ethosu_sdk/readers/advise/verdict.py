"""All rules on the facts of a program: what they advise, and why the others are silent."""

from __future__ import annotations

from dataclasses import dataclass

from ethosu_sdk.readers.advise.advice import (
    CHANNELS,
    COMPUTING_OPERATORS,
    CPU_INSTRUCTIONS,
    CPU_OPERATORS,
    DELEGATES,
    IO_BYTES,
    MAC_UNITS,
    NPU_CYCLES,
    SQNR,
    SRAM,
)
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import RULES
from ethosu_sdk.records.advice import Item, SilentRule

_METRICS = (
    SQNR,
    COMPUTING_OPERATORS,
    DELEGATES,
    NPU_CYCLES,
    CPU_INSTRUCTIONS,
    CPU_OPERATORS,
    SRAM,
    IO_BYTES,
    CHANNELS,
    MAC_UNITS,
)
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
        found = [] if missing else [row.item(rule.name) for row in rule.find(facts)]
        advice += found
        if missing:
            silent.append(SilentRule(rule=rule.name, state="unknown", reason=missing))
        elif not found:
            silent.append(SilentRule(rule=rule.name, state="absent", reason=f"not seen: {rule.pattern}"))
    advice.sort(key=_rank)  # stable: the table's order where gains are alike
    return Verdict(tuple(advice), tuple(silent))


def _rank(advice: Item) -> tuple[int, float]:
    """What is wrong comes before what is slow, that before what is large; then by the share of the gain."""
    gain = advice.gains[0]
    share = abs(gain.after - gain.before) / abs(gain.before) if gain.before else 1.0
    return _ORDER.index(gain.metric), -share
