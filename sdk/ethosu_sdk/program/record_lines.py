"""One line of the firmware's records → the record. Nothing in a line is trusted."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ethosu_sdk.base.json_text import parse_json
from ethosu_sdk.program.protocol import RECORD_PREFIX, RECORD_TYPES

SHOWN = 160  # characters of a line in a message


class UartRecord(Struct, frozen=True):
    """One record as it arrived; `covered` is the text that its CRC covers."""

    sequence: int
    type: str
    payload: dict[str, Any]
    covered: str


def parse_record(line: str) -> UartRecord:
    """One record line → the record. ValueError with the reason when it is damaged."""
    if not line.startswith(RECORD_PREFIX + " "):
        raise ValueError("a record does not start at the beginning of a line")
    body, _, checksum = line[len(RECORD_PREFIX) + 1 :].rpartition(" ")
    covered, _, length = body.rpartition(" ")
    sequence, _, rest = covered.partition(" ")
    name, _, text = rest.partition(" ")
    if not (_is_decimal(length) and _is_decimal(sequence) and len(checksum) == 8):
        raise ValueError("a record's frame is damaged")
    if int(length) != len(text):
        raise ValueError(f"a record's payload has {len(text)} bytes, but {length} were announced")
    if f"{zlib.crc32(covered.encode(errors='replace')):08x}" != checksum:
        raise ValueError("a record's CRC does not match")
    try:
        payload = parse_json(text)
    except ValueError as error:
        raise ValueError(f"a record's payload is not JSON ({error})") from error
    _check_fields(name, payload)
    return UartRecord(int(sequence), name, payload, covered)


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _check_fields(name: str, payload: Any) -> None:
    row = RECORD_TYPES.get(name)
    if row is None:
        raise ValueError(f"unknown record type '{name[:SHOWN]}'")
    if not isinstance(payload, dict) or set(payload) != {field.name for field in row.fields}:
        raise ValueError(f"a '{name}' record has missing or unknown fields")
    for field in row.fields:
        value = payload[field.name]
        if type(value) is not field.kind or (isinstance(value, int) and value < 0):
            raise ValueError(f"a '{name}' record's {field.name} is {value!r}")
        if isinstance(value, list) and not all(map(_LISTS[field.name], value)):
            raise ValueError(f"a '{name}' record's {field.name} is {str(value)[:SHOWN]}")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


# What the members of a list must be, by the field's name.
_LISTS: dict[str, Callable[[Any], bool]] = {
    "shape": _is_count,
    "counters": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_count, value)),
    "values": _is_count,
}
