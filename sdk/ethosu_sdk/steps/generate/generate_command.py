"""`ethosu-sdk generate`: a prompt in, tokens out as the board makes them, and a record of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ethosu_sdk import pte, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.feeds.syntax import ARGMAX, SAMPLE, Feed
from ethosu_sdk.files import json_text, locks
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.sequences.generate import Perplexity, Stopped
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.steps.compile import compile_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.generate import decoding, generate_record, perplexity, tokenizing
from ethosu_sdk.steps.generate.decoding import Decoder
from ethosu_sdk.steps.generate.generate_record import GenerateFacts
from ethosu_sdk.steps.generate.options import GenerateOptions
from ethosu_sdk.steps.generate.tokenizing import Stream, Tokenizer
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import LAST_STEP, RunOptions

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
    with tokenizing.opened(options.tokenizer) as tokenizer:
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
        locations.require_pte(Path(model))
        if model.endswith(".pte")
        else compile_command.compile_model(model, compile_options, out_dir, reporter.for_step(), reuse=True)
    )
    program = pte.read(path)
    decoder = decoding.of(path, program, options.context)
    room = decoder.room(asked.prompt, options.max_tokens)
    scored = perplexity.tokens(options.perplexity, asked.tokenizer, decoder)
    folder = locations.for_pte(path, program.target(), out_dir)
    start = time.monotonic()
    heard = _Heard(Stream(asked.tokenizer, asked.prompt), reporter)
    _show_prompt(asked, options, reporter)
    (folder / kinds.GENERATE.file).unlink(
        missing_ok=True
    )  # a run that fails leaves no record of an earlier one
    perplexity.remove(folder)
    measured: Perplexity | None = None
    ran: Record | None = None
    try:
        ran = _run(path, decoder, (asked, options, room), replace(run_options, on_step=heard.take), folder)
        if scored:
            with reporter.stage(f"measuring the perplexity on {len(scored)} tokens"):
                measured = perplexity.measure(path, decoder, scored, run_options, folder)
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
        prompt = tokenizing.numbers(options.tokens or "", "--tokens")
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
    record = generate_record.make(path, program, facts, time.monotonic() - start)
    content = record.to_json()
    schema.check(content, "the record of the generated tokens")
    with locks.locked(folder), bundle.published(folder, "generate") as add:
        json_text.write_json(folder / kinds.GENERATE.file, content)
        add(kinds.GENERATE.file, INPUTS_NAME)
    reporter.show(generate_record.summary(record, folder))
    reporter.emit(content)
    return content
