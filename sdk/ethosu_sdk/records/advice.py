"""``advice/1``: schemas/advice.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, Host, Model, Number, Source, Target, Unavailable
from ethosu_sdk.records.kind import Part, RecordKind

MetricName = Literal[
    "total cycles",
    "time of an inference",
    "NPU cycles",
    "CPU cycles",
    "operators that compute on the CPU",
    "CPU operators",
    "CPU instructions",
    "delegates",
    "SRAM",
    "flash",
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


CandidateKind = Literal["program", "model", "precision", "weights", "target"]
TrialState = Literal["better", "smaller", "same", "worse", "closer", "broken", "unjudged", "failed"]
OutputsState = Literal["equal", "close", "lossy", "broken", "unknown"]
SimulatorName = Literal["qemu", "host", "fvp"]
Judge = Literal["fit", "time of an inference", "NPU and CPU cycles", "NPU cycles"]


class Figure(Part):
    metric: MetricName
    unit: str
    before: Number | None = None
    after: Number
    source: Source | None = None


class Outputs(Part):
    state: OutputsState
    text: str
    sqnr_before_db: Number | None = None
    sqnr_after_db: Number | None = None


class Trial(Part):
    name: str
    kind: CandidateKind
    change: str
    parts: tuple[str, ...]
    state: TrialState
    command: str | None = None
    code: tuple[str, ...] | None = None
    figures: tuple[Figure, ...]
    gain: Number | None = None
    fits: bool | None = None
    outputs: Outputs | None = None
    reason: str | None = None
    limits: tuple[str, ...]


class Tried(Part):
    judged_by: Judge
    simulator: SimulatorName
    fits: bool
    trials: tuple[Trial, ...]
    left: tuple[str, ...]


class CpuCall(Part):
    name: str
    calls: int
    where: str | None = None
    why: str
    constraint: str | None = None
    instructions: int | None = None
    cycles: int | None = None
    border_cycles: int | None = None
    replacement: str | None = None
    results: str | None = None


class SilentRule(Part):
    rule: str
    state: Literal["absent", "unknown"]
    reason: str


class Advice(Derived[Literal["done"]], tag_field="schema", tag="advice/1"):
    """What to change about a program so that it runs better."""

    model: Model
    target: Target | None = None
    advice: tuple[Item, ...]
    cpu: tuple[CpuCall, ...] | None = None
    tried: Tried | None = None
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


def trials_are_what_they_say(record: Advice) -> list[str]:
    """A trial that failed has a reason and no figures; one that is better saves something, or fits, and its outputs
    do not break."""
    tried = record.tried
    if tried is None:
        return []
    found = []
    for row in tried.trials:
        if (row.state == "failed") != (not row.figures) or (row.state == "failed" and row.reason is None):
            found.append(f"{row.name} is {row.state} with {len(row.figures)} figures")
        if row.state != "better":
            continue
        is_gain = bool(row.fits) if tried.judged_by == "fit" else row.gain is not None and row.gain > 0
        if not is_gain:
            found.append(f"{row.name} is better without a gain")
        if row.outputs is not None and row.outputs.state == "broken":
            found.append(f"{row.name} is better and breaks the outputs")
    return found


def _improvement(change: Change) -> float:
    step = float(change.after - change.before)
    return step if change.better == "more" else -step


KIND = RecordKind(
    Advice,
    (
        rules.unavailable_is_absent,
        rules.model_is_that_of_the_provenance,
        gains_are_gains,
        trials_are_what_they_say,
    ),
    file="advice.json",
    role="advice",
)
