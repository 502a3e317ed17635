"""The record of `generate`, and what people see of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ethosu_sdk import provenance, pte
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Model, Unavailable
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences.generate import (
    Choice,
    Generate,
    GeneratedText,
    Perplexity,
    Phase,
    StepTime,
    Stopped,
    Timing,
)
from ethosu_sdk.results import host_facts, program_files, target_record
from ethosu_sdk.steps.generate.options import GenerateOptions
from ethosu_sdk.tables import generate_rows

_NO_RUN = "the run was interrupted"


@dataclass(frozen=True)
class GenerateFacts:
    """What was generated: tokens, their text with that of the prompt, the steps, why it ended, and the run (None: it
    was interrupted). `tokenizer` is the SHA-256 of what was read of its file."""

    options: GenerateOptions
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    eos: int | None
    tokenizer: str | None
    text: tuple[str, str] | None
    context: int | None
    steps: int
    stopped: Stopped
    run: Run | None
    perplexity: Perplexity | None = None


def make(path: Path, program: pte.Pte, facts: GenerateFacts, wall_time_s: float) -> Generate:
    """The record of what the program at `path` generated."""
    run, options = facts.run, facts.options
    inputs = program_files.entries(path, program)
    if options.tokenizer is not None:
        inputs.append(provenance.file_entry("tokenizer", options.tokenizer, facts.tokenizer))
    if options.perplexity is not None:
        inputs.append(provenance.file_entry("text", options.perplexity))
    timing = None if run is None else _timing(run, facts)
    return Generate(
        status="interrupted" if facts.stopped == "interrupted" else "pass",
        **provenance.origin(inputs, []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=pte.ENTRY),
        target=target_record.content(program.target()),
        simulator=None if run is None else run.simulator,
        context=facts.context,
        choice=_choice(facts),
        prompt=facts.prompt,
        tokens=facts.tokens,
        stopped=facts.stopped,
        text=None if facts.text is None else GeneratedText(prompt=facts.text[0], generated=facts.text[1]),
        steps=facts.steps,
        npu_cycles=None if run is None or run.npu is None else run.npu.cycles,
        time=timing,
        perplexity=facts.perplexity,
        unavailable=tuple(_unavailable(run, timing)),
        wall_time_s=wall_time_s,
        host=host_facts.this_host(),
    )


def _choice(facts: GenerateFacts) -> Choice:
    options = facts.options
    if not options.temperature:
        return Choice(form="greedy", eos=facts.eos)
    return Choice(
        form="sample",
        temperature=options.temperature,
        top_k=options.top_k,
        seed=options.seed,
        eos=facts.eos,
    )


def _timing(run: Run, facts: GenerateFacts) -> Timing | None:
    """The time of all steps. Shapes are static and the NPU's commands the same in every step, so each takes the time
    of the first."""
    line = run.time
    if line is None:
        return None
    step = StepTime(
        duration_s=line.total.duration_s,
        npu_s=line.sums.npu_s,
        cpu_s=line.sums.cpu_s,
        waits_s=None if line.waits is None else line.waits.duration_s,
        least_s=line.total.least_s,
        most_s=line.total.most_s,
    )
    first = min(len(facts.prompt), facts.steps)
    return Timing(
        source="modelled",
        step=step,
        prefill=_phase(first, step.duration_s),
        decode=_phase(facts.steps - first, step.duration_s),
    )


def _phase(steps: int, step_s: float) -> Phase:
    return Phase(
        steps=steps, duration_s=steps * step_s, tokens_per_s=1 / step_s if steps and step_s else None
    )


def _unavailable(run: Run | None, timing: Timing | None) -> list[Unavailable]:
    if run is None:
        return [Unavailable(path=path, reason=_NO_RUN) for path in ("/npu_cycles", "/simulator", "/time")]
    if timing is not None:
        return []
    reasons = [row.reason for row in run.unavailable if row.path in ("/time", "/cpu/cycles")]
    return [Unavailable(path="/time", reason=(reasons or ["the run has no time line"])[0])]


def summary(record: Generate, folder: Path) -> Table:
    """What people see of the record."""
    table = Table.grid(padding=(0, 2))
    for name, words in (*generate_rows.rows(record), ("record", str(folder / kinds.GENERATE.file))):
        table.add_row(name, escape(words))
    return table
