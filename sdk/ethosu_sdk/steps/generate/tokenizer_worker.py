"""The process that has a tokenizer: ``python -m ethosu_sdk.steps.generate.tokenizer_worker SOCKET FILE NAME BYTES``.

A file of some kilobytes can make text grow without end, or keep a pattern busy for years, and the packages' Rust and
C++ print and abort. So they run here, in BYTES of memory more than Python has, without output and without files.
JSON lines come and go by SOCKET, which :mod:`ethosu_sdk.steps.generate.tokenizing` writes and reads. The tokenizer is
in the open FILE, whose name ends with NAME.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import socket
import sys
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

from ethosu_sdk import plain_text
from ethosu_sdk.steps.generate import tokenizer_growth

MOST_TOKENS = 1 << 20  # of a text
_MOST_LETTERS = 1 << 24  # of the text of some tokens
_Found = TypeVar("_Found", bound=Sized)
_RANK = re.compile(rb"([A-Za-z0-9+/]+={0,2})[ \t]+([0-9]{1,7})")


@dataclass(frozen=True)
class _Model:
    """A tokenizer of one of the packages; a negative `bos` or `eos`, or None, is none."""

    size: int
    bos: int | None
    eos: int | None
    encode: Callable[[str], Sequence[int]]
    decode: Callable[[list[int]], str]


def main() -> None:
    """Load the tokenizer, and answer until the other side closes."""
    descriptor, file, suffix, most_bytes = sys.argv[1:]
    with open(int(file), "rb") as stream:
        data = stream.read()
    _limit(int(most_bytes))
    with socket.socket(fileno=int(descriptor)) as ours, ours.makefile("rb") as lines:
        model: _Model | None = None

        def loaded() -> dict[str, Any]:
            nonlocal model
            model = _hugging_face(data) if suffix == ".json" else _sentencepiece_or_tiktoken(data)
            return {"size": model.size, "bos": model.bos, "eos": model.eos}

        ours.sendall(_answer(0, loaded))
        for line in lines:
            number, call, given = json.loads(line)
            assert model is not None, "the other side closes when it cannot be loaded"
            ours.sendall(_answer(number, _asked(model, call, given)))


def _asked(model: _Model, call: str, given: Any) -> Callable[[], Any]:
    def encoded() -> list[int]:
        return _bounded([int(token) for token in model.encode(given)], MOST_TOKENS, "tokens")

    def decoded() -> str:
        return _bounded(str(model.decode(given)), _MOST_LETTERS, "characters")

    return encoded if call == "encode" else decoded


def _bounded(found: _Found, most: int, what: str) -> _Found:
    if len(found) > most:
        raise ValueError(f"it makes {len(found):,} {what}, {most:,} at most can be read")
    return found


def _answer(number: int, call: Callable[[], Any]) -> bytes:
    """A line for the other side: what `call` gives, or in which words it failed."""
    answer: dict[str, Any] = {"number": number}
    try:
        answer["result"] = call()
    except ImportError as error:
        answer["missing"] = plain_text.error(error)
    except BaseException as error:  # a panic of the tokenizers' Rust is no Exception
        answer["raised"] = plain_text.error(error)
    return json.dumps(answer).encode() + b"\n"


def _limit(more_bytes: int) -> None:
    """Limits on this process: memory beyond what it has, no file, no core dump."""
    with open("/proc/self/statm", "rb") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    for limit, value in (
        (resource.RLIMIT_AS, present + more_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if most == resource.RLIM_INFINITY else min(value, most), most))
    os.environ |= {
        "TOKENIZERS_PARALLELISM": "false",
        "RAYON_NUM_THREADS": "1",
    }  # a thread takes address space


def _hugging_face(data: bytes) -> _Model:
    from tokenizers import Tokenizer

    tokenizer_growth.check(data)  # before it is loaded: that runs the normalizer already
    found = Tokenizer.from_buffer(data)
    return _Model(
        size=found.get_vocab_size(),
        bos=found.token_to_id("<|begin_of_text|>"),  # as the package pytorch_tokenizers guesses
        eos=found.token_to_id("<|endoftext|>"),
        encode=lambda text: found.encode(text).ids,
        decode=found.decode,
    )


def _sentencepiece_or_tiktoken(data: bytes) -> _Model:
    from sentencepiece import SentencePieceProcessor

    found = SentencePieceProcessor()
    try:
        found.LoadFromSerializedProto(data)
    except Exception:
        return _tiktoken(data)
    return _Model(found.vocab_size(), found.bos_id(), found.eos_id(), found.encode, found.decode)


def _tiktoken(data: bytes) -> _Model:
    """Llama 3's, whose pattern and special tokens are not in the file. tiktoken's own reader is not asked: it takes a
    copy of any age from a folder that others can write to."""
    from pytorch_tokenizers import TiktokenTokenizer
    from pytorch_tokenizers.constants import CL100K_PAT_STR, LLAMA_SPECIAL_TOKENS
    from tiktoken import Encoding

    ranks = _ranks(data)
    special = {token: len(ranks) + number for number, token in enumerate(LLAMA_SPECIAL_TOKENS)}

    class Llama(TiktokenTokenizer):  # type: ignore[misc]
        def __init__(self) -> None:
            self.model = Encoding(
                "llama", pat_str=CL100K_PAT_STR, mergeable_ranks=ranks, special_tokens=special
            )

    found = Llama()
    return _Model(
        size=len(ranks) + len(special),
        bos=special["<|begin_of_text|>"],
        eos=special["<|end_of_text|>"],
        encode=lambda text: found.encode(text, bos=False, eos=False),
        decode=found.decode,
    )


def _ranks(data: bytes) -> dict[bytes, int]:
    """The tokens of a file of tiktoken, each with its rank. ValueError, with the line, for another file."""
    found: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if line:
            row = _RANK.fullmatch(line)
            if row is None:
                raise ValueError(f"line {number} is not a token in base64 and its rank")
            found[base64.b64decode(row[1])] = int(row[2])
    if sorted(found.values()) != list(range(len(found))):
        raise ValueError("its ranks are not those from 0 on, each once")
    if any(
        bytes([byte]) not in found for byte in range(256)
    ):  # the package would panic at a text with that byte
        raise ValueError("it has not every byte as a token")
    return found


if __name__ == "__main__":
    main()
