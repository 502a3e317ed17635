"""Errors that users meet, by code and by what logs say (error_catalogue.toml): the cause, and what to do."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base.errors import UsageError

_CODE = re.compile(r"(?:0x)?[0-9a-fA-F]{1,8}")
_MAX_LINE = 4096
# What nobody prints who is well: lines of ExecuTorch's log and Arm's driver at error level, faults, assertions.
_FAILURE = re.compile(r"^[EF](?:: | \[| \d\d:|  *executorch:)|^\[critical\]|Hard fault|\bAssertion\b.*fail")
# Where a number is one of ExecuTorch's codes, and not any number: `status 0x21`, `error: 0x21`, `@ 0x70000000: 0x23`.
# One expression for all codes: a log may have a million lines.
_CODE_IN_TEXT = re.compile(
    r"(?:[Ss]tatus|[Ee]rror|[Cc]ode|inputs|@ 0x[0-9a-fA-F]+:)[\s:=(]*0x0*([0-9a-fA-F]{1,2})\b|\bError::(\w+)"
)


@dataclass(frozen=True)
class KnownError:
    """One error. `code` is ExecuTorch's, None for others; a harmless one only looks like an error.

    A `limit` cuts a simulation short, which is no failure of a firmware that was done before.
    """

    id: str
    area: str
    cause: str
    fix: str
    code: int | None = None
    name: str = ""
    harmless: bool = False
    limit: bool = False
    patterns: tuple[re.Pattern[str], ...] = ()

    def is_in(self, line: str, codes: Collection[int | str] = ()) -> bool:
        """Whether `line` of a log or message tells of this error; `codes` are ExecuTorch's codes and names in it."""
        if self.code is not None and (self.code in codes or self.name in codes):
            return True
        return any(pattern.search(line) for pattern in self.patterns)

    @property
    def advice(self) -> str:
        """Cause and remedy, for a hint."""
        return f"{self.id}: {self.cause} {self.fix}"


@functools.cache
def known_errors() -> tuple[KnownError, ...]:
    """All rows of error_catalogue.toml, in their order."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(
        KnownError(**{**row, "patterns": tuple(map(re.compile, row.get("patterns", ())))})
        for row in table["errors"]
    )


def in_line(line: str) -> list[KnownError]:
    """The errors that one line of a log or message tells of, in the catalogue's order."""
    if len(line) > _MAX_LINE:  # binary data, and no message
        return []
    codes = {int(code, 16) if code else name for code, name in _CODE_IN_TEXT.findall(line)}
    return [error for error in known_errors() if error.is_in(line, codes)]


def has_failure_form(line: str) -> bool:
    """Whether `line` looks like one at an error level, of a fault or of a failed assertion."""
    return _FAILURE.search(line) is not None


def in_text(lines: Iterable[str]) -> list[KnownError]:
    """The errors that `lines` tell of, each once, in the order of their first line."""
    found: dict[str, KnownError] = {}
    for line in lines:
        found.update((error.id, error) for error in in_line(line) if error.id not in found)
    return list(found.values())


def look_up(words: str) -> list[KnownError]:
    """The errors that `words` mean: an id, a code such as ``0x21``, ExecuTorch's name, or the text of a message.

    UsageError when none is known.
    """
    wanted = words.strip()
    by_name = [
        error for error in known_errors() if wanted and wanted.lower() in (error.id, error.name.lower())
    ]
    by_code = [
        error
        for error in known_errors()
        if error.code is not None and _CODE.fullmatch(wanted) and error.code == int(wanted, 16)
    ]
    found = by_name or by_code or in_text(words.splitlines())
    if not found:
        raise UsageError(
            f"no known error is meant by {wanted[:80]!r}",
            "`ethosu-sdk explain` without an argument lists all of them",
        )
    return found


def as_markdown() -> str:
    """The catalogue as the site shows it."""
    parts = [
        "# Known errors\n",
        "`ethosu-sdk explain --markdown` makes this page from `sdk/ethosu_sdk/base/error_catalogue.toml`; edit that "
        "file.",
        '`ethosu-sdk explain ID`, `explain 0x21` or `explain "a line of a log"` prints one entry.\n',
    ]
    for area, title in _AREAS.items():
        rows = [error for error in known_errors() if error.area == area]
        parts.append(f"## {title}\n")
        parts += [_markdown_entry(error) for error in rows]
    return "\n".join(parts)


def _markdown_entry(error: KnownError) -> str:
    code = f" (0x{error.code:02x}, `Error::{error.name}`)" if error.code is not None else ""
    harmless = " *Harmless.*" if error.harmless else ""
    return f"**{error.id}**{code}:{harmless} {error.cause}\n*What to do:* {error.fix}\n"


_AREAS = {
    "executorch": "ExecuTorch's runtime",
    "runner": "ExecuTorch's executor_runner",
    "driver": "NPU and driver",
    "firmware": "Processor",
    "fvp": "Arm's FVP",
    "build": "Build",
    "export": "torch.export",
}
