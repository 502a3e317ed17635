"""How facts cross a process boundary: as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

_Facts = TypeVar("_Facts")


def to_text(value: Any) -> str:
    """The JSON of `value`, in which dataclasses and paths may stand; :func:`from_json` is the way back."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no form in JSON")


def from_json(kind: type[_Facts], value: Any) -> _Facts:
    """The dataclass `kind` from its JSON values."""
    return msgspec.convert(value, kind, dec_hook=lambda part, text: part(text))
