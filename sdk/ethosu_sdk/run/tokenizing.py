"""Text to tokens and back, with the tokenizers that ExecuTorch's runners read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ethosu_sdk.base import filesystem, plain_text, proc
from ethosu_sdk.base.errors import InputError, ToolError, UsageError
from ethosu_sdk.run import tokenizer_worker

_MOST_BYTES = 1 << 26
_MOST_MEMORY_BYTES = 1 << 30  # a vocabulary of 260,000 takes a fifth of it
_LIMIT_S = 60.0  # for a call
_CHUNK_BYTES = 1 << 16
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # what the first bytes of a character decode to
_NUMBER = re.compile(r"[0-9]{1,10}")


class _Worker:
    """The process that has the tokenizer in the file at `path`, at the other end of `ours`."""

    def __init__(self, path: Path, ours: socket.socket, process: proc.Child) -> None:
        self._path, self._ours, self._process = path, ours, process
        self._read = b""
        self._number = 0

    def ask(self, call: str, given: object) -> Any:
        """What a call gives. InputError with the package's words where it fails."""
        self._number += 1
        try:
            self._ours.sendall(json.dumps([self._number, call, given]).encode() + b"\n")
        except OSError:
            raise self._wrong(self._end()) from None
        return self.answer()

    def answer(self) -> Any:
        """The answer to the last call. What an interrupted one left is passed over."""
        answer = json.loads(self._line())
        while answer["number"] != self._number:
            answer = json.loads(self._line())
        if "missing" in answer:
            raise ToolError(
                f"--tokenizer needs a Python package which cannot be loaded: {answer['missing']}",
                "pip install pytorch-tokenizers==1.5.0, or give the prompt by number with --tokens",
            )
        if "raised" in answer:
            raise self._wrong(answer["raised"])
        return answer["result"]

    def _line(self) -> bytes:
        while b"\n" not in self._read:
            try:
                chunk = self._ours.recv(_CHUNK_BYTES)
            except TimeoutError:
                raise self._wrong(f"it takes more than {_LIMIT_S:g} s") from None
            except OSError:
                chunk = b""
            if not chunk:
                raise self._wrong(self._end())
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _end(self) -> str:
        """How the process ended. Rust and C++ abort when there is no memory."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LIMIT_S)
        name = signal.Signals(-self._process.returncode).name if (self._process.returncode or 0) < 0 else ""
        return (
            f"it ended the process that reads it{name and f' by {name}'}; {_MOST_MEMORY_BYTES >> 20:,} MiB of memory "
            "are the limit"
        )

    def _wrong(self, reason: str) -> InputError:
        return InputError(
            f"{self._path} cannot be used as a tokenizer: {reason}",
            "give a model of SentencePiece or tiktoken, or a tokenizer.json",
        )


class Tokenizer(Struct, frozen=True):
    """A tokenizer with `size` tokens; `bos` and `eos` are None where it has none. `sha256` is of what was read."""

    path: Path
    sha256: str
    size: int
    bos: int | None
    eos: int | None
    _worker: _Worker

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of `text`, behind the one that begins a text."""
        found = self._worker.ask("encode", text)
        first = [] if self.bos is None or found[:1] == [self.bos] else [self.bos]
        return (*first, *found)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._worker.ask("decode", list(tokens)))


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


@contextlib.contextmanager
def opened_tokenizer(path: Path | None) -> Iterator[Tokenizer | None]:
    """The tokenizer in the file at `path` for the time of a `with` block; None without a path. InputError for a file
    that is none, ToolError without its package."""
    if path is None:
        yield None
        return
    data = filesystem.file_content(path, _MOST_BYTES)
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is too large: it has more than {_MOST_BYTES:,} bytes")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(os.memfd_create("tokenizer"), "r+b"))
        file.write(data)
        file.seek(0)
        ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
        descriptors = (theirs.fileno(), file.fileno())
        argv = [sys.executable, "-P", "-B", "-m", tokenizer_worker.__name__]
        argv += [*map(str, descriptors), path.suffix, str(_MOST_MEMORY_BYTES)]
        nowhere = subprocess.DEVNULL
        process = stack.enter_context(proc.spawn(argv, pass_fds=descriptors, stdout=nowhere, stderr=nowhere))
        theirs.close()
        ours.settimeout(_LIMIT_S)
        worker = _Worker(path, ours, process)
        facts = worker.answer()
        bos, eos = (
            token if isinstance(token, int) and token >= 0 else None for token in (facts["bos"], facts["eos"])
        )
        yield Tokenizer(path, filesystem.sha256_bytes(data), int(facts["size"]), bos, eos, worker)


def token_numbers(text: str, what: str) -> tuple[int, ...]:
    """The tokens in `text`, numbers with commas or blanks between them. UsageError for another text."""
    words = text.replace(",", " ").split()
    wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if wrong is not None or not words:
        raise UsageError(
            f"{what}: '{plain_text.cut(wrong, 40)}' is not a token" if wrong else f"{what} has no token",
            "a token is its number: --tokens 1,5,7",
        )
    if len(words) > tokenizer_worker.MOST_TOKENS:
        raise UsageError(
            f"{what} has {len(words):,} tokens, {tokenizer_worker.MOST_TOKENS:,} at most can be read"
        )
    return tuple(map(int, words))
