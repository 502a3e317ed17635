"""What a board's UART says: records and lines of a log. Neither is trusted."""

from __future__ import annotations

import base64
import binascii
import functools
import io
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from msgspec import Struct

from ethosu_sdk.base.errors import InputError, SimulationError
from ethosu_sdk.program.protocol import RECORD_PREFIX
from ethosu_sdk.program.record_lines import SHOWN, UartRecord, parse_record


class ProtocolError(SimulationError):
    """The firmware's records are damaged, incomplete or contradict each other."""


class UartLog(Struct, frozen=True):
    """Everything that the UART said, parted into records and human log lines."""

    records: tuple[UartRecord, ...]
    lines: tuple[str, ...]
    problems: tuple[str, ...]  # record lines that could not be read, one sentence each

    def of_type(self, name: str) -> list[dict[str, Any]]:
        return [record.payload for record in self.records if record.type == name]


def parse_uart(uart: bytes) -> UartLog:
    """Part `uart` into records and log lines. Damaged records are listed in `problems`, never dropped."""
    records: list[UartRecord] = []
    lines: list[str] = []
    problems: list[str] = []
    for raw in uart.replace(b"\r", b"\n").split(b"\n"):
        line = raw.decode("ascii", errors="replace")
        if RECORD_PREFIX not in line:
            if line.strip("\x04 \x00"):
                lines.append(line)
            continue
        try:
            record = parse_record(line)
        except ValueError as error:
            problems.append(f"{error}: {line[:SHOWN]!r}")
            continue
        if record.sequence != len(records):
            problems.append(f"record {record.sequence} ({record.type}) came instead of record {len(records)}")
        records.append(record)
    return UartLog(tuple(records), tuple(lines), tuple(problems))


def joined_chunks(chunks: Sequence[dict[str, Any]], where: str) -> bytes:
    """The bytes that the records `chunks` hold in turn; ProtocolError for a gap. `where` names what they are."""
    data = bytearray()
    for chunk in chunks:
        if chunk["offset"] != len(data):
            raise ProtocolError(f"a piece of {where} is missing before byte {chunk['offset']}")
        try:
            data += base64.b64decode(chunk["base64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProtocolError(f"a piece of {where} is not base64") from error
    return bytes(data)


# Steps of a sequence, told as soon as the firmware reports them.

_LONGEST_LINE = 1 << 16
Tell = Callable[[int, dict[int, tuple[int, ...]]], None]


class _Listener(io.RawIOBase):
    """Calls `tell` with number and choices after each inference. Nothing of that is proven yet."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._rest = b""
        self._done = -1
        self._choices: dict[int, tuple[int, ...]] = {}

    def write(self, data: object) -> int:
        content = bytes(cast(bytes, data))
        *lines, self._rest = (self._rest + content).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        for line in lines:
            self._take(line.decode("ascii", errors="replace").rstrip("\r"))
        return len(content)

    def _take(self, line: str) -> None:
        try:
            record = parse_record(line)
        except ValueError:
            return  # a line for people, or one that the evidence will refuse
        if record.type == "inference":
            self._done = record.payload["inference"]
            self._choices = {}
        elif record.type == "choice":
            self._choices[record.payload["input"]] = tuple(record.payload["values"])
        elif self._done >= 0 and record.type in ("state", "output", "end"):
            # The choices of an inference stand between its own record and those of its state and outputs.
            self._tell(self._done, self._choices)
            self._done = -1


def step_stream(tell: Tell | None) -> IO[bytes] | None:
    """What a simulator copies the UART's output to, for a caller that wants to be told."""
    return None if tell is None else cast(IO[bytes], _Listener(tell))


# Logs of other programs, line by line, by tables of patterns in TOML. They are texts for people, in grammars of these
# programs: no library reads them.

_MAX_DIGITS = 20
_SHOWN_OF_MESSAGE = 40
Taker = Callable[[re.Match[str]], None]


def feed_lines(take: Callable[[int, str], None], lines: Iterable[str]) -> None:
    """Give every line with its number, from 1, to `take`. InputError with the number when it raises ValueError."""
    for number, line in enumerate(lines, start=1):
        try:
            take(number, line)
        except ValueError as error:
            raise InputError(
                f"line {number} of the log has {error}", "the log is damaged or was not written by firmware"
            ) from error


@functools.cache
def patterns_of(module: str) -> dict[str, tuple[re.Pattern[str], ...]]:
    """The patterns in the TOML file beside the file of a `module`: name → one or several."""
    table = tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: tuple(re.compile(text, re.ASCII) for text in ([row] if isinstance(row, str) else row))
        for name, row in table.items()
    }


def is_understood(module: str, takers: Mapping[str, Taker], message: str) -> bool:
    """Give `message` to the first of `takers` with a fitting pattern. ValueError for numbers of more than 64 bits."""
    for name, taker in takers.items():
        for pattern in patterns_of(module)[name]:
            if match := pattern.match(message):
                _check_numbers(match, message)
                taker(match)
                return True
    return False


def _check_numbers(match: re.Match[str], message: str) -> None:
    for text in match.groups():
        if text and text.isdigit() and len(text) > _MAX_DIGITS:
            raise ValueError(
                f"a number of {len(text):,} digits, more than any firmware prints: {message[:_SHOWN_OF_MESSAGE]!r}…"
            )


def matched_facts(match: re.Match[str]) -> dict[str, int | str]:
    return {name: int(text) if text.isdigit() else text for name, text in match.groupdict().items() if text}
