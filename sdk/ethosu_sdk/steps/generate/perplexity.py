"""The perplexity of a model on a text: how many tokens it hesitates between, on average."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ethosu_sdk import npz
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import locks, opening, writing
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.sequences.generate import Perplexity
from ethosu_sdk.results import bundle
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.generate import tokenizing
from ethosu_sdk.steps.generate.decoding import Decoder
from ethosu_sdk.steps.generate.tokenizing import Tokenizer
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import RunOptions

FOLDER = "perplexity"
_INPUTS_NAME = "text.npz"
_MOST_BYTES = 1 << 24
_MOST_TOKENS = 65_536
_LEAST_WINDOW = 2
_LARGEST_NLL = 700.0  # nats; exp of more has no float64


def tokens(path: Path | None, tokenizer: Tokenizer | None, decoder: Decoder) -> tuple[int, ...]:
    """The tokens of the text at `path`, none without one. UsageError for a text that cannot be measured on."""
    if path is None:
        return ()
    text = opening.text(path, _MOST_BYTES)
    found = tokenizing.numbers(text, str(path)) if tokenizer is None else tokenizer.encode(text)
    if not 2 <= len(found) <= _MOST_TOKENS:
        raise UsageError(
            f"{path} has {counted(len(found), 'token')}, perplexity is measured on 2 to {_MOST_TOKENS:,}"
        )
    decoder.check_tokens(found)
    return found


def measure(
    path: Path, decoder: Decoder, text: Sequence[int], options: RunOptions, folder: Path
) -> Perplexity:
    """The perplexity of the program at `path` on the tokens of `text`.

    The text is cut into windows of the model's context. Each begins at position 0, which hides what the caches held
    before; its first token is predicted by nothing. PyTorch's definition: exp of the mean cross entropy, in nats.
    """
    window = decoder.context or len(text)
    if window < _LEAST_WINDOW:
        raise UsageError(
            f"a context of {counted(window, 'token')} predicts no token",
            f"give --context of at least {_LEAST_WINDOW}",
        )
    done = _run(path, decoder, text, window, options, folder)
    logits = np.asarray(npz.read_npz(done.folder / run_command.OUTPUTS_NAME)["output0"], np.float64)
    losses = _losses(logits.reshape(len(text), -1), text, window)
    mean = float(np.mean(losses))
    if not mean < _LARGEST_NLL:
        raise InputError(f"the mean cross entropy is {mean:.1f} nats: too much for a perplexity")
    return Perplexity(
        file=FOLDER + "/" + run_command.OUTPUTS_NAME,
        tokens=len(text),
        predicted=len(losses),
        mean_nll=mean,
        perplexity=math.exp(mean),
    )


def _run(
    path: Path, decoder: Decoder, text: Sequence[int], window: int, options: RunOptions, folder: Path
) -> run_command.RunResult:
    where = writing.make_directory(folder / FOLDER)
    try:
        inputs = where / _INPUTS_NAME
        decoder.write_inputs(inputs, text, [number % window for number in range(len(text))])
        asked = replace(options, inputs=inputs)
        done = run_command.run(str(path), CompileOptions(), asked, where, Reporter(quiet=True).for_step())
        with locks.locked(where), bundle.published(where, "generate") as add:
            add(_INPUTS_NAME)
    except BaseException:
        remove(folder)
        raise
    return done


def remove(folder: Path) -> None:
    """Remove what was measured earlier in `folder`."""
    where = folder / FOLDER
    if (where / _INPUTS_NAME).is_file() and not where.is_symlink():
        shutil.rmtree(where)


def _losses(logits: npt.NDArray[np.float64], text: Sequence[int], window: int) -> list[float]:
    """The negative logarithm of the probability of each token that follows another in its window."""
    largest = logits.max(-1, keepdims=True)
    logarithms = logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
    return [
        -float(logarithms[number, token]) for number, token in enumerate(text[1:]) if (number + 1) % window
    ]
