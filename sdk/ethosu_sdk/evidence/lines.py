"""Reading a log line by line, with the place of what is damaged, by tables of patterns in TOML.

The logs are texts for people, in grammars of their programs: no library reads them.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ethosu_sdk.errors import InputError

_MAX_DIGITS = 20
_SHOWN = 40
Taker = Callable[[re.Match[str]], None]


def feed(take: Callable[[int, str], None], lines: Iterable[str]) -> None:
    """Give every line with its number, from 1, to `take`. InputError with the number when it raises ValueError."""
    for number, line in enumerate(lines, start=1):
        try:
            take(number, line)
        except ValueError as error:
            raise InputError(
                f"line {number} of the log has {error}", "the log is damaged or was not written by firmware"
            ) from error


@functools.cache
def patterns(module: str) -> dict[str, tuple[re.Pattern[str], ...]]:
    """The patterns in the TOML file beside the file of a `module`: name → one or several."""
    table = tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: tuple(re.compile(text, re.ASCII) for text in ([row] if isinstance(row, str) else row))
        for name, row in table.items()
    }


def understood(module: str, takers: Mapping[str, Taker], message: str) -> bool:
    """Give `message` to the first of `takers` that has a pattern for it, in their order; whether there is one.

    ValueError when it holds a whole number of more digits than 64 bits have.
    """
    for name, taker in takers.items():
        for pattern in patterns(module)[name]:
            if match := pattern.match(message):
                _check_numbers(match, message)
                taker(match)
                return True
    return False


def _check_numbers(match: re.Match[str], message: str) -> None:
    for text in match.groups():
        if text and text.isdigit() and len(text) > _MAX_DIGITS:
            raise ValueError(
                f"a number of {len(text):,} digits, more than any firmware prints: {message[:_SHOWN]!r}…"
            )


def facts(match: re.Match[str]) -> dict[str, int | str]:
    """The groups that matched, by name."""
    return {name: int(text) if text.isdigit() else text for name, text in match.groupdict().items() if text}
