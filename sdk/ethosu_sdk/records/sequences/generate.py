"""``generate/1``: schemas/generate.v1.schema.json says what each member means."""

from __future__ import annotations

import math
from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, Host, Metric, Model, Number, Simulator, Target, Unavailable
from ethosu_sdk.records.kind import Part, RecordKind

Stopped = Literal["eos", "length", "context", "interrupted"]


class Choice(Part):
    """How tokens are chosen."""

    form: Literal["greedy", "sample"]
    temperature: Number | None = None
    top_k: int | None = None
    seed: int | None = None
    eos: int | None = None


class Text(Part):
    """Prompt and what was generated, as the tokenizer reads them."""

    prompt: str
    generated: str


class StepTime(Part):
    """The modelled time of one step, and its parts."""

    duration_s: Number
    npu_s: Number
    cpu_s: Number
    waits_s: Number | None = None
    least_s: Number | None = None
    most_s: Number | None = None


class Phase(Part):
    steps: int
    duration_s: Number
    tokens_per_s: Number | None = None


class Timing(Part):
    """Modelled time: of a step, and of the steps that take the prompt and those that follow."""

    source: Literal["modelled"]
    step: StepTime
    prefill: Phase
    decode: Phase


class Perplexity(Part):
    file: str
    tokens: int
    predicted: int
    mean_nll: Number
    perplexity: Number


class Generate(Derived[Literal["pass", "interrupted"]], tag_field="schema", tag="generate/1"):
    """What a language model generated on a board."""

    model: Model
    target: Target | None = None
    simulator: Simulator | None = None
    context: int | None = None
    choice: Choice
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    stopped: Stopped
    text: Text | None = None
    steps: int
    npu_cycles: Metric | None = None
    time: Timing | None = None
    perplexity: Perplexity | None = None
    unavailable: tuple[Unavailable, ...]
    wall_time_s: Number
    host: Host


def steps_add_up(record: Generate) -> list[str]:
    """Each token but the last generated one is taken by a step; an interrupted record is not a pass."""
    found = []
    if (record.status == "interrupted") != (record.stopped == "interrupted"):
        found.append(f"the status is '{record.status}', generation stopped for '{record.stopped}'")
    expected = len(record.prompt) + len(record.tokens) - 1
    if record.status == "pass" and (record.steps != expected or not record.tokens):
        found.append(f"{record.steps} steps do not take {expected} tokens")
    if record.stopped == "eos" and record.tokens[-1:] != (record.choice.eos,):
        found.append("the last token is not the one that ends a text")
    return [*found, *_wrong_times(record), *_wrong_perplexity(record)]


def _wrong_times(record: Generate) -> list[str]:
    time = record.time
    found: list[str] = []
    if time is None:
        return found
    if time.prefill.steps + time.decode.steps != record.steps:
        found.append(
            f"{record.steps} steps were made, the phases have {time.prefill.steps + time.decode.steps}"
        )
    for name, phase in (("prefill", time.prefill), ("decode", time.decode)):
        if not math.isclose(phase.duration_s, phase.steps * time.step.duration_s, rel_tol=1e-9):
            found.append(f"the {name} takes {phase.duration_s} s, its steps take another time")
        if phase.tokens_per_s is not None and not math.isclose(
            phase.tokens_per_s * phase.duration_s, phase.steps, rel_tol=1e-9
        ):
            found.append(f"the tokens per second of the {name} are not its steps by its time")
    parts = time.step.npu_s + time.step.cpu_s
    if not math.isclose(time.step.duration_s, parts, rel_tol=1e-9):
        found.append(f"a step takes {time.step.duration_s} s, its parts take {parts} s")
    return found


def _wrong_perplexity(record: Generate) -> list[str]:
    measured = record.perplexity
    if measured is None or math.isclose(measured.perplexity, math.exp(measured.mean_nll), rel_tol=1e-9):
        return []
    return [f"the perplexity is {measured.perplexity}, its mean negative log-likelihood says another"]


KIND = RecordKind(
    Generate,
    (rules.unavailable_is_absent, rules.model_is_that_of_the_provenance, steps_add_up),
    file="generate.json",
    role="record of the generated tokens",
)
