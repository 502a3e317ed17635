"""The log of the inference runner of Arm's ML embedded evaluation kit, and the proof in it that a program ran. The
log is not trusted. Lines begin ``INFO - ``, ``WARN - `` or ``ERROR - ``, those of ExecuTorch's runtime within it ``I
[ExecuTorch: FILE:LINE FUNCTION()] ``, those of the NPU's driver ``E: ``."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from msgspec import Struct

from ethosu_sdk.base import json_text
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.run.uart import ProtocolError, feed_lines, is_understood, matched_facts

GRAMMAR = "evaluation-kit"
_PREFIX = re.compile(r"^(?P<level>INFO|WARN|ERROR) - (?P<message>.*)$")
_RUNTIME = re.compile(r"^(?P<level>[DIEF]) \[ExecuTorch: (?P<message>.*)$")
_DRIVER = re.compile(r"^E: \S+:\d+: (?P<message>.*)$")
_UNCAUGHT = "terminate called"  # libstdc++'s words for an exception that nobody takes
_ERROR_INSIDE = "ERROR - "  # the prefix of a line that begins within another's
_LEAST_TELLING = 16  # bytes of an output that random ones cannot equal by chance
_TAIL = 12  # lines of the log in an error
_SHOWN = 300  # letters of a failure
_MAX_DIGITS = 20
_MOST_METRICS_BYTES = 1 << 20
_MOST_GROUPS = 1 << 8
_MOST_ROWS = 1 << 12  # tensors, operators, delegates, samples of a group
_COUNTER_PREFIX, _EVENT_PREFIX = "NPU ", "ETHOSU_PMU_"
TOTAL = "TOTAL"  # all cycles of the NPU's counter
_EVENTS = {"ACTIVE": "NPU_ACTIVE", "IDLE": "NPU_IDLE"}


@dataclass(frozen=True)
class KitTensor:
    """An input or output as the runner lists it; `type` is the kit's word for it, such as ``fp32``."""

    nbytes: int
    elements: int
    sizes: tuple[int, ...] = ()
    type: str = ""


@dataclass(frozen=True)
class KitMoves:
    count: int
    nbytes: int
    address: int


class MetricGroup(Struct, frozen=True):
    """What one profiling group counted: a value for each of the `count` runs, by name."""

    name: str
    count: int
    samples: dict[str, tuple[int, ...]]

    @property
    def first(self) -> dict[str, int]:
        return {name: values[0] for name, values in self.samples.items() if values}


@dataclass
class KitLog:
    """What a log says. `facts` are by name, `pools` are name → (most used, size), `delegates` instruction → backend.
    `reports` are the NPU's counters as lines for people tell them, by profile; `failures` are (line number, text).
    `recognised` counts the lines with the kit's own prefix."""

    facts: dict[str, int | str] = field(default_factory=dict)
    inputs: list[KitTensor] = field(default_factory=list)
    outputs: list[KitTensor] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    delegates: dict[int, str] = field(default_factory=dict)
    read: KitMoves | None = None
    copied: KitMoves | None = None
    reports: list[dict[str, int]] = field(default_factory=list)
    groups: tuple[MetricGroup, ...] = ()
    pools: dict[str, tuple[int, int]] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    finished: bool = False
    ended: bool = False
    recognised: int = 0


def pmu_events(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in counters.items() if name != TOTAL}


def _match(line: str) -> re.Match[str] | None:
    return _PREFIX.match(line) or _RUNTIME.match(line) or _DRIVER.match(line)


def without_kit_lines(lines: Sequence[str]) -> list[str]:
    """`lines`, empty those that are this grammar's: what is left is for others to read."""
    return ["" if _match(line) or line.startswith(_UNCAUGHT) else line for line in lines]


