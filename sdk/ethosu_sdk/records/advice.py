"""``advice/1``, from which schemas/advice.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind, require

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
    name: c.Text
    value: c.Number
    unit: c.Text
    source: c.Source | None = None


class Change(Part):
    metric: MetricName
    unit: c.Text
    better: Literal["less", "more"]
    before: c.Number
    after: c.Number  #: expected
    how: c.Text  #: how the expectation was computed
    source: c.Source | None = None  #: of `before`; absent for sizes and counts that the program itself states


class Item(Part):
    rule: RuleName
    finding: c.Text  #: the pattern as it was seen
    where: c.Text | None = None  #: module or line of the model, or layer
    evidence: c.Some[Evidence]
    #: a whole command line; files are named as the record of `compile` names them, without their folders
    command: c.Text | None = None
    code: c.Some[c.Text] | None = None  #: lines of the model's file
    gains: c.Some[Change]  #: the first is why the advice is given
    costs: tuple[Change, ...]
    limits: c.Some[c.Text]  #: where it does not hold

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
    unit: c.Text
    before: c.Number | None = None
    after: c.Number  #: of the program that was compiled again
    source: c.Source | None = None  #: absent for sizes and counts that the program itself states


class Outputs(Part):
    #: equal to the program's, bit for bit; close: not more than 1 dB farther from floating point; lossy:
    #: farther; broken: farther, and below 20 dB
    state: OutputsState
    text: c.Text
    #: of the program's outputs against the model in floating point, for the example inputs; absent where
    #: there is no noise or no such model
    sqnr_before_db: c.Number | None = None
    sqnr_after_db: c.Number | None = None


class Trial(Part):
    name: c.Text  #: a change by itself has one name; changes together are joined by +
    #: program: options and layout; model: other operators; precision: other quantisation; weights: other
    #: weights; target: another NPU
    kind: CandidateKind
    change: c.Text  #: in words
    parts: c.Some[c.Text]  #: the names of the changes that it combines
    #: better: by the figure that decides; smaller: less SRAM or flash; closer: outputs nearer to floating
    #: point; broken: outputs far from floating point; unjudged: the CPU's part is not known; failed: there is
    #: no program
    state: TrialState
    command: c.Text | None = None  #: a whole command line, if options of `compile` change
    #: lines that followed the model's file, if the model or its inputs change
    code: c.Some[c.Text] | None = None
    figures: tuple[Figure, ...]
    gain: Gain | None = None  #: share of the time or cycles that is saved; negative where more is needed
    fits: bool | None = None
    outputs: Outputs | None = None
    reason: c.Text | None = None  #: why it failed, or cannot be judged
    limits: tuple[c.Text, ...]  #: what it asks of the user


class Tried(Part):
    """Changes that were compiled and run; absent without --try."""

    judged_by: Judge  #: the figure that decides; fit: the program does not fit its board
    simulator: SimulatorName  #: that ran the program and every trial
    fits: bool  #: whether the program as it is fits its board
    trials: tuple[Trial, ...]  #: the best first
    left: tuple[c.Text, ...]  #: names of changes that were not tried, because the user stopped it


class CpuCall(Part):
    name: c.Text
    calls: c.PositiveCount
    where: c.Text | None = None  #: line and module of the model
    why: c.Text  #: why the partitioner leaves it on the CPU
    constraint: c.Text | None = None  #: what the NPU takes of such an operator, and the file that says so
    instructions: c.Count | None = None  #: of all calls in an inference; absent where they were not counted
    cycles: c.Count | None = None  #: modelled, of all calls in an inference
    #: modelled: its share of the conversions around it, and of the start of the delegate behind it
    border_cycles: c.Count | None = None
    replacement: c.Text | None = None  #: what to use instead
    results: c.Text | None = None  #: what becomes of the results with the replacement


class SilentRule(Part):
    rule: RuleName
    state: Literal["absent", "unknown"]  #: absent: the pattern is not there; unknown: a record is missing
    reason: c.Text


class Advice(Derived[Literal["done"]], tag_field="schema", tag="advice/1"):
    """What to change about a program so that it runs better."""

    model: c.Model
    target: c.Target | None = None
    advice: tuple[Item, ...]  #: what changes its first gain by the largest share first
    #: every operator on the CPU, by its place in the model; what costs most first. Absent without a record of
    #: `compile`
    cpu: tuple[CpuCall, ...] | None = None
    tried: Tried | None = None
    silent: tuple[SilentRule, ...]
    unavailable: c.UnavailableMembers
    host: c.Host


def gains_are_gains(record: Advice) -> Iterator[str]:
    """A gain is expected to become better, a cost worse, and a rule that has advice is not silent."""
    for row in record.advice:
        for name, parts, sign in (("gains", row.gains, 1), ("costs", row.costs, -1)):
            for part in parts:
                step = float(part.after - part.before)
                if sign * (step if part.better == "more" else -step) <= 0:
                    yield f"{row.rule}: {part.metric} from {part.before} to {part.after} is not among {name}"
    given = {row.rule for row in record.advice}
    yield from (f"{row.rule} has advice and is silent" for row in record.silent if row.rule in given)


def trials_are_what_they_say(record: Advice) -> Iterator[str]:
    """A trial that failed has a reason and no figures; one that is better saves something, or fits, and its outputs
    do not break."""
    tried = record.tried
    if tried is None:
        return
    for row in tried.trials:
        if (row.state == "failed") != (not row.figures) or (row.state == "failed" and row.reason is None):
            yield f"{row.name} is {row.state} with {len(row.figures)} figures"
        if row.state != "better":
            continue
        is_gain = row.fits if tried.judged_by == "fit" else row.gain is not None and row.gain > 0
        if not is_gain:
            yield f"{row.name} is better without a gain"
        if row.outputs is not None and row.outputs.state == "broken":
            yield f"{row.name} is better and breaks the outputs"


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
