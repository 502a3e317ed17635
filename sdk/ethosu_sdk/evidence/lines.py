"""Reading a log line by line, with the place of what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ethosu_sdk.errors import InputError


def feed(take: Callable[[int, str], None], lines: Iterable[str]) -> None:
    """Give every line with its number, from 1, to `take`. InputError with the number when it raises ValueError."""
    for number, line in enumerate(lines, start=1):
        try:
            take(number, line)
        except ValueError as error:
            raise InputError(
                f"line {number} of the log has {error}", "the log is damaged, or no firmware wrote it"
            ) from error
