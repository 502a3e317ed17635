"""Reads a user's TOML file, which is not trusted, and names the line of an error."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening, toml_lines
from ethosu_sdk.files.toml_lines import Place

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_MOST_SHOWN = 60


@dataclass(frozen=True)
class TomlSource:
    """What a file is called in messages, and its text."""

    name: str
    text: str

    def locate(self, place: Place) -> str:
        """``FILE:LINE`` of the member at `place`."""
        return f"{self.name}:{toml_lines.line_of(self.text, place)}"

    def wrong(self, place: Place, message: str, hint: str = "") -> InputError:
        """The error for the member at `place`."""
        return InputError(f"{self.locate(place)}: {message}", hint)


@dataclass(frozen=True)
class Kind:
    """What a file is to be, in words, and how large it may be: to find a line takes time."""

    words: str
    most_bytes: int
    most_lines: int


def read(path: Path, kind: Kind) -> tuple[TomlSource, dict[str, Any]]:
    """The file at `path` and its tables. InputError, with the line, when it is not TOML, or too large."""
    content = opening.content(path, kind.most_bytes)
    if len(content) > kind.most_bytes or content.count(b"\n") > kind.most_lines:
        raise InputError(
            f"{path} is too large for {kind.words}: {kind.most_bytes:,} bytes and {kind.most_lines:,} lines are the "
            "limit"
        )
    try:
        text = content.decode("utf-8")
        found = toml_lines.excess(text)
        if found is None:
            return TomlSource(str(path), text), tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error
    except RecursionError:
        raise InputError(f"{path} is not TOML: its brackets are nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of too many digits
        place = _AT_LINE.search(str(error))
        where = f"{path}:{place[1]}" if place else str(path)
        raise InputError(f"{where}: this is not TOML: {_AT_LINE.sub('', str(error)).strip()}") from error
    line, what = found
    raise InputError(f"{path}:{line}: {what}")


def short(text: str) -> str:
    """A text of the file's, as a message shows it: in one line."""
    text = "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: _MOST_SHOWN + 1]
    )
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
