"""Tokenizers of some kilobytes: sound ones, and those that take more than any machine has."""

import base64
import json
from typing import Any

WORDS: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {
        "type": "WordLevel",
        "vocab": {**{f"w{number}": number for number in range(1023)}, "[UNK]": 1023},
        "unk_token": "[UNK]",
    },
}
DOUBLES = {"type": "Replace", "pattern": {"String": "w"}, "content": "ww"}
TWICE = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
    "pair": [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"],
    "special_tokens": {},
}
_REMOVED = {"behavior": "Removed", "invert": False}
NESTED = {"normalizer": "normalizers", "decoder": "decoders", "post_processor": "processors"}


def hugging_face(**parts: Any) -> bytes:
    """A `tokenizer.json` with other `parts`."""
    return json.dumps({**WORDS, **parts}).encode()


def in_a_row(part: str, step: dict[str, Any], times: int) -> bytes:
    """One whose `part` has a step that often."""
    return hugging_face(**{part: {"type": "Sequence", NESTED[part]: [step] * times}})


def padding(tokens: int) -> dict[str, Any]:
    """What makes so many tokens of any text."""
    row = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "w0"}
    return {"strategy": {"Fixed": tokens}, **row}


def tiktoken(*words: bytes, first: int = 0) -> bytes:
    """A file of tiktoken with every byte, the byte `first` before all others, and `words`."""
    tokens = [bytes([(first + number) % 256]) for number in range(256)] + list(words)
    return b"".join(base64.b64encode(token) + b" %d\n" % number for number, token in enumerate(tokens))


# With the steps that Llama's has, and those of others that delete punctuation.
LLAMAS = hugging_face(
    normalizer={
        "type": "Sequence",
        "normalizers": [
            *(
                {"type": "Replace", "pattern": {"String": sign}, "content": ""}
                for sign in "!#$%&()*+,./:;=?@"
            ),
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            {"type": "Prepend", "prepend": "\N{LOWER ONE EIGHTH BLOCK}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\N{LOWER ONE EIGHTH BLOCK}"},
        ],
    },
    pre_tokenizer={"type": "Split", "pattern": {"String": "\N{LOWER ONE EIGHTH BLOCK}"}, **_REMOVED},
    decoder={
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "\N{LOWER ONE EIGHTH BLOCK}"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    },
)
