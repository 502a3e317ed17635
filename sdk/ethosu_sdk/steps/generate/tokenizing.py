"""Text to tokens and back, with the tokenizers that ExecuTorch's runners read."""

from __future__ import annotations

import contextlib
import io
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.errors import InputError, ToolError, UsageError
from ethosu_sdk.files import opening

PACKAGE = "pytorch_tokenizers"
_MOST_BYTES = 1 << 28
_MOST_TOKENS = 1 << 20
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # what the first bytes of a character decode to
_NUMBER = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer with `size` tokens; `bos` and `eos` are None where it has none."""

    path: Path
    size: int
    bos: int | None
    eos: int | None
    _model: Any

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of `text`, behind the one that begins a text."""
        found = _guarded(self.path, lambda: self._model.encode(text, bos=False, eos=False))
        first = [] if self.bos is None or found[:1] == [self.bos] else [self.bos]
        return (*first, *map(int, found))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`."""
        return str(_guarded(self.path, lambda: self._model.decode(list(tokens))))


class Stream:
    """The text of tokens that come one by one."""

    def __init__(self, tokenizer: Tokenizer | None, before: Sequence[int]) -> None:
        self._tokenizer, self._tokens = tokenizer, [*before]
        self._shown = "" if tokenizer is None else tokenizer.decode(self._tokens)

    def take(self, token: int) -> str:
        """What `token` adds to the text; of a character in several tokens, nothing but for the last."""
        self._tokens.append(token)
        if self._tokenizer is None:
            return f" {token}"
        text = self._tokenizer.decode(self._tokens)
        if text.endswith(_UNFINISHED) or not text.startswith(self._shown):
            return ""
        new, self._shown = text[len(self._shown) :], text
        return new


def load(path: Path) -> Tokenizer:
    """The tokenizer in the file at `path`. InputError for a file that is none, ToolError without the package."""
    if len(opening.content(path, _MOST_BYTES)) > _MOST_BYTES:
        raise InputError(f"{path} is too large: it has more than {_MOST_BYTES:,} bytes")
    try:
        import pytorch_tokenizers
    except ImportError as error:
        raise ToolError(
            f"--tokenizer needs the Python package {PACKAGE}, which cannot be loaded: {error}",
            "pip install pytorch-tokenizers==1.5.0, or give the prompt by number with --tokens",
        ) from error
    model = _guarded(path, lambda: pytorch_tokenizers.get_tokenizer(str(path)))
    bos, eos = (_known(getattr(model, name, None)) for name in ("bos_id", "eos_id"))
    return Tokenizer(path, int(model.n_words), bos, eos, model)


def _known(token: object) -> int | None:
    return token if isinstance(token, int) and token >= 0 else None


def _guarded(path: Path, call: Callable[[], Any]) -> Any:
    """What `call` gives. InputError with the package's words where it fails; it prints, and raises of all kinds."""
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return call()
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # a panic of the tokenizers' Rust is no Exception
            raise InputError(
                f"{path} cannot be used as a tokenizer: {plain_text.error(error)}",
                "give a model of SentencePiece or tiktoken, or a tokenizer.json",
            ) from error


def numbers(text: str, what: str) -> tuple[int, ...]:
    """The tokens in `text`, numbers with commas or blanks between them. UsageError for another text."""
    words = text.replace(",", " ").split()
    wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if wrong is not None or not words:
        raise UsageError(
            f"{what}: '{plain_text.cut(wrong, 40)}' is not a token" if wrong else f"{what} has no token",
            "a token is its number: --tokens 1,5,7",
        )
    if len(words) > _MOST_TOKENS:
        raise UsageError(f"{what} has {len(words):,} tokens, {_MOST_TOKENS:,} at most can be read")
    return tuple(map(int, words))
