"""Tokenizers of strangers: damaged ones, and those that make much of a little text."""

import random
from collections.abc import Callable
from typing import Any

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind
from campaigns.attack.process import Ended, Limits
from tests.integration.generate import tokenizers
from tests.pte_files import golden

# With its own limits: 1 GiB for the tokenizer, and 60 s a call, of which a case has three at most.
_LIMITS = Limits(seconds=240.0, memory_bytes=3 << 29)
_TEXTS = ("w1 w2", "w" * 60, "", " " * 2000, "\N{SNOWMAN}e\u0301\u202e", "1" * 40 + "x", "w1 " * 2000)
_Step = Callable[[int], dict[str, Any]]
_NORMALIZERS: tuple[_Step, ...] = (
    lambda size: {"type": "Replace", "pattern": {"String": "w"}, "content": "w" * size},
    lambda size: {"type": "Replace", "pattern": {"Regex": "(w+w+)+x"}, "content": "w" * size},
    lambda size: {"type": "Replace", "pattern": {"String": ""}, "content": "w" * size},
    lambda size: {"type": "Prepend", "prepend": "w" * size},
    lambda size: {"type": "NFKD"},
    lambda size: {"type": "ByteLevel"},
    lambda size: {"type": "Lowercase"},
)
_DECODERS: tuple[_Step, ...] = (
    *_NORMALIZERS[:3],
    lambda size: {"type": "BPEDecoder", "suffix": "w" * min(size, 1)},
    lambda size: {
        "type": "CTC",
        "pad_token": "",
        "word_delimiter_token": "w" * min(size, 1),
        "cleanup": True,
    },
    lambda size: {"type": "Fuse"},
    lambda size: {"type": "ByteFallback"},
)
_PROCESSORS: tuple[_Step, ...] = (
    lambda size: {**tokenizers.TWICE, "single": tokenizers.TWICE["single"][:1] * min(size, 100)},
    lambda size: {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
)
_PARTS = {"normalizer": _NORMALIZERS, "decoder": _DECODERS, "post_processor": _PROCESSORS}
_PADDED = (8, 1 << 16, 1 << 22, 1 << 40)


def _steps(choice: random.Random, part: str) -> dict[str, Any]:
    """Some of all kinds and sizes, or one again and again: a step that deletes what others make ends their growth."""
    count = choice.randint(1, 40)
    if choice.random() < 0.6:
        rows = [choice.choice(_PARTS[part])(choice.choice((0, 2, 9)))] * count
    else:
        steps = choice.choices(_PARTS[part], k=count)
        rows = [step(choice.choice((0, 1, 2, 2, 9, 10_000))) for step in steps]
    return {"type": "Sequence", tokenizers.NESTED[part]: rows}


def _hugging_face(choice: random.Random) -> bytes:
    parts: dict[str, Any] = {part: _steps(choice, part) for part in _PARTS if choice.random() < 0.5}
    if choice.random() < 0.2:
        parts["padding"] = tokenizers.padding(choice.choice(_PADDED))
    if choice.random() < 0.3:
        pattern = choice.choice(("(1+1+)+x", "(w|w)*y", "", "[", "(?=w)"))
        parts["pre_tokenizer"] = {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": choice.choice(("Isolated", "Removed", "Contiguous")),
            "invert": choice.random() < 0.5,
        }
    return tokenizers.hugging_face(**parts)


def _tiktoken(choice: random.Random) -> bytes:
    words = [choice.randbytes(choice.randint(1, 9)) for _ in range(choice.randint(0, 300))]
    return tokenizers.tiktoken(*words, first=choice.randrange(256))


def _case(context: Context, choice: random.Random) -> Case:
    name, make = choice.choice((("given.json", _hugging_face), ("given.model", _tiktoken)))
    content = make(choice)
    if choice.random() < 0.4:
        content = damage.damaged(choice, content)
    text = choice.choice(_TEXTS)
    words = ["generate", "given.pte", "--prompt", text, "--tokenizer", name, "-o", "out"]
    files = {name: content, "given.pte": golden("softmax")}
    return Case(f"{name} for {len(text)} letters", files, words, limits=_LIMITS, judge=_judge)


def _judge(ended: Ended, folder: object) -> list[str]:
    """The program is no decoder: whatever the tokenizer is, the command says one thing and ends with 2 or 3."""
    found = [] if ended.code in (2, 3) else [f"exit code {ended.code} for a program that is no decoder"]
    return found if ended.err.startswith(("error: ", "Usage: ")) else [*found, "a package speaks for itself"]


KIND = Kind("tokens", _case)
