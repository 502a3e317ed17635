"""``advice/1``: schemas/advice.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Host, Model, Number, Provenance, Source, Target, Tool, Unavailable
from ethosu_sdk.records.kind import Part, RecordKind

MetricName = Literal[
    "time of an inference",
    "NPU cycles",
    "CPU cycles",
    "operators that compute on the CPU",
    "CPU operators",
    "CPU instructions",
    "delegates",
    "SRAM",
    "inputs and outputs",
    "MACs per cycle that the NPU has",
    "output channels",
    "SQNR",
]


class Evidence(Part):
    name: str
    value: Number
    unit: str
    source: Source | None = None


class Change(Part):
    metric: MetricName
    unit: str
    better: Literal["less", "more"]
    before: Number
    after: Number
    how: str
    source: Source | None = None


class Item(Part):
    rule: str
    finding: str
    where: str | None = None
    evidence: tuple[Evidence, ...]
    command: str | None = None
    code: tuple[str, ...] | None = None
    gains: tuple[Change, ...]
    costs: tuple[Change, ...]
    limits: tuple[str, ...]


class SilentRule(Part):
    rule: str
    state: Literal["absent", "unknown"]
    reason: str


class Advice(Part, tag_field="schema", tag="advice/1"):
    """What to change about a program so that it runs better."""

    status: Literal["done"]
    created: str
    tool: Tool
    provenance: Provenance
    model: Model
    target: Target | None = None
    advice: tuple[Item, ...]
    silent: tuple[SilentRule, ...]
    unavailable: tuple[Unavailable, ...]
    host: Host


def gains_are_gains(record: Advice) -> list[str]:
    """A gain is expected to become better, a cost worse, and a rule that has advice is not silent."""
    found = []
    for row in record.advice:
        for name, parts, sign in (("gains", row.gains, 1), ("costs", row.costs, -1)):
            found += [
                f"{row.rule}: {part.metric} from {part.before} to {part.after} is not among {name}"
                for part in parts
                if sign * _improvement(part) <= 0
            ]
    given = {row.rule for row in record.advice}
    found += [f"{row.rule} has advice and is silent" for row in record.silent if row.rule in given]
    return found


def _improvement(change: Change) -> float:
    step = float(change.after - change.before)
    return step if change.better == "more" else -step


KIND = RecordKind(
    Advice,
    (rules.unavailable_is_absent, rules.model_is_that_of_the_provenance, gains_are_gains),
    file="advice.json",
    role="advice",
)
