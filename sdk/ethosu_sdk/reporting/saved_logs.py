"""Saved logs: of the SDK's own firmware, and of ExecuTorch's executor_runner. They are not trusted."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ethosu_sdk.base import error_catalogue, filesystem
from ethosu_sdk.program import protocol
from ethosu_sdk.run.uart import UartLog, feed_lines, is_understood, matched_facts

Payload = dict[str, Any]


@dataclass(frozen=True)
class OwnOutput:
    """One output tensor; `sha256` is empty, with a `problem`, when its bytes did not arrive as announced."""

    inference: int
    index: int
    dtype: str
    shape: tuple[int, ...]
    sha256: str
    problem: str


@dataclass(frozen=True)
class OwnLog:
    boot: Payload | None
    method: Payload | None
    npu: Payload | None
    pools: tuple[Payload, ...]
    pmu: tuple[Payload, ...]
    outputs: tuple[OwnOutput, ...]
    inferences: int
    delegate_calls: int
    problems: tuple[str, ...]
    complete: bool


def summarise_own_log(log: UartLog) -> OwnLog:
    """Everything in `log` that speaks for itself; contradictions and damage are among the problems."""
    pieces: dict[tuple[int, int], list[Payload]] = {}
    for row in log.of_type("data"):
        pieces.setdefault((row["inference"], row["index"]), []).append(row)
    outputs = tuple(_outputs(log.of_type("output"), pieces))
    failed = [f"{row['stage']}: {row['code']}: {row['detail']}" for row in log.of_type("error")]
    failed += [f"fault: {row['cause']} at pc {row['pc']:#010x}" for row in log.of_type("fault")]
    problems = (*log.problems, *failed, *(row.problem for row in outputs if row.problem))
    inferences, is_whole = log.of_type("inference"), False
    if log.records and log.records[0].type == "boot" and log.records[-1].type == "end":
        end = log.records[-1].payload
        counts = (end["records"], end["inferences"])
        is_whole = end["status"] == protocol.STATUS_OK and counts == (len(log.records), len(inferences))
    return OwnLog(
        boot=next(iter(log.of_type("boot")), None),
        method=next(iter(log.of_type("method")), None),
        npu=next(iter(log.of_type("npu")), None),
        pools=tuple(log.of_type("memory")),
        pmu=tuple(log.of_type("pmu")),
        outputs=outputs,
        inferences=len(inferences),
        delegate_calls=sum(row["delegate_calls"] for row in inferences),
        problems=problems,
        complete=not problems and is_whole,
    )


def _outputs(
    announced: Sequence[Payload], pieces: Mapping[tuple[int, int], Sequence[Payload]]
) -> Iterator[OwnOutput]:
    """A repeated inference that gave the same output announces it again, but does not send its bytes again."""
    arrived: dict[tuple[object, ...], str] = {}
    for row in announced:
        identity = (row["index"], row["dtype"], tuple(row["shape"]), row["bytes"], row["crc32"])
        chunks, problem = pieces.get((row["inference"], row["index"]), ()), ""
        if chunks or identity not in arrived:
            arrived[identity], problem = _received(row, chunks)
        shape = tuple(size for size in row["shape"] if isinstance(size, int))
        sha256 = arrived[identity]
        yield OwnOutput(row["inference"], row["index"], row["dtype"], shape, sha256, problem)


def _received(row: Payload, chunks: Sequence[Payload]) -> tuple[str, str]:
    """The digest of an output's bytes, or empty and what is wrong with them."""
    where = f"output {row['index']} of inference {row['inference']}"
    content, problem = bytearray(), ""
    for piece in chunks:
        if piece["offset"] != len(content):
            problem = f"a piece of {where} is out of order"
        try:
            content += base64.b64decode(piece["base64"], validate=True)
        except (binascii.Error, ValueError):
            problem = f"a piece of {where} is not base64"
    if not problem and (len(content) != row["bytes"] or f"{zlib.crc32(content):08x}" != row["crc32"]):
        arrived = f"{len(content)} of {row['bytes']} bytes"
        problem = f"{where} did not arrive as announced: {arrived}, or a wrong CRC"
    return "" if problem else filesystem.sha256_bytes(content), problem


# Lines of ExecuTorch's executor_runner begin ``I [executorch:FILE:LINE FUNCTION()] …`` (2025 and later),
# ``I [executorch:FILE:LINE] …`` (2024) or ``I executorch:FILE:LINE] …`` (2023); PMU reports of other runners have no
# prefix.
_PREFIX = re.compile(
    r"^(?P<level>[DIEF]) (?:[\d:.]+ )?(?P<open>\[?)executorch:[^:\]]+:\d+(?P<function> \w+\(\))?\] ?(?P<message>.*)$"
)
_BOOLEANS = {"true": 1, "false": 0}
_MAX_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class LogCounter:
    """One PMU event counter; `event` is the event's name, empty when the log does not say it."""

    index: int
    value: int
    event: str


