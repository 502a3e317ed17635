"""What a rule says: what it saw, what to change, and what that is expected to bring and to cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from ethosu_sdk.records import Record

LESS, MORE = "less", "more"
NPU_CYCLES = ("NPU cycles", "cycles", LESS)
CPU_OPERATORS = ("CPU operators", "calls", LESS)
CPU_INSTRUCTIONS = ("CPU instructions", "instructions", LESS)
COMPUTING_OPERATORS = ("operators that compute on the CPU", "calls", LESS)
DELEGATES = ("delegates", "delegates", LESS)
SRAM = ("SRAM", "bytes", LESS)
IO_BYTES = ("inputs and outputs", "bytes", LESS)
CHANNELS = ("output channels", "channels", MORE)
MAC_UNITS = ("MACs per cycle that the NPU has", "MACs", LESS)
SQNR = ("SQNR", "dB", MORE)


@dataclass(frozen=True)
class Figure:
    """A figure that the advice rests on. `source` is that of records: measured, modelled, estimated or counted; empty
    for what the program itself says."""

    name: str
    value: float
    unit: str
    source: str = ""

    def to_json(self) -> Record:
        """As records have it."""
        source = {"source": self.source} if self.source else {}
        return {"name": self.name, "value": self.value, "unit": self.unit, **source}


@dataclass(frozen=True)
class Change:
    """What becomes of a figure when the advice is followed, and `how` that was computed.

    `metric` is one of this module's triples. `before` comes from `source`, `after` is the expectation.
    """

    metric: tuple[str, str, str]
    before: float
    after: float
    how: str
    source: str = ""

    @property
    def share(self) -> float:
        """By how much of itself the figure changes."""
        return abs(self.after - self.before) / abs(self.before) if self.before else 1.0

    def to_json(self) -> Record:
        """As records have it."""
        name, unit, better = self.metric
        return {
            "metric": name,
            "unit": unit,
            "better": better,
            "before": self.before,
            "after": self.after,
            "how": self.how,
            **({"source": self.source} if self.source else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to change. `where` is the module or layer that it is about; `command` is a whole command line, `code`
    lines of the model's file; the first of `gains` is why it is given; `limits` say where it does not hold."""

    finding: str
    where: str = ""
    evidence: tuple[Figure, ...]
    command: str = ""
    code: tuple[str, ...] = ()
    gains: tuple[Change, ...]
    costs: tuple[Change, ...] = field(default=())
    limits: tuple[str, ...]

    def to_json(self) -> Record:
        """As records have it, without the rule's name."""
        return {
            "finding": self.finding,
            **({"where": self.where} if self.where else {}),
            "evidence": [row.to_json() for row in self.evidence],
            **({"command": self.command} if self.command else {}),
            **({"code": list(self.code)} if self.code else {}),
            "gains": [row.to_json() for row in self.gains],
            "costs": [row.to_json() for row in self.costs],
            "limits": list(self.limits),
        }
