"""Several inferences in a row: ``generate/1``, the text of a language model, and ``script-result/1``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind

# The parts of generate/1.
Stopped = Literal["eos", "length", "context", "interrupted"]

AtLeastOne = Annotated[int, Meta(ge=1)] | Annotated[float, Meta(ge=1)]


class Choice(Part):
    """How tokens are chosen."""

    form: Literal["greedy", "sample"]
    temperature: c.PositiveAmount | None = None
    top_k: c.PositiveCount | None = None
    seed: c.Count | None = None
    eos: c.Count | None = None  #: the token that ends a text


class GeneratedText(Part):
    """Prompt and what was generated, as the tokenizer reads them."""

    prompt: str
    generated: str


class StepTime(Part):
    """The modelled time of one step, and its parts."""

    duration_s: c.PositiveAmount
    npu_s: c.Amount
    cpu_s: c.Amount
    waits_s: c.Amount | None = None  #: of the CPU's time, waits for its memories
    least_s: c.Amount | None = None
    most_s: c.Amount | None = None


class Phase(Part):
    steps: c.Count
    duration_s: c.Amount
    tokens_per_s: c.PositiveAmount | None = None


class Timing(Part):
    """Modelled time: of a step, and of the steps that take the prompt and those that follow."""

    source: Literal["modelled"]
    step: StepTime  #: one step; shapes are static, so each takes the time of the first
    prefill: Phase  #: steps that take the prompt
    decode: Phase  #: steps that take a token that was chosen


class Perplexity(Part):
    file: c.Text  #: the logits
    tokens: Annotated[int, Meta(ge=2)]
    predicted: c.PositiveCount
    mean_nll: c.Amount  #: mean cross entropy in nats
    perplexity: AtLeastOne


class Generate(Derived[Literal["pass", "interrupted"]], tag_field="schema", tag="generate/1"):
    """What a language model generated on a board."""

    model: c.Model
    target: c.Target | None = None
    simulator: c.Simulator | None = None
    context: c.PositiveCount | None = None  #: positions that the model's caches hold
    choice: Choice  #: how the next token is chosen from the logits
    prompt: c.Some[c.Count]  #: tokens that the first steps took
    tokens: tuple[c.Count, ...]  #: tokens that the model chose
    stopped: Stopped  #: why there are no more tokens; context: the caches are full
    text: GeneratedText | None = None
    steps: c.Count  #: inferences, one for each token but the last that was chosen
    npu_cycles: c.Metric | None = None  #: of one step
    time: Timing | None = None
    perplexity: Perplexity | None = None
    unavailable: c.UnavailableMembers
    wall_time_s: c.Amount
    host: c.Host


def steps_add_up(record: Generate) -> Iterator[str]:
    """Each token but the last generated one is taken by a step; an interrupted record is not a pass."""
    if (record.status == "interrupted") != (record.stopped == "interrupted"):
        yield f"the status is '{record.status}', generation stopped for '{record.stopped}'"
    expected = len(record.prompt) + len(record.tokens) - 1
    if record.status == "pass" and (record.steps != expected or not record.tokens):
        yield f"{record.steps} steps do not take {expected} tokens"
    if record.stopped == "eos" and record.tokens[-1:] != (record.choice.eos,):
        yield "the last token is not the one that ends a text"
    if record.time is not None:
        yield from _wrong_times(record.time, record.steps)
    measured = record.perplexity
    if measured is not None and _differ(measured.perplexity, math.exp(measured.mean_nll)):
        yield f"the perplexity is {measured.perplexity}, its mean negative log-likelihood says another"


def _wrong_times(time: Timing, steps: int) -> Iterator[str]:
    if time.prefill.steps + time.decode.steps != steps:
        yield f"{steps} steps were made, the phases have {time.prefill.steps + time.decode.steps}"
    for name, phase in (("prefill", time.prefill), ("decode", time.decode)):
        if _differ(phase.duration_s, phase.steps * time.step.duration_s):
            yield f"the {name} takes {phase.duration_s} s, its steps take another time"
        if phase.tokens_per_s is not None and _differ(phase.tokens_per_s * phase.duration_s, phase.steps):
            yield f"the tokens per second of the {name} are not its steps by its time"
    parts = time.step.npu_s + time.step.cpu_s
    if _differ(time.step.duration_s, parts):
        yield f"a step takes {time.step.duration_s} s, its parts take {parts} s"


def _differ(one: float, other: float) -> bool:
    return not math.isclose(one, other, rel_tol=1e-9)


GENERATE = RecordKind(
    Generate,
    (rules.unavailable_is_absent, rules.model_is_that_of_the_provenance, steps_add_up),
    file="generate.json",
    role="record of the generated tokens",
)


# The parts of script-result/1.
class Call(Part):
    """Inferences of a method in a row."""

    method: c.Text
    steps: c.PositiveCount  #: inferences that it may have; a feed can end it earlier
    folder: c.Text  #: where the record and the outputs of the call are, from the folder of this record
    status: Literal["pass", "fail"]
    run_sha256: c.Sha256  #: of the call's run.json
    first_step_npu_cycles: c.Count | None = None  #: modelled or measured, as the call's record says


class Script(Derived[Literal["pass", "fail"]], tag_field="schema", tag="script-result/1"):
    """What `ethosu-sdk run --script` did."""

    model: c.Model  #: its entry is the method of the first call
    script: c.FileDigest
    board: c.Text  #: the board that the calls ran on in one boot, or host
    calls: c.Some[Call]
    wall_time_s: c.Amount
    host: c.Host


def status_follows_the_calls(record: Script) -> Iterator[str]:
    """A script passes when all of its calls do."""
    passed = all(row.status == "pass" for row in record.calls)
    yield from rules.wrong_status(record, "pass" if passed else "fail", "the calls say")


def folders_stay_inside(record: Script) -> Iterator[str]:
    """The folder of each call lies below that of the script."""
    if any(row.folder != f"calls/{number}-{row.method}" for number, row in enumerate(record.calls)):
        yield "a call has another folder than its own"


SCRIPT = RecordKind(
    Script,
    (rules.files_stay_in_the_folder, status_follows_the_calls, folders_stay_inside),
    file="script.json",
    role="record of the script",
)
