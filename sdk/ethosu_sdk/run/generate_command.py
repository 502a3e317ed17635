"""`ethosu-sdk generate`: a prompt in, tokens out as the board makes them, and a record of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, structs
from rich.table import Table

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.feeds import ARGMAX, SAMPLE, Feed
from ethosu_sdk.records import (
    bundle,
    kinds,
    provenance,
    result_files,
    sequences as record_parts,
    validation,
    wording,
)
from ethosu_sdk.records.common import Model, Unavailable
from ethosu_sdk.records.run import Run
from ethosu_sdk.run import run_command, tokenizing
from ethosu_sdk.run.decoder import Decoder, decoder_of, measure_perplexity, remove_perplexity, text_tokens
from ethosu_sdk.run.job import UART_NAME
from ethosu_sdk.run.options import LAST_STEP, GenerateOptions, RunOptions
from ethosu_sdk.run.tokenizing import Stream, Tokenizer

INPUTS_NAME = "prompt.npz"


class Prompt(Struct, frozen=True):
    """What is continued: its tokens, the token that ends a text, and the tokenizer, if there is one."""

    tokens: tuple[int, ...]
    eos: int | None
    tokenizer: Tokenizer | None


class Heard(Struct):
    """What the board has told so far: its steps, and the tokens that it chose."""

    stream: Stream
    reporter: Reporter
    steps: int = 0
    tokens: list[int] = []

    def take(self, step: int, choices: Mapping[int, tuple[int, ...]]) -> None:
        self.steps = step + 1
        for token in choices.get(0, ()):
            self.tokens.append(token)
            self.reporter.stream(self.stream.take(token))


class Generation(Struct, frozen=True, kw_only=True):
    """What goes into the record: of the board and the run (None: it was interrupted), and the measured perplexity."""

    options: GenerateOptions
    prompt: Prompt
    heard: Heard
    context: int | None
    stopped: record_parts.Stopped
    run: Run | None
    perplexity: record_parts.Perplexity | None = None


def generate(
    model: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    options: GenerateOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> record_parts.Generate:
    """Let `model` go on with a prompt; the record that was written. A Ctrl-C ends it: the record then has the tokens
    that were there, and KeyboardInterrupt goes on. Raises UsageError for prompts that do not fit, InputError for
    programs that are no decoders."""
    _check(options)
    with tokenizing.opened_tokenizer(options.tokenizer) as tokenizer:
        prompt = _prompt(options, tokenizer)
        path = run_command.program_file(model, compile_options, run_options, out_dir, reporter)
        return _generate(prompt, path, compile_options.system, run_options, options, out_dir, reporter)


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


def _prompt(options: GenerateOptions, tokenizer: Tokenizer | None) -> Prompt:
    if options.prompt is not None and tokenizer is not None:
        tokens = tokenizer.encode(options.prompt)
    else:
        tokens = tokenizing.token_numbers(options.tokens or "", "--tokens")
    if not tokens:
        raise UsageError("the prompt has no token", "give a text that is not empty")
    eos = options.eos if options.eos is not None or tokenizer is None else tokenizer.eos
    return Prompt(tokens, eos, tokenizer)


def _generate(
    prompt: Prompt,
    path: Path,
    system: str | None,
    run_options: RunOptions,
    options: GenerateOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> record_parts.Generate:
    program = pte.read(path)
    decoder = decoder_of(path, program, options.context)
    room = decoder.room(prompt.tokens, options.max_tokens)
    scored = text_tokens(options.perplexity, prompt.tokenizer, decoder)
    folder = result_files.folder_for_pte(path, program.target(), out_dir)
    start = time.monotonic()
    heard = Heard(Stream(prompt.tokenizer, prompt.tokens), reporter)
    reporter.stream(options.prompt or " ".join(map(str, prompt.tokens)))
    # A run that fails leaves no record of an earlier one.
    (folder / kinds.GENERATE.file).unlink(missing_ok=True)
    remove_perplexity(folder)
    made = Generation(
        options=options, prompt=prompt, heard=heard, context=decoder.context, stopped="interrupted", run=None
    )
    try:
        asked = replace(run_options, on_step=heard.take)
        ran = _run(path, decoder, prompt, options, room, asked, folder, system)
        made = structs.replace(made, run=ran)
        if scored:
            with reporter.stage(f"measuring the perplexity on {len(scored)} tokens"):
                measured = measure_perplexity(path, decoder, scored, run_options, folder)
            made = structs.replace(made, perplexity=measured)
    except KeyboardInterrupt:
        reporter.stream("\n")
        if not heard.tokens and not heard.steps:
            raise
        if made.run is None:
            with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
                add(UART_NAME, *run_command.earlier_build(folder))
        _finish(path, program, folder, made, start, reporter)
        raise
    except SdkError:
        reporter.stream("\n")  # the error begins a line of its own
        raise
    reporter.stream("\n")
    stopped: record_parts.Stopped = "context" if room < options.max_tokens else "length"
    if prompt.eos is not None and heard.tokens[-1:] == [prompt.eos]:
        stopped = "eos"
    return _finish(path, program, folder, structs.replace(made, stopped=stopped), start, reporter)


def _run(
    path: Path,
    decoder: Decoder,
    prompt: Prompt,
    choice: GenerateOptions,
    room: int,
    options: RunOptions,
    folder: Path,
    system: str | None,
) -> Run:
    inputs = folder / INPUTS_NAME
    decoder.write_inputs(inputs, prompt.tokens)
    stops = () if prompt.eos is None else (prompt.eos,)
    feed = Feed(ARGMAX, 0, stops=stops)
    if choice.temperature:
        feed = Feed(
            SAMPLE, 0, temperature=choice.temperature, top_k=choice.top_k or 0, seed=choice.seed, stops=stops
        )
    options = replace(
        options,
        inputs=inputs,
        steps=len(prompt.tokens) + room - 1,
        feed=(str(feed), *decoder.feeds_position),
        outputs=LAST_STEP,
    )
    quiet = Reporter(quiet=True).for_step()
    return run_command.run(str(path), CompileOptions(system=system), options, folder, quiet).record


def _finish(
    path: Path, program: pte.Pte, folder: Path, made: Generation, start: float, reporter: Reporter
) -> record_parts.Generate:
    record = make_generate_record(path, program, made, time.monotonic() - start)
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "generate") as add:
        path = folder / kinds.GENERATE.file
        content = validation.write_record(path, record, "the record of the generated tokens")
        add(kinds.GENERATE.file, INPUTS_NAME)
    table = Table.grid(padding=(0, 2))
    for name, words in (*wording.generate_rows(record), ("record", str(path))):
        table.add_row(name, escape(words))
    reporter.show(table)
    reporter.emit(content)
    return record


def make_generate_record(
    path: Path, program: pte.Pte, made: Generation, wall_time_s: float
) -> record_parts.Generate:
    run, options, prompt, heard = made.run, made.options, made.prompt, made.heard
    tokenizer, tokens = prompt.tokenizer, tuple(heard.tokens)
    inputs = result_files.program_entries(path, program)
    if options.tokenizer is not None:
        digest = None if tokenizer is None else tokenizer.sha256
        inputs.append(provenance.file_entry("tokenizer", options.tokenizer, digest))
    if options.perplexity is not None:
        inputs.append(provenance.file_entry("text", options.perplexity))
    text = None
    if tokenizer is not None:
        text = record_parts.GeneratedText(
            prompt=tokenizer.decode(prompt.tokens), generated=tokenizer.decode(tokens)
        )
    timing = None if run is None else _timing(run, len(prompt.tokens), heard.steps)
    choice = record_parts.Choice(form="greedy", eos=prompt.eos)
    if options.temperature:
        choice = record_parts.Choice(
            form="sample",
            temperature=options.temperature,
            top_k=options.top_k,
            seed=options.seed,
            eos=prompt.eos,
        )
    return record_parts.Generate(
        status="interrupted" if made.stopped == "interrupted" else "pass",
        **provenance.origin(inputs, []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=ENTRY),
        target=provenance.recorded_target(program.target()),
        simulator=None if run is None else run.simulator,
        context=made.context,
        choice=choice,
        prompt=prompt.tokens,
        tokens=tokens,
        stopped=made.stopped,
        text=text,
        steps=heard.steps,
        npu_cycles=None if run is None or run.npu is None else run.npu.cycles,
        time=timing,
        perplexity=made.perplexity,
        unavailable=tuple(_unavailable(run, timing)),
        wall_time_s=wall_time_s,
        host=provenance.this_host(),
    )


def _timing(run: Run, prompt: int, steps: int) -> record_parts.Timing | None:
    """Each step takes the time of the first: shapes are static, and the NPU's commands the same in every step."""
    line = run.time
    if line is None:
        return None
    step = record_parts.StepTime(
        duration_s=line.total.duration_s,
        npu_s=line.sums.npu_s,
        cpu_s=line.sums.cpu_s,
        waits_s=None if line.waits is None else line.waits.duration_s,
        least_s=line.total.least_s,
        most_s=line.total.most_s,
    )
    first = min(prompt, steps)
    return record_parts.Timing(
        source="modelled",
        step=step,
        prefill=_phase(first, step.duration_s),
        decode=_phase(steps - first, step.duration_s),
    )


def _phase(steps: int, step_s: float) -> record_parts.Phase:
    return record_parts.Phase(
        steps=steps, duration_s=steps * step_s, tokens_per_s=1 / step_s if steps and step_s else None
    )


def _unavailable(run: Run | None, timing: record_parts.Timing | None) -> list[Unavailable]:
    if run is None:
        reason = "the run was interrupted"
        return [Unavailable(path=path, reason=reason) for path in ("/npu_cycles", "/simulator", "/time")]
    if timing is not None:
        return []
    reasons = [row.reason for row in run.unavailable if row.path in ("/time", "/cpu/cycles")]
    return [Unavailable(path="/time", reason=(reasons or ["the run has no time line"])[0])]
