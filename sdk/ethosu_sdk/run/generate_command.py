"""`ethosu-sdk generate`: a prompt in, tokens out as the board makes them, and a record of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.table import Table

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import compile_command
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.feeds import ARGMAX, SAMPLE, Feed
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation, wording
from ethosu_sdk.records.common import Model, Unavailable
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import (
    Choice,
    Generate,
    GeneratedText,
    Perplexity,
    Phase,
    StepTime,
    Stopped,
    Timing,
)
from ethosu_sdk.run import run_command, tokenizing
from ethosu_sdk.run.decoder import Decoder, decoder_of, measure_perplexity, remove_perplexity, text_tokens
from ethosu_sdk.run.options import LAST_STEP, GenerateOptions, RunOptions
from ethosu_sdk.run.tokenizing import Stream, Tokenizer

# ---- steps.generate.generate_record
# The record of `generate`, and what people see of it.

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


def make_generate_record(path: Path, program: pte.Pte, facts: GenerateFacts, wall_time_s: float) -> Generate:
    """The record of what the program at `path` generated."""
    run, options = facts.run, facts.options
    inputs = result_files.program_entries(path, program)
    if options.tokenizer is not None:
        inputs.append(provenance.file_entry("tokenizer", options.tokenizer, facts.tokenizer))
    if options.perplexity is not None:
        inputs.append(provenance.file_entry("text", options.perplexity))
    timing = None if run is None else _timing(run, facts)
    return Generate(
        status="interrupted" if facts.stopped == "interrupted" else "pass",
        **provenance.origin(inputs, []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=ENTRY),
        target=provenance.recorded_target(program.target()),
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
        host=provenance.this_host(),
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


def generate_summary(record: Generate, folder: Path) -> Table:
    """What people see of the record."""
    table = Table.grid(padding=(0, 2))
    for name, words in (*wording.generate_rows(record), ("record", str(folder / kinds.GENERATE.file))):
        table.add_row(name, escape(words))
    return table


# ---- steps.generate.generate_command
# `ethosu-sdk generate`: a prompt in, tokens out as the board makes them, and a record of both.

INPUTS_NAME = "prompt.npz"


@dataclass(frozen=True)
class _Asked:
    """What to generate: the tokens of the prompt, the token that ends a text, and the tokenizer, if there is one."""

    prompt: tuple[int, ...]
    eos: int | None
    tokenizer: Tokenizer | None


@dataclass
class _Heard:
    """What the board has told so far: its steps, and the tokens that it chose."""

    stream: Stream
    reporter: Reporter
    steps: int = 0
    tokens: list[int] = field(default_factory=list)

    def take(self, step: int, choices: Mapping[int, tuple[int, ...]]) -> None:
        """Note a step, and show the token that it chose."""
        self.steps = step + 1
        for token in choices.get(0, ()):
            self.tokens.append(token)
            self.reporter.stream(self.stream.take(token))


def generate(
    model: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    options: GenerateOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Record:
    """Let `model` go on with a prompt; the record that was written.

    A Ctrl-C ends it: the record then has the tokens that were there, and KeyboardInterrupt goes on. Raises UsageError
    for prompts that do not fit, InputError for programs that are no decoders.
    """
    _check(options)
    with tokenizing.opened_tokenizer(options.tokenizer) as tokenizer:
        asked = _asked(options, tokenizer)
        return _generate(asked, model, compile_options, run_options, options, out_dir, reporter)


def _generate(
    asked: _Asked,
    model: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    options: GenerateOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Record:
    path = (
        result_files.require_pte(Path(model))
        if model.endswith(".pte")
        else compile_command.compile_model(model, compile_options, out_dir, reporter.for_step(), reuse=True)
    )
    program = pte.read(path)
    decoder = decoder_of(path, program, options.context)
    room = decoder.room(asked.prompt, options.max_tokens)
    scored = text_tokens(options.perplexity, asked.tokenizer, decoder)
    folder = result_files.folder_for_pte(path, program.target(), out_dir)
    start = time.monotonic()
    heard = _Heard(Stream(asked.tokenizer, asked.prompt), reporter)
    _show_prompt(asked, options, reporter)
    (folder / kinds.GENERATE.file).unlink(
        missing_ok=True
    )  # a run that fails leaves no record of an earlier one
    remove_perplexity(folder)
    measured: Perplexity | None = None
    ran: Record | None = None
    try:
        ran = _run(path, decoder, (asked, options, room), replace(run_options, on_step=heard.take), folder)
        if scored:
            with reporter.stage(f"measuring the perplexity on {len(scored)} tokens"):
                measured = measure_perplexity(path, decoder, scored, run_options, folder)
    except KeyboardInterrupt:
        reporter.stream("\n")
        if not heard.tokens and not heard.steps:
            raise
        if ran is None:
            run_command.keep_interrupted(folder)
        _finish(
            path,
            program,
            folder,
            _facts(options, asked, decoder, heard, ("interrupted", ran)),
            start,
            reporter,
        )
        raise
    except SdkError:
        reporter.stream("\n")  # the error begins a line of its own
        raise
    reporter.stream("\n")
    ended = (_stopped(asked, heard, room, options.max_tokens), ran)
    facts = replace(_facts(options, asked, decoder, heard, ended), perplexity=measured)
    return _finish(path, program, folder, facts, start, reporter)


def _check(options: GenerateOptions) -> None:
    if (options.prompt is None) == (options.tokens is None):
        raise UsageError(
            "give either --prompt or --tokens", "--tokens 1,5,7, or --prompt TEXT --tokenizer FILE"
        )
    if options.prompt is not None and options.tokenizer is None:
        raise UsageError(
            "--prompt needs a tokenizer", "give its file with --tokenizer, or tokens by number with --tokens"
        )
    if options.top_k is not None and not options.temperature:
        raise UsageError("--top-k needs --temperature: without it, the most probable token is taken")


def _asked(options: GenerateOptions, tokenizer: Tokenizer | None) -> _Asked:
    if options.prompt is not None and tokenizer is not None:
        prompt = tokenizer.encode(options.prompt)
    else:
        prompt = tokenizing.token_numbers(options.tokens or "", "--tokens")
    if not prompt:
        raise UsageError("the prompt has no token", "give a text that is not empty")
    eos = options.eos if options.eos is not None or tokenizer is None else tokenizer.eos
    return _Asked(prompt, eos, tokenizer)


def _show_prompt(asked: _Asked, options: GenerateOptions, reporter: Reporter) -> None:
    reporter.stream(options.prompt or " ".join(map(str, asked.prompt)))


def _run(
    path: Path,
    decoder: Decoder,
    wanted: tuple[_Asked, GenerateOptions, int],
    options: RunOptions,
    folder: Path,
) -> Record:
    """Generate on the board; the record of the run."""
    asked, choice, room = wanted
    inputs = folder / INPUTS_NAME
    decoder.write_inputs(inputs, asked.prompt)
    options = replace(
        options,
        inputs=inputs,
        steps=len(asked.prompt) + room - 1,
        feed=(str(_feed(choice, asked.eos)), *decoder.feeds_position),
        outputs=LAST_STEP,
    )
    return run_command.run(
        str(path), CompileOptions(), options, folder, Reporter(quiet=True).for_step()
    ).record


def _feed(options: GenerateOptions, eos: int | None) -> Feed:
    stops = () if eos is None else (eos,)
    if not options.temperature:
        return Feed(ARGMAX, 0, stops=stops)
    return Feed(
        SAMPLE, 0, temperature=options.temperature, top_k=options.top_k or 0, seed=options.seed, stops=stops
    )


def _stopped(asked: _Asked, heard: _Heard, room: int, wanted: int) -> Stopped:
    if asked.eos is not None and heard.tokens[-1:] == [asked.eos]:
        return "eos"
    return "context" if room < wanted else "length"


def _facts(
    options: GenerateOptions,
    asked: _Asked,
    decoder: Decoder,
    heard: _Heard,
    ended: tuple[Stopped, Record | None],
) -> GenerateFacts:
    stopped, ran = ended
    tokenizer, tokens = asked.tokenizer, tuple(heard.tokens)
    return GenerateFacts(
        options=options,
        prompt=asked.prompt,
        tokens=tokens,
        eos=asked.eos,
        tokenizer=None if tokenizer is None else tokenizer.sha256,
        text=None if tokenizer is None else (tokenizer.decode(asked.prompt), tokenizer.decode(tokens)),
        context=decoder.context,
        steps=heard.steps,
        stopped=stopped,
        run=None if ran is None else kinds.RUN.convert(ran),
    )


def _finish(
    path: Path, program: pte.Pte, folder: Path, facts: GenerateFacts, start: float, reporter: Reporter
) -> Record:
    record = make_generate_record(path, program, facts, time.monotonic() - start)
    content = record.to_json()
    validation.check_record(content, "the record of the generated tokens")
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "generate") as add:
        json_text.write_json(folder / kinds.GENERATE.file, content)
        add(kinds.GENERATE.file, INPUTS_NAME)
    reporter.show(generate_summary(record, folder))
    reporter.emit(content)
    return content
