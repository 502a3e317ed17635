"""UART logs that are cut, replayed, forged, or hold what a terminal obeys."""

import functools
import json
import random
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.records import validation
from ethosu_sdk.reporting import parse_log_command
from ethosu_sdk.run import evidence, uart
from tests.places import GOLDEN_KIT_LOGS, GOLDEN_LOGS
from tests.unit.run import wire

_OWN = "own"
_RUN = evidence.ExpectedRun(
    "5" * 64, len(wire.MODEL), "corstone-300", wire.steps_of_bytes(((wire.INPUT,),)), outputs=1
)
_PREFIX = b"~ethosu "
_NUMBERS = (
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"9" * 25,
    b"9" * 400,
    b"0x10",
    b"18446744073709551616",
    b"true",
    b"\xd9\xa3",
)
_CODES = (b"\x1b[2J", b"\x1b]0;x\x07", b"\r", b"\x9b31m", "\u202e".encode(), b"\0", b"\xff\xfe", b"\x08" * 8)


@functools.cache
def _sources() -> dict[str, bytes]:
    folders = (GOLDEN_LOGS, GOLDEN_KIT_LOGS)
    published = {path.name: path.read_bytes() for place in folders for path in sorted(place.glob("*.log"))}
    return {_OWN: wire.uart(wire.good_rows()), **published}


def _number(choice: random.Random, log: bytes) -> bytes:
    found = list(re.finditer(rb"\d+", log))
    if not found:
        return log
    at = choice.choice(found)
    return log[: at.start()] + choice.choice(_NUMBERS) + log[at.end() :]


def _codes(choice: random.Random, log: bytes) -> bytes:
    at = choice.randrange(len(log) + 1)
    return log[:at] + choice.choice(_CODES) + log[at:]


def _lines(choice: random.Random, log: bytes) -> bytes:
    """A line is missing, twice, or in another place."""
    lines = log.splitlines(keepends=True)
    if not lines:
        return log
    line = lines.pop(choice.randrange(len(lines)))
    for _ in range(choice.randrange(3)):
        lines.insert(choice.randint(0, len(lines)), line)
    return b"".join(lines)


def _replayed(choice: random.Random, log: bytes) -> bytes:
    return log + (log if choice.random() < 0.5 else log[choice.randrange(len(log) + 1) :])


def _forged(choice: random.Random, log: bytes) -> bytes:
    """A record with another number whose length and CRC are made right again; the seal is not."""
    lines = log.splitlines(keepends=True)
    own = [number for number, line in enumerate(lines) if line.startswith(_PREFIX)]
    if not own:
        return log
    at = choice.choice(own)
    covered = _number(choice, lines[at].removeprefix(_PREFIX).rsplit(b" ", 2)[0])
    length = len(covered.split(b" ", 2)[-1])
    lines[at] = _PREFIX + covered + b" %d %08x\r\n" % (length, zlib.crc32(covered))
    return b"".join(lines)


_WAYS = (_number, _codes, _lines, _replayed, _forged, damage.truncate, damage.flip, damage.noise)


@dataclass(frozen=True)
class _Log:
    """A damaged log of the source `name`. `forged`: a record was changed and its CRC made right."""

    name: str
    content: bytes
    forged: bool


def _log(choice: random.Random) -> _Log:
    name, log = (
        choice.choice(sorted(_sources().items())) if choice.random() < 0.6 else (_OWN, _sources()[_OWN])
    )
    ways = [choice.choice(_WAYS) for _ in range(choice.randint(1, 3))]
    for way in ways:
        log = way(choice, log) if log else log
    return _Log(name, log, _forged in ways)


def _records(log: bytes) -> list[bytes]:
    return [line.strip() for line in re.split(rb"[\r\n]+", log) if _PREFIX in line]


def _changed(log: _Log) -> bool:
    """Whether the records of the SDK's firmware in it are others than those of a run."""
    return log.name == _OWN and _records(log.content) != _records(_sources()[_OWN])


def _wrong(log: _Log, status: object) -> list[str]:
    """What `parse-log` may not call a pass. It cannot know of a forger's right CRCs: the log has no nonce."""
    if status != "pass" or log.forged or not _changed(log):
        return []
    return ["a log whose records were changed passes"]


def _probe(context: Context, choice: random.Random) -> Probe:
    log = _log(choice)
    return Probe(f"parse {log.name}", {"given.log": log.content}, lambda _: _parse(log))


def _parse(log: _Log) -> None:
    if log.name == _OWN:
        try:
            evidence.evidence_of_run(uart.parse_uart(log.content), _RUN, 0)
        except SdkError:
            pass
        else:
            assert not _changed(log), "a run passes on changed records"
    record = parse_log_command.make_log_record(log.name, log.content)
    validation.check_record(record, "the result")  # as the command does
    wrong = _wrong(log, record["status"])
    assert not wrong, wrong


def _case(context: Context, choice: random.Random) -> Case:
    log = _log(choice)
    as_json = choice.random() < 0.5

    def judge(ended: Ended, folder: Path) -> list[str]:
        if ended.code != 0:
            return []
        problems = validation.record_problems(json.loads(ended.out)) if as_json else []
        return [*problems, *_wrong(log, "pass")]

    words = ("parse-log", "given.log", *(("--json",) if as_json else ()))
    return Case(f"parse-log {log.name}", {"given.log": log.content}, words, judge=judge)


KIND = Kind("logs", _case, _probe)
