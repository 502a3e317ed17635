"""Strict JSON: ambiguous text is refused, and sizes are limited."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, InputError

Record = dict[str, Any]  # an object of JSON, with its `schema`

_MAX_RECORD_BYTES = 16 << 20  # in memory, JSON takes up to thirty times that
_MAX_DIGITS = 400  # of a number; Python itself stops at 4300, with a message of its own
_MAX_INT = 1 << 64  # whole numbers of records fit 64 bits, so that every one is a float too
_MAX_DEPTH = 64
_SHOWN_TEXT = 40  # characters of a key or a number in a message


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write `record` atomically as indented JSON. BuildError when it is larger than what is read again."""
    content = dumps(record).encode()
    if len(content) > _MAX_RECORD_BYTES:
        raise BuildError(
            f"{path.name} would have {len(content):,} bytes, but a record has at most {_MAX_RECORD_BYTES:,}"
        )
    filesystem.write_bytes(path, content)


def dumps(record: Mapping[str, Any]) -> str:
    """`record` as JSON text, with a newline at its end. NaN and infinity are refused."""
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. InputError when it is missing, too large, or not an object.

    Nothing tells whether it is as it was written: commands read records through `records/bundle.py`.
    """
    return parse_record(read_content(path), path)


def read_content(path: Path) -> bytes:
    """The bytes of the record at `path`. InputError when it is missing or too large."""
    content = filesystem.file_content(path, _MAX_RECORD_BYTES)
    if len(content) > _MAX_RECORD_BYTES:
        raise InputError(f"{path} is too large for a record (more than {_MAX_RECORD_BYTES:,} bytes)")
    return content


def parse_record(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in `content`, which was read from `path`. InputError when it is not one."""
    try:
        value = parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path} is not JSON: {error}", "give a record: a .json file of `ethosu-sdk`"
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{path} does not hold a JSON object")
    return value


def parse_json(text: str) -> Any:
    """The value of JSON `text`, by the letter of RFC 8259 and with one meaning only.

    Raises ValueError for what Python's reader lets through or fails at in words of its own: NaN and infinity, numbers
    that no float or 64 bits hold or that have very many digits, a key that occurs twice, brackets in brackets without
    an end.
    """
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep") from None
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [part for item in level for part in _parts(item)]
    if level:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number in JSON")


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    value = int(text)
    if abs(value) >= _MAX_INT:
        raise ValueError(f"the whole number {text[:_SHOWN_TEXT]} needs more than 64 bits")
    return value


def _float(text: str) -> float:
    value = float(text) if len(text) <= _MAX_DIGITS else math.inf
    if math.isinf(value):
        raise ValueError(f"the number {text[:_SHOWN_TEXT]} is too large, or has too many digits")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice[:_SHOWN_TEXT]!r} occurs twice in one object")
    return found


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
