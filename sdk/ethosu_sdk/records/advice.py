"""``advice/1``, from which schemas/advice.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Count,
    Derived,
    Host,
    Model,
    Number,
    Part,
    PositiveCount,
    RecordKind,
    Some,
    Source,
    Target,
    Text,
    UnavailableMembers,
    about,
    require,
)

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

RuleName = Annotated[str, Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
Gain = Annotated[int, Meta(le=1)] | Annotated[float, Meta(le=1)]


class Evidence(Part):
    name: Text
    value: Number
    unit: Text
    source: Source | None = None


class Change(Part):
    metric: MetricName
    unit: Text
    better: Literal["less", "more"]
    before: Number
    after: Annotated[Number, about("expected")]
    how: Annotated[Text, about("how the expectation was computed")]
    source: Annotated[
        Source | None, about("of `before`; absent for sizes and counts that the program itself states")
    ] = None


class Item(Part):
    rule: RuleName
    finding: Annotated[Text, about("the pattern as it was seen")]
    where: Annotated[Text | None, about("module or line of the model, or layer")] = None
    evidence: Some[Evidence]
    command: Annotated[
        Text | None,
        about(
            "a whole command line; files are named as the record of `compile` names them, without "
            "their folders"
        ),
    ] = None
    code: Annotated[Some[Text] | None, about("lines of the model's file")] = None
    gains: Annotated[Some[Change], about("the first is why the advice is given")]
    costs: tuple[Change, ...]
    limits: Annotated[Some[Text], about("where it does not hold")]

    together: ClassVar[dict[str, Any]] = {"anyOf": [{"required": ["command"]}, {"required": ["code"]}]}

    def __post_init__(self) -> None:
        require(self.command is not None or self.code is not None, "neither a command nor code is given")


CandidateKind = Literal["program", "model", "precision", "weights", "target"]
TrialState = Literal["better", "smaller", "same", "worse", "closer", "broken", "unjudged", "failed"]
OutputsState = Literal["equal", "close", "lossy", "broken", "unknown"]
SimulatorName = Literal["qemu", "host", "fvp"]
Judge = Literal["fit", "time of an inference", "NPU and CPU cycles", "NPU cycles"]


class Figure(Part):
    metric: MetricName
    unit: Text
    before: Number | None = None
    after: Annotated[Number, about("of the program that was compiled again")]
    source: Annotated[Source | None, about("absent for sizes and counts that the program itself states")] = (
        None
    )


class Outputs(Part):
    state: Annotated[
        OutputsState,
        about(
            "equal to the program's, bit for bit; close: not more than 1 dB farther from floating "
            "point; lossy: farther; broken: farther, and below 20 dB"
        ),
    ]
    text: Text
    sqnr_before_db: Annotated[
        Number | None,
        about(
            "of the program's outputs against the model in floating point, for the example inputs; "
            "absent where there is no noise or no such model"
        ),
    ] = None
    sqnr_after_db: Number | None = None


class Trial(Part):
    name: Annotated[Text, about("a change by itself has one name; changes together are joined by +")]
    kind: Annotated[
        CandidateKind,
        about(
            "program: options and layout; model: other operators; precision: other quantisation; "
            "weights: other weights; target: another NPU"
        ),
    ]
    change: Annotated[Text, about("in words")]
    parts: Annotated[Some[Text], about("the names of the changes that it combines")]
    state: Annotated[
        TrialState,
        about(
            "better: by the figure that decides; smaller: less SRAM or flash; closer: outputs nearer "
            "to floating point; broken: outputs far from floating point; unjudged: the CPU's part is "
            "not known; failed: there is no program"
        ),
    ]
    command: Annotated[Text | None, about("a whole command line, if options of `compile` change")] = None
    code: Annotated[
        Some[Text] | None, about("lines that followed the model's file, if the model or its inputs change")
    ] = None
    figures: tuple[Figure, ...]
    gain: Annotated[
        Gain | None, about("share of the time or cycles that is saved; negative where more is needed")
    ] = None
    fits: bool | None = None
    outputs: Outputs | None = None
    reason: Annotated[Text | None, about("why it failed, or cannot be judged")] = None
    limits: Annotated[tuple[Text, ...], about("what it asks of the user")]


class Tried(Part):
    """Changes that were compiled and run; absent without --try."""

    judged_by: Annotated[Judge, about("the figure that decides; fit: the program does not fit its board")]
    simulator: Annotated[SimulatorName, about("that ran the program and every trial")]
    fits: Annotated[bool, about("whether the program as it is fits its board")]
    trials: Annotated[tuple[Trial, ...], about("the best first")]
    left: Annotated[
        tuple[Text, ...], about("names of changes that were not tried, because the user stopped it")
    ]


class CpuCall(Part):
    name: Text
    calls: PositiveCount
    where: Annotated[Text | None, about("line and module of the model")] = None
    why: Annotated[Text, about("why the partitioner leaves it on the CPU")]
    constraint: Annotated[
        Text | None, about("what the NPU takes of such an operator, and the file that says so")
    ] = None
    instructions: Annotated[
        Count | None, about("of all calls in an inference; absent where they were not counted")
    ] = None
    cycles: Annotated[Count | None, about("modelled, of all calls in an inference")] = None
    border_cycles: Annotated[
        Count | None,
        about("modelled: its share of the conversions around it, and of the start of the delegate behind it"),
    ] = None
    replacement: Annotated[Text | None, about("what to use instead")] = None
    results: Annotated[Text | None, about("what becomes of the results with the replacement")] = None


class SilentRule(Part):
    rule: RuleName
    state: Annotated[
        Literal["absent", "unknown"], about("absent: the pattern is not there; unknown: a record is missing")
    ]
    reason: Text


class Advice(Derived[Literal["done"]], tag_field="schema", tag="advice/1"):
    """What to change about a program so that it runs better."""

    model: Model
    target: Target | None = None
    advice: Annotated[tuple[Item, ...], about("what changes its first gain by the largest share first")]
    cpu: Annotated[
        tuple[CpuCall, ...] | None,
        about(
            "every operator on the CPU, by its place in the model; what costs most first. Absent "
            "without a record of `compile`"
        ),
    ] = None
    tried: Tried | None = None
    silent: tuple[SilentRule, ...]
    unavailable: UnavailableMembers
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
