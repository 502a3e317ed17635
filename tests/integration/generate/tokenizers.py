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


def hugging_face(**parts: Any) -> bytes:
    """A `tokenizer.json` with other `parts`."""
    return json.dumps({**WORDS, **parts}).encode()


def replacing(part: str, times: int) -> bytes:
    """One whose normalizer or decoder doubles every letter w that often."""
    row = {"type": "Replace", "pattern": {"String": "w"}, "content": "ww"}
    return hugging_face(**{part: {"type": "Sequence", f"{part}s": [row] * times}})


def tiktoken(*words: bytes, first: int = 0) -> bytes:
    """A file of tiktoken with every byte, the byte `first` before all others, and `words`."""
    tokens = [bytes([(first + number) % 256]) for number in range(256)] + list(words)
    return b"".join(base64.b64encode(token) + b" %d\n" % number for number, token in enumerate(tokens))
