"""The text of a SWEEP.toml, hostile as any, and the place of what is wrong in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.commands.compare import toml_lines
from ethosu_sdk.commands.compare.toml_lines import Place
from ethosu_sdk.errors import InputError

_MOST_BYTES = 256 << 10
_MOST_LINES = 5000
_MOST_VALUES = 1000
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


@dataclass(frozen=True)
class Source:
    """A file's path and its text."""

    path: Path
    text: str

    def locate(self, place: Place) -> str:
        """``FILE:LINE`` of the member at `place`."""
        return f"{self.path}:{toml_lines.line_of(self.text, place)}"

    def wrong(self, place: Place, message: str, hint: str = "") -> InputError:
        """What is said of the member at `place`."""
        return InputError(f"{self.locate(place)}: {message}", hint)

    def strings(self, place: Place, value: Any) -> tuple[str, ...]:
        """A string or a list of strings, not empty and without repetition."""
        return tuple(dict.fromkeys(self._strings(place, value)))

    def _strings(self, place: Place, value: Any) -> Iterator[str]:
        rows = value if isinstance(value, list) else [value]
        name = place[-1]
        if not rows:
            raise self.wrong(
                place, f"{name} is empty: there would be no cells", "leave it out for the default"
            )
        if len(rows) > _MOST_VALUES:
            raise self.wrong(place, f"{name} has {len(rows):,} values; {_MOST_VALUES:,} are the most")
        for row in rows:
            if not isinstance(row, str) or not row:
                raise self.wrong(place, f"{name} is a list of strings", f'{name} = ["…"]')
            yield row


def read(path: Path) -> tuple[Source, dict[str, Any]]:
    """The file at `path` and its tables. InputError, with the line, when it is not TOML."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "ethosu-sdk sweep SWEEP.toml") from error
    if len(content) > _MOST_BYTES or content.count(b"\n") > _MOST_LINES:
        raise InputError(
            f"{path} is too large for a sweep: {_MOST_BYTES:,} bytes and {_MOST_LINES:,} lines are the most"
        )
    try:
        text = content.decode("utf-8")
        return Source(path, text), tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error
    except RecursionError:
        raise InputError(f"{path} is not TOML: its brackets are nested too deep") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of too many digits
        found = _AT_LINE.search(str(error))
        where = f"{path}:{found[1]}" if found else str(path)
        raise InputError(f"{where}: this is not TOML: {_AT_LINE.sub('', str(error)).strip()}") from error
