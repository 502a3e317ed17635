"""The process that has a tokenizer: ``python -m ethosu_sdk.run.tokenizer_worker SOCKET FILE NAME BYTES``. A file of
some kilobytes can make text grow without end, or keep a pattern busy for years, and the packages' Rust and C++ print
and abort. So they run here, in BYTES of memory more than Python has, without output and without files. JSON lines
come and go by SOCKET, which :mod:`ethosu_sdk.run.tokenizing` writes and reads. The tokenizer is in the open FILE,
whose name ends with NAME."""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, TypeVar

import msgspec

from ethosu_sdk.base import plain_text

MOST_TOKENS = 1 << 20  # of a text
_MOST_LETTERS = 1 << 24  # of the text of some tokens
_Found = TypeVar("_Found", bound=Sized)
_RANK = re.compile(rb"([A-Za-z0-9+/]+={0,2})[ \t]+([0-9]{1,7})")


class _Model(msgspec.Struct, frozen=True):
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
            ours.sendall(_answer(number, functools.partial(_called, model, call, given)))


def _called(model: _Model, call: str, given: Any) -> Any:
    if call == "encode":
        return _bounded([int(token) for token in model.encode(given)], MOST_TOKENS, "tokens")
    return _bounded(str(model.decode(given)), _MOST_LETTERS, "characters")


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
    # A thread takes address space.
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}


def _hugging_face(data: bytes) -> _Model:
    from tokenizers import Tokenizer

    check_growth(data)  # before it is loaded: that runs the normalizer already
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
    # The package would panic at a text with that byte.
    if any(bytes([byte]) not in found for byte in range(256)):
        raise ValueError("it has not every byte as a token")
    return found


# How much a `tokenizer.json` makes of a text, by the file alone. A few kilobytes of steps in a row can double a text
# again and again; only the limits of the process would end that.

_MOST = 1 << 14  # letters of one letter, and tokens of one token; the files of known models make 20 at most
_MOST_STEPS = 1024
_Step = dict[str, Any]
_NESTED = ("normalizers", "pretokenizers", "decoders", "processors")  # by these names a step has others
# Steps that make others of letters, and how many of each one that they can get again and again.
_CHANGES = {
    **dict.fromkeys(("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents"), 1),
    **{"ByteLevel": 4, "Metaspace": 2, "Precompiled": 18, "WordPiece": 2},
}


class _File(msgspec.Struct):
    """The parts of the file that change a text. The others, and the vocabulary, are passed over."""

    normalizer: Any = None
    pre_tokenizer: Any = None
    decoder: Any = None
    post_processor: Any = None


def check_growth(data: bytes) -> None:
    """ValueError for a `tokenizer.json` that is no JSON, or that makes too much of a letter or a token."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"it is no JSON of a tokenizer: {error}") from None
    encoding = [*_steps(file.normalizer), *_steps(file.pre_tokenizer)]
    _bound("normalizer and pre_tokenizer", "letter", encoding, _letters)
    _bound("decoder", "letter", [*_steps(file.decoder)], _letters)
    _bound("post_processor", "token", [*_steps(file.post_processor)], _tokens)


def _bound(part: str, what: str, steps: list[_Step], made: Callable[[list[_Step]], float]) -> None:
    if len(steps) > _MOST_STEPS:
        raise ValueError(f"its {part} has {len(steps):,} steps, {_MOST_STEPS:,} at most can be used")
    if made(steps) > _MOST:
        raise ValueError(f"its {part} can make more than {_MOST:,} {what}s of one, in {len(steps):,} steps")


def _steps(part: Any) -> Iterator[_Step]:
    """The steps of a part in their order, without the sequences around them."""
    if isinstance(part, dict):
        if part.get("type") != "Sequence":
            yield part
        for name in _NESTED:
            rows = part.get(name)
            for row in rows if isinstance(rows, list) else ():
                yield from _steps(row)


class _Made(msgspec.Struct):
    """How many letters come at the end of a letter, by the letter; of any other one, `others`."""

    others: float = 1.0
    letters: dict[str, float] = {}

    def of(self, text: Iterable[str]) -> float:
        return sum(self.letters.get(letter, self.others) for letter in text)

    @property
    def most(self) -> float:
        return max(self.others, *self.letters.values(), 0.0)


def _letters(steps: list[_Step]) -> float:
    """How many letters the steps make of one letter at most. It goes from the last step to the first."""
    made, added = _Made(), 0.0  # `added` to every text
    for step in reversed(steps):
        kind = str(step.get("type"))
        pattern, content = _replaced(kind, step)
        grown = made.of(content)
        if kind in _CHANGES:
            made = _Made(made.most * _CHANGES[kind])
        elif kind == "Prepend":
            added += grown
        elif not pattern:  # what stands for no letter comes in front of each, and at the end
            made, added = _Made(made.most + grown), added + grown
        else:
            made.letters |= {letter: max(made.of(letter), grown / len(pattern)) for letter in pattern}
        if made.most + added > _MOST:
            break
    return made.most + added


def _replaced(kind: str, step: _Step) -> tuple[str, str]:
    """The pattern that a step replaces, empty when it can be none or any letter, and what it puts there."""
    if kind == "Replace":
        pattern = step.get("pattern")
        return _text(pattern.get("String") if isinstance(pattern, dict) else ""), _text(step.get("content"))
    if kind == "BPEDecoder":
        return _text(step.get("suffix")), " "
    if kind == "CTC":
        return _text(step.get("word_delimiter_token")), " "
    return "", _text(step.get("prepend")) if kind == "Prepend" else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tokens(steps: list[_Step]) -> float:
    made = 1.0
    for step in steps:
        if step.get("type") == "TemplateProcessing" and made <= _MOST:
            rows = step.get("single")
            pieces = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            made = made * sum("Sequence" in row for row in pieces) + len(pieces)
    return made


if __name__ == "__main__":
    main()