class _Reader:
    def __init__(self) -> None:
        self.log = KitLog()
        self._side = ""
        names = "tensors tensor shape type operator delegate pool profile counter moved metrics finished ended facts"
        self._takers = {name: getattr(self, f"_{name}") for name in names.split()}

    def take(self, number: int, line: str) -> None:
        """Read line `number` of the log. ValueError when it has an impossible value."""
        if line.startswith(_UNCAUGHT):
            self.log.failures.append((number, line))
            return
        found = _match(line)
        if found is None:
            return
        self.log.recognised += found.re is _PREFIX
        level = found.groupdict().get("level") or "E"
        if level in ("ERROR", "E", "F") or _ERROR_INSIDE in line:
            self.log.failures.append((number, line))
            return
        if level == "INFO":
            is_understood(__file__, self._takers, found["message"])

    def _facts(self, match: re.Match[str]) -> None:
        self.log.facts.update(matched_facts(match))

    def _rows(self) -> list[KitTensor]:
        return self.log.outputs if self._side == "output" else self.log.inputs

    def _tensors(self, match: re.Match[str]) -> None:
        self._side = match["side"]

    def _tensor(self, match: re.Match[str]) -> None:
        _append(self._rows(), KitTensor(int(match["bytes"]), int(match["elements"])))

    def _shape(self, match: re.Match[str]) -> None:
        sizes = tuple(int(text) for text in match["sizes"].replace(",", " ").split()[:_MAX_DIGITS])
        self._describe(sizes=sizes)

    def _type(self, match: re.Match[str]) -> None:
        self._describe(type=match["name"])

    def _describe(self, **facts: Any) -> None:
        if rows := self._rows():
            rows[-1] = replace(rows[-1], **facts)

    def _operator(self, match: re.Match[str]) -> None:
        _append(self.log.operators, match["name"].removesuffix("."))  # as for an overload without a name

    def _delegate(self, match: re.Match[str]) -> None:
        if len(self.log.delegates) >= _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS:,} delegates")
        self.log.delegates[int(match["instruction"])] = match["name"]

    def _pool(self, match: re.Match[str]) -> None:
        self.log.pools[f"{match['name'].lower()}_pool"] = (int(match["peak"]), int(match["size"]))

    def _profile(self, _match: re.Match[str]) -> None:
        _append(self.log.reports, {})

    def _counter(self, match: re.Match[str]) -> None:
        """Counters without a heading begin a report of their own."""
        name = _event(match["name"])
        if not self.log.reports or name in self.log.reports[-1]:
            _append(self.log.reports, {})
        self.log.reports[-1][name] = int(match["value"])

    def _moved(self, match: re.Match[str]) -> None:
        moved = KitMoves(int(match["count"]), int(match["bytes"]), int(match["address"], 16))
        if match["side"] == "input":
            self.log.read = moved
        else:
            self.log.copied = moved

    def _metrics(self, match: re.Match[str]) -> None:
        self.log.groups = tuple(_groups(match["base64"]))

    def _finished(self, _match: re.Match[str]) -> None:
        self.log.finished = True

    def _ended(self, _match: re.Match[str]) -> None:
        self.log.ended = True


def _append(rows: list[Any], row: Any) -> None:
    if len(rows) >= _MOST_ROWS:
        raise ValueError(f"more than {_MOST_ROWS:,} tensors or operators")
    rows.append(row)


def _groups(text: str) -> Iterator[MetricGroup]:
    """The groups in the base64 of a JSON list. ValueError for anything else, and for more than any run gives."""
    if len(text) > _MOST_METRICS_BYTES:
        raise ValueError(f"metrics of {len(text):,} characters, more than {_MOST_METRICS_BYTES:,}")
    try:
        value = json_text.parse_json(base64.b64decode(text, validate=True).decode("utf-8"))
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"metrics that are not base64 of JSON: {error}") from error
    if not isinstance(value, list) or len(value) > _MOST_GROUPS:
        raise ValueError("metrics that are not a list of groups")
    yield from map(_group, value)


def _group(value: Any) -> MetricGroup:
    row: dict[str, Any] = value if isinstance(value, dict) else {}
    name, count, samples = row.get("profiling_group"), row.get("count"), row.get("samples")
    if not isinstance(name, str) or not _is_count(count) or not isinstance(samples, list):
        raise ValueError("metrics with a group that has no name, count or samples")
    if len(samples) > _MOST_ROWS:
        raise ValueError(f"metrics with more than {_MOST_ROWS:,} samples in a group")
    return MetricGroup(name, count, dict(map(_sample, samples)))


