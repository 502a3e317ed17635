"""Vela configuration files: sections ``System_Config.NAME`` and ``Memory_Mode.NAME`` with what they inherit.

The form is that of the vela.ini in ethos-u-vela 5.1.0. Files may be anybody's: what is wrong with one is an
InputError that names the file, the section and the key.
"""

from __future__ import annotations

import configparser
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.targets import suggestion

SYSTEM, MODE = "System_Config", "Memory_Mode"
LARGEST_BYTES = 1 << 20  # of a file
_INHERIT = "inherit"
_MOST_LEVELS = 64  # of inheritance
_LONGEST = 60  # characters of a value in a message
_KINDS = {SYSTEM: "system configuration", MODE: "memory mode"}


@dataclass(frozen=True)
class Section:
    """A section with what it inherits, keys in lower case; `where` is it and its file, for messages."""

    values: dict[str, str]
    where: str

    def text(self, key: str, known: Sequence[str]) -> str:
        """The value of `key`, which is one of `known`."""
        value = self._value(key)
        if value not in known:
            raise self._wrong(key, value, f"one of: {', '.join(known)}")
        return value

    def number(self, key: str, least: float, largest: float) -> float:
        """The number of `key`."""
        value = self._value(key)
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not least <= found <= largest:  # a NaN is neither
            raise self._wrong(key, value, f"a number from {least:g} to {largest:g}")
        return found

    def whole(self, key: str, default: int, least: int, largest: int) -> int:
        """The whole number of `key`, `default` where it is not given."""
        if key.lower() not in self.values:
            return default
        value = self._value(key)
        try:
            found = int(value)
        except ValueError:
            found = least - 1
        if not least <= found <= largest:
            raise self._wrong(key, value, f"a whole number from {least} to {largest:,}")
        return found

    def optional(self, key: str, largest: int) -> int | None:
        """The whole number of `key`; None where it is not given."""
        return self.whole(key, 0, 0, largest) if key.lower() in self.values else None

    def _value(self, key: str) -> str:
        value = self.values.get(key.lower())
        if value is None:
            raise InputError(f"{self.where} has no {key}")
        return value

    def _wrong(self, key: str, value: str, allowed: str) -> InputError:
        return InputError(f"{key} in {self.where} is {value[:_LONGEST]!r}", f"give {allowed}")


@dataclass(frozen=True)
class VelaIni:
    """A configuration file that was read; `source` is its name."""

    source: str
    _sections: dict[str, dict[str, str]]

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of `kind`, ``System_Config`` or ``Memory_Mode``, in the file's order."""
        prefix = f"{kind}."
        return tuple(name.removeprefix(prefix) for name in self._sections if name.startswith(prefix))

    def chosen(self, kind: str, wanted: str | None, default: str) -> str:
        """The name of `kind` that is `wanted`; without one `default` if the file has that, or the file's only one.

        UsageError for a name that the file does not have, and where there are several to choose from.
        """
        known, what = self.names(kind), _KINDS[kind]
        if wanted is None:
            if default in known:
                return default
            if len(known) == 1:
                return known[0]
            option = f"--{what.replace(' ', '-').replace('uration', '')}"
            raise UsageError(
                f"{self.source} has several {what}s", f"choose with {option}, one of: {', '.join(known)}"
            )
        if wanted not in known:
            raise UsageError(f"{self.source} has no {what} '{wanted}'", suggestion(wanted, known))
        return wanted

    def section(self, kind: str, name: str) -> Section:
        """The section of `kind` called `name`. UsageError when there is none."""
        full = f"{kind}.{name}"
        self.chosen(kind, name, "")
        values: dict[str, str] = {}
        for ancestor in _line(full, self._sections):
            values = self._sections[ancestor] | values
        return Section(values, f"[{full}] of {self.source}")


def parse(text: str, source: str) -> VelaIni:
    """The file with the content `text`, called `source` in messages.

    InputError for what is no such file, is too large, has no section of either kind, or inherits from a section that
    does not exist or in a circle.
    """
    if len(text) > LARGEST_BYTES:
        raise InputError(f"{source} is too large for a Vela configuration file")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text, source)
    except configparser.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source} is not a Vela configuration file: {reason}") from error
    sections = {name: dict(parser[name]) for name in parser.sections()}
    _check_inheritance(sections, source)
    found = VelaIni(source, sections)
    for kind in _KINDS:
        if not found.names(kind):
            raise InputError(f"{source} has no section [{kind}.NAME]", "see the vela.ini of ethos-u-vela")
    return found


def _check_inheritance(sections: dict[str, dict[str, str]], source: str) -> None:
    for name, values in sections.items():
        parent = values.get(_INHERIT)
        if parent is not None and (parent == name or parent not in sections):
            raise InputError(
                f"section {name} of {source} inherits from '{parent[:_LONGEST]}', which is itself or does not exist"
            )
    for name in sections:
        if _is_longer(_line(name, sections), _MOST_LEVELS):
            raise InputError(
                f"section {name} of {source} inherits in a circle, or through more than {_MOST_LEVELS} sections"
            )


def _line(name: str, sections: dict[str, dict[str, str]]) -> Iterator[str]:
    """The section called `name` and those that it inherits from, the nearest first."""
    current: str | None = name
    while current is not None:
        yield current
        current = sections[current].get(_INHERIT)


def _is_longer(rows: Iterable[str], most: int) -> bool:
    return any(number >= most for number, _ in enumerate(rows))
