"""A language model's program: its inputs and caches, and its perplexity on a text."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle
from ethosu_sdk.records.sequences import Perplexity
from ethosu_sdk.run import run_command, tokenizing
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.run.tokenizing import Tokenizer

_NEEDED = (
    "generate needs input0, a token (int32 or int64, one element), perhaps input1, its position (the same), and "
    "output0, the logits of the next token along the last axis; caches are inside as mutable buffers"
)


class Decoder(Struct, frozen=True):
    """A decoder's program: dtype and shape of its inputs, the vocabulary, and the positions of its caches."""

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    vocabulary: int
    context: int | None

    def room(self, prompt: Sequence[int], wanted: int) -> int:
        """How many tokens can be generated behind `prompt`: `wanted` at most. UsageError for a prompt that is too
        long, or has tokens beyond the vocabulary."""
        self.check_tokens(prompt)
        if self.context is None:
            return wanted
        if len(prompt) > self.context:
            raise UsageError(
                f"the prompt has {counted(len(prompt), 'token')}, the model's caches hold "
                f"{counted(self.context, 'position')}",
                "give a shorter prompt",
            )
        # The last token that is generated is taken by no step: it needs no position.
        return min(wanted, self.context - len(prompt) + 1)

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """UsageError for a token that is not below the vocabulary's size."""
        beyond = next((token for token in tokens if token >= self.vocabulary), None)
        if beyond is not None:
            raise UsageError(
                f"there is no token {beyond}: the model has {self.vocabulary:,}",
                "give tokens of the model's own tokenizer",
            )

    def write_inputs(self, path: Path, tokens: Sequence[int], positions: Sequence[int] = ()) -> None:
        """Write the rows of the inputs for `tokens` to `path`: positions from 0 on, or the given ones; with one
        position, further steps count on."""
        (dtype, shape), *rest = self.inputs
        rows = {"input0": np.array(tokens, dtype).reshape(len(tokens), *shape)}
        if rest:
            dtype, shape = rest[0]
            places = positions or range(len(tokens))
            rows["input1"] = np.array([*places], dtype).reshape(len(tokens), *shape)
        npz.write_npz(path, rows)

    @property
    def feeds_position(self) -> tuple[str, ...]:
        return ("step:input1",) if len(self.inputs) > 1 else ()


def decoder_of(path: Path, program: pte.Pte, context: int | None) -> Decoder:
    """The decoder in the program at `path`. InputError for a program that is none."""
    plan = program.plan()
    inputs = tuple((row.dtype, row.sizes) for row in plan.input_tensors())
    outputs = [(row.dtype, row.sizes) for row in plan.output_tensors()]
    if not 1 <= len(inputs) <= 2 or any(
        dtype not in ("int32", "int64") or int(np.prod(shape, dtype=np.int64)) != 1 for dtype, shape in inputs
    ):
        found = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in inputs)
        raise InputError(f"{path.name} takes {found}: it is no decoder that can go on with tokens", _NEEDED)
    if not outputs or outputs[0][0] != "float32" or not outputs[0][1]:
        raise InputError(f"{path.name} has no logits as its first output", _NEEDED)
    # The positions of the caches are the third axis of every buffer of four.
    positions = {row.sizes[2] for row in plan.state_tensors() if len(row.sizes) == 4}
    known = positions.pop() if len(positions) == 1 else None
    return Decoder(inputs, outputs[0][1][-1], context or known)


# The perplexity of a model on a text: how many tokens it hesitates between, on average.

PERPLEXITY_FOLDER = "perplexity"
_INPUTS_NAME = "text.npz"
_MOST_BYTES = 1 << 24
_MOST_TOKENS = 65_536
_LEAST_WINDOW = 2


def text_tokens(path: Path | None, tokenizer: Tokenizer | None, decoder: Decoder) -> tuple[int, ...]:
    """The tokens of the text at `path`, none without one. UsageError for a text that cannot be measured on."""
    if path is None:
        return ()
    text = filesystem.file_text(path, _MOST_BYTES)
    found = tokenizing.token_numbers(text, str(path)) if tokenizer is None else tokenizer.encode(text)
    if not 2 <= len(found) <= _MOST_TOKENS:
        raise UsageError(
            f"{path} has {counted(len(found), 'token')}, perplexity is measured on 2 to {_MOST_TOKENS:,}"
        )
    decoder.check_tokens(found)
    return found


def measure_perplexity(
    path: Path, decoder: Decoder, text: Sequence[int], options: RunOptions, folder: Path
) -> Perplexity:
    """The perplexity of the program at `path` on the tokens of `text`. The text is cut into windows of the model's
    context. Each begins at position 0, which hides what the caches held before; its first token is predicted by
    nothing. PyTorch's definition: exp of the mean cross entropy, in nats."""
    window = decoder.context or len(text)
    if window < _LEAST_WINDOW:
        raise UsageError(
            f"a context of {counted(window, 'token')} predicts no token",
            f"give --context of at least {_LEAST_WINDOW}",
        )
    done = _run_text(path, decoder, text, window, options, folder)
    logits = np.asarray(npz.read_npz(done.folder / run_command.OUTPUTS_NAME)["output0"], np.float64)
    losses = _losses(logits.reshape(len(text), -1), text, window)
    mean = float(np.mean(losses))
    if not mean < 700.0:  # exp of more has no float64
        raise InputError(f"the mean cross entropy is {mean:.1f} nats: too much for a perplexity")
    return Perplexity(
        file=PERPLEXITY_FOLDER + "/" + run_command.OUTPUTS_NAME,
        tokens=len(text),
        predicted=len(losses),
        mean_nll=mean,
        perplexity=math.exp(mean),
    )


def _run_text(
    path: Path, decoder: Decoder, text: Sequence[int], window: int, options: RunOptions, folder: Path
) -> run_command.RunResult:
    where = filesystem.make_directory(folder / PERPLEXITY_FOLDER)
    try:
        inputs = where / _INPUTS_NAME
        decoder.write_inputs(inputs, text, [number % window for number in range(len(text))])
        asked = replace(options, inputs=inputs)
        done = run_command.run(str(path), CompileOptions(), asked, where, Reporter(quiet=True).for_step())
        with filesystem.locked_folder(where), bundle.writing_folder(where, "generate") as add:
            add(_INPUTS_NAME)
    except BaseException:
        remove_perplexity(folder)
        raise
    return done


def remove_perplexity(folder: Path) -> None:
    where = folder / PERPLEXITY_FOLDER
    if (where / _INPUTS_NAME).is_file() and not where.is_symlink():
        shutil.rmtree(where)


def _losses(logits: npt.NDArray[np.float64], text: Sequence[int], window: int) -> list[float]:
    """The negative logarithm of the probability of each token that follows another in its window."""
    largest = logits.max(-1, keepdims=True)
    logarithms = logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
    return [
        -float(logarithms[number, token]) for number, token in enumerate(text[1:]) if (number + 1) % window
    ]