def _sample(value: Any) -> tuple[str, tuple[int, ...]]:
    name, values = (value.get("name"), value.get("value")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(values, list) or not all(map(_is_count, values)):
        raise ValueError("metrics with a sample that has no name or values")
    return _event(name.removeprefix(_COUNTER_PREFIX)), tuple(values)


def _event(name: str) -> str:
    return _EVENTS.get(name, name.removeprefix(_EVENT_PREFIX))


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def parse_kit_log(lines: Sequence[str]) -> KitLog:
    """Read the lines of a log; unknown ones are skipped. InputError when one has an impossible value."""
    reader = _Reader()
    feed_lines(reader.take, (line.strip("\r\n\x04\x00 ") for line in lines))
    return reader.log


# The log and memory of Arm's inference runner → proof that it ran the program, on positive evidence alone.


@dataclass(frozen=True)
class KitExpected:
    """What the host knows before the run. Tensors are given by their bytes, moves as the runner must report them.
    `delegates` are instruction → backend, `blank` what lay where the outputs and the guard behind them were to
    come."""

    sha256: str
    program_address: int
    method: str
    macs: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    read: KitMoves
    copied: KitMoves
    operators: tuple[str, ...]
    delegates: Mapping[int, str]
    blank: bytes = field(repr=False)


@dataclass(frozen=True)
class KitEvidence:
    log: KitLog
    counters: Mapping[str, int]
    outputs: tuple[bytes, ...] = field(repr=False)


def kit_evidence_of(uart: bytes, program: bytes, written: bytes, expected: KitExpected) -> KitEvidence:
    """The evidence in what was printed and in memory. ProtocolError, with the log's end, for anything else."""
    lines = uart.decode("utf-8", errors="replace").splitlines()
    try:
        log = parse_kit_log(lines)
        for problem in _problems(log, program, written, expected):
            raise ProtocolError(problem)
    except SdkError as error:
        printed = [line for line in lines if line.strip("\x04 \x00")][-_TAIL:]
        tail = "\n".join(f"  | {line}" for line in printed)
        raise ProtocolError(f"{error.message}\nlast UART lines:\n{tail}", "see the log") from error
    return KitEvidence(log, log.groups[0].first, tuple(_parted(written, expected.outputs)))


def _problems(log: KitLog, program: bytes, written: bytes, expected: KitExpected) -> Iterator[str]:
    for _, text in log.failures:
        yield f"Arm's runner failed: {text[:_SHOWN]}"
    if not log.finished:
        yield "Arm's runner did not complete the inference"
    if not log.ended:
        yield "the log of Arm's runner has no end"
    for name, said, due in _facts(log, expected):
        if said != due:
            yield f"Arm's runner reports {said} for {name}, but {due} is expected"
    if len(log.groups) != 1 or log.groups[0].count != 1 or TOTAL not in log.groups[0].first:
        yield "the log of Arm's runner does not have the metrics of exactly one inference"
    elif [log.groups[0].first] != log.reports:
        yield f"the metrics of Arm's runner are {log.groups[0].first}, but its lines report {log.reports}"
    if hashlib.sha256(program).hexdigest() != expected.sha256:
        yield "the program in the board's memory is not the program of this run"
    yield from _not_written(written, expected)


def _facts(log: KitLog, expected: KitExpected) -> Iterator[tuple[str, object, object]]:
    said = log.facts
    yield "the program's address", said.get("model_address"), f"{expected.program_address:#010x}"
    yield "the method", said.get("method"), expected.method
    yield "the NPU's MACs", said.get("macs"), expected.macs
    yield "inferences", said.get("inferences"), 1
    yield "the bytes of inputs", tuple(row.nbytes for row in log.inputs), expected.inputs
    yield "the bytes of outputs", tuple(row.nbytes for row in log.outputs), expected.outputs
    yield "operators", tuple(log.operators), expected.operators
    yield "delegate calls", log.delegates, dict(expected.delegates)
    if expected.inputs:
        yield "the inputs read", log.read, expected.read
    yield "the outputs copied", log.copied, expected.copied


def _not_written(written: bytes, expected: KitExpected) -> Iterator[str]:
    """The outputs must have replaced the blank memory, and nothing after them may have changed."""
    size = sum(expected.outputs)
    if written[size:] != expected.blank[size:]:
        yield "Arm's runner wrote past the end of the outputs"
    for index, (found, blank) in enumerate(
        zip(_parted(written, expected.outputs), _parted(expected.blank, expected.outputs), strict=True)
    ):
        if len(found) >= _LEAST_TELLING and found == blank:
            yield f"Arm's runner reports that it copied output {index}, but did not write it"


def _parted(content: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield content[at : at + size]
        at += size


def crosscheck_kit_jobs(found: KitEvidence, job_cycles: Sequence[int]) -> None:
    """ProtocolError unless the simulator's NPU ran the jobs that the log reports, and counted the same cycles."""
    due = len(found.log.delegates)
    if len(job_cycles) != due:
        raise ProtocolError(
            f"Arm's runner reports {due} delegate calls, but the simulator's NPU ran {len(job_cycles)} jobs"
        )
    said = found.counters.get(TOTAL)

    if sum(job_cycles) != said:
        raise ProtocolError(
            f"Arm's runner reports {said} cycles, but the simulator's NPU counted {sum(job_cycles)}"
        )
