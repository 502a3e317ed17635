"""How much a `tokenizer.json` makes of a text, by the file alone.

A few kilobytes of steps in a row can double a text again and again; only the limits of the process would end that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

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


def check(data: bytes) -> None:
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


@dataclass
class _Made:
    """How many letters come at the end of a letter, by the letter; of any other one, `others`."""

    others: float = 1.0
    letters: dict[str, float] = field(default_factory=dict)

    def of(self, text: Iterable[str]) -> float:
        """How many come of `text`."""
        return sum(self.letters.get(letter, self.others) for letter in text)

    @property
    def most(self) -> float:
        """How many come of whichever letter makes most."""
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
    """How many tokens templates make of one token."""
    made = 1.0
    for step in steps:
        if step.get("type") == "TemplateProcessing" and made <= _MOST:
            rows = step.get("single")
            pieces = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            made = made * sum("Sequence" in row for row in pieces) + len(pieces)
    return made