@dataclass
class PmuReport:
    """One report of the NPU's counters; `cycles` is None when the log lacks it. `values` are by the counter's index,
    `events` are the names of the first counters."""

    cycles: int | None = None
    values: dict[int, int] = field(default_factory=dict)
    events: tuple[str, ...] = ()

    @property
    def counters(self) -> tuple[LogCounter, ...]:
        names = dict(enumerate(self.events))
        return tuple(LogCounter(*row, names.get(row[0], "")) for row in sorted(self.values.items()))


class ValueSpan(NamedTuple):
    """Values of consecutive elements of an output, from element `start` on."""

    start: int
    values: list[float]


@dataclass
class LoggedOutput:
    """One output tensor as far as the log shows it: values by their flat index. `kind` is the log's word for its
    type, or empty."""

    index: int
    kind: str = ""
    values: dict[int, float] = field(default_factory=dict)

    @property
    def spans(self) -> list[ValueSpan]:
        """The values in their order, those without a gap together."""
        found: list[ValueSpan] = []
        for element in sorted(self.values):
            if not found or element != found[-1].start + len(found[-1].values):
                found.append(ValueSpan(element, []))
            found[-1].values.append(self.values[element])
        return found


@dataclass
class UpstreamLog:
    """What a log says. `facts`, `sizes` in bytes and `cpu_cycles` are by name; `pools` are (name, used, size),
    `failures` (line number from 1, text).

    `grammars` are the years of the prefixes that occur, `recognised` counts the lines that were understood.
    """

    facts: dict[str, int | str] = field(default_factory=dict)
    reports: list[PmuReport] = field(default_factory=list)
    cpu_cycles: dict[str, int] = field(default_factory=dict)
    pools: list[tuple[str, int, int]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    by_index: dict[int, LoggedOutput] = field(default_factory=dict)
    no_tensors: list[int] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    finished: bool = False
    years: dict[str, None] = field(default_factory=dict)
    recognised: int = 0

    @property
    def outputs(self) -> list[LoggedOutput]:
        return [output for _, output in sorted(self.by_index.items())]

    @property
    def grammars(self) -> tuple[str, ...]:
        return tuple(self.years)


class _Reader:
    """Collects what the lines of one log say."""

    def __init__(self) -> None:
        log = self.log = UpstreamLog()
        # Most frequent first: an output may have a hundred thousand elements.
        self._takers: dict[str, Callable[[re.Match[str]], None]] = {
            "output": self._output,
            "counter": lambda found: self._report().values.update({int(found["index"]): int(found["value"])}),
            "npu_cycles": self._npu_cycles,
            "report_begins": lambda _: log.reports.append(PmuReport()),
            "events": self._events,
            "pool": lambda found: log.pools.append((found["name"], int(found["used"]), int(found["size"]))),
            "planned_buffer": lambda found: log.sizes.update(
                {f"planned_buffer_{int(found['id'])}": int(found["bytes"])}
            ),
            "size": lambda found: log.sizes.update({found["name"]: int(found["bytes"])}),
            "output_is_no_tensor": lambda found: log.no_tensors.append(int(found["index"])),
            "finished": self._finished,
            "facts": lambda found: log.facts.update(matched_facts(found)),
            "cpu_cycles": lambda found: log.cpu_cycles.update(
                (name, int(text)) for name, text in found.groupdict().items()
            ),
        }

    def take(self, number: int, line: str) -> None:
        """Read line `number` of the log."""
        log = self.log
        prefix = _PREFIX.match(line)
        if prefix:
            log.years["2025" if prefix["function"] else "2024" if prefix["open"] else "2023"] = None
        if prefix and prefix["level"] in "EF":
            log.failures.append((number, line))
        elif not is_understood(__file__, self._takers, prefix["message"] if prefix else line):
            known = [error for error in error_catalogue.in_line(line) if not error.harmless]
            if not known and not error_catalogue.has_failure_form(line):
                return
            if not (log.finished and known and all(error.limit for error in known)):
                log.failures.append((number, line))
        log.recognised += 1

    def _report(self) -> PmuReport:
        """The last report; counters without a heading begin one of their own."""
        if not self.log.reports:
            self.log.reports.append(PmuReport())
        return self.log.reports[-1]

    def _npu_cycles(self, match: re.Match[str]) -> None:
        self._report().cycles = int(match["value"])

    def _events(self, match: re.Match[str]) -> None:
        names = (name.strip() for name in match["names"].split(","))
        self._report().events = tuple(name.removeprefix("ETHOSU_PMU_") for name in names if name)

    def _finished(self, _match: re.Match[str]) -> None:
        self.log.finished = True

    def _output(self, match: re.Match[str]) -> None:
        index, element, text = int(match["index"]), int(match["element"]), match["value"]
        try:
            value = float(_BOOLEANS[text]) if text in _BOOLEANS else float(text)
        except ValueError:
            return
        if element < _MAX_ELEMENTS:
            output = self.log.by_index.setdefault(index, LoggedOutput(index))
            output.values[element] = value
            output.kind = match["tag"] or output.kind


def parse_upstream_log(lines: Sequence[str]) -> UpstreamLog:
    """What the `lines` of a log of executor_runner say. Lines that are not understood are skipped: much of a log is
    for people. InputError when a number is impossible."""
    reader = _Reader()
    feed_lines(reader.take, (line.rstrip("\r\n\x04 ") for line in lines))
    return reader.log
