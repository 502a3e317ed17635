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
    Advice,
)
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import RULES, Rule

ABSENT = "absent"
UNKNOWN = "unknown"
_ORDER = (
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


@dataclass(frozen=True)
class Silence:
    """A rule without advice: its pattern is `absent`, or it is `unknown` whether it is there, and why."""

    rule: Rule
    state: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """Advice with the rule that gives it, what saves most first, and the silent rules."""

    advice: tuple[tuple[Rule, Advice], ...]
    silent: tuple[Silence, ...]


def judge(facts: Facts) -> Verdict:
    """Apply all rules to the facts."""
    advice: list[tuple[Rule, Advice]] = []
    silent: list[Silence] = []
    for rule in RULES:
        missing = next((facts.missing[kind] for kind in rule.needs if kind in facts.missing), "")
        found = [] if missing else rule.find(facts)
        advice += ((rule, row) for row in found)
        if missing:
            silent.append(Silence(rule, UNKNOWN, missing))
        elif not found:
            silent.append(Silence(rule, ABSENT, f"not seen: {rule.pattern}"))
    advice.sort(key=lambda row: _rank(row[1]))  # stable: the table's order where gains are alike
    return Verdict(tuple(advice), tuple(silent))


def _rank(advice: Advice) -> tuple[int, float]:
    """What is wrong comes before what is slow, that before what is large; then by the share of the gain."""
    gain = advice.gains[0]
    return _ORDER.index(gain.metric), -gain.share
