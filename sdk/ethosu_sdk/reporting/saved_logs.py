"""Saved logs: of the SDK's own firmware, and of ExecuTorch's executor_runner. They are not trusted."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.base import error_catalogue, filesystem
from ethosu_sdk.program import protocol
from ethosu_sdk.run.uart import UartLog, feed_lines, is_understood, matched_facts

# ---- evidence.own_log
# Reads the records of the SDK's own firmware from a saved log, without knowing the run's inputs.

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
    """What the records say. `complete`: from the first to the end record, counted, with a good status."""

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
    outputs = _outputs(log.of_type("output"), pieces)
    failed = [f"{row['stage']}: {row['code']}: {row['detail']}" for row in log.of_type("error")]
    failed += [f"fault: {row['cause']} at pc {row['pc']:#010x}" for row in log.of_type("fault")]
    problems = (*log.problems, *failed, *(row.problem for row in outputs if row.problem))
    inferences = log.of_type("inference")
    return OwnLog(
        boot=_first(log, "boot"),
        method=_first(log, "method"),
        npu=_first(log, "npu"),
        pools=tuple(log.of_type("memory")),
        pmu=tuple(log.of_type("pmu")),
        outputs=outputs,
        inferences=len(inferences),
        delegate_calls=sum(row["delegate_calls"] for row in inferences),
        problems=problems,
        complete=not problems and _ended_well(log),
    )


def _first(log: UartLog, name: str) -> Payload | None:
    return next(iter(log.of_type(name)), None)


def _ended_well(log: UartLog) -> bool:
    if not log.records or log.records[0].type != "boot" or log.records[-1].type != "end":
        return False
    end = log.records[-1].payload
    return bool(
        end["status"] == protocol.STATUS_OK
        and end["records"] == len(log.records)
        and end["inferences"] == len(log.of_type("inference"))
    )


def _outputs(
    announced: Sequence[Payload], pieces: Mapping[tuple[int, int], Sequence[Payload]]
) -> tuple[OwnOutput, ...]:
    """A repeated inference that gave the same output announces it again, but does not send its bytes again."""
    found: list[OwnOutput] = []
    arrived: dict[tuple[object, ...], str] = {}
    for row in announced:
        identity = (row["index"], row["dtype"], tuple(row["shape"]), row["bytes"], row["crc32"])
        chunks = pieces.get((row["inference"], row["index"]), ())
        if chunks or identity not in arrived:
            output = _output(row, chunks)
            arrived[identity] = output.sha256
        else:
            output = _described(row, arrived[identity], "")
        found.append(output)
    return tuple(found)


def _output(row: Payload, chunks: Sequence[Payload]) -> OwnOutput:
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
        problem = (
            f"{where} did not arrive as announced: {len(content)} of {row['bytes']} bytes, or a wrong CRC"
        )
    return _described(row, "" if problem else filesystem.sha256_bytes(content), problem)


def _described(row: Payload, sha256: str, problem: str) -> OwnOutput:
    shape = tuple(size for size in row["shape"] if isinstance(size, int))
    return OwnOutput(row["inference"], row["index"], row["dtype"], shape, sha256, problem)


# ---- evidence.upstream_log
# Parses logs of ExecuTorch's executor_runner for Arm, in the old and new grammar. The log is not trusted.
#
# Prefixes of a line: ``I [executorch:FILE:LINE FUNCTION()] …`` (2025 and later), ``I [executorch:FILE:LINE] …``
# (2024),
# ``I executorch:FILE:LINE] …`` (2023), or none, as other runners print their PMU reports.

_PREFIX = re.compile(
    r"^(?P<level>[DIEF]) (?:[\d:.]+ )?(?P<open>\[?)executorch:[^:\]]+:\d+(?P<function> \w+\(\))?\] ?(?P<message>.*)$"
)
_EVENT_PREFIX = "ETHOSU_PMU_"
_BOOLEANS = {"true": 1, "false": 0}
_MAX_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class LogCounter:
    """One PMU event counter; `event` is the event's name, empty when the log does not say it."""

    index: int
    value: int
    event: str


@dataclass(frozen=True)
class PmuReport:
    """One report of the NPU's counters; `cycles` is None when the log lacks it."""

    cycles: int | None
    counters: tuple[LogCounter, ...]


@dataclass(frozen=True)
class ValueSpan:
    """Values of consecutive elements of an output, from element `start` on."""

    start: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class LoggedOutput:
    """One output tensor as far as the log shows it, flat. `kind` is the log's word for its type, or empty."""

    index: int
    kind: str
    spans: tuple[ValueSpan, ...]

    @property
    def elements(self) -> int:
        """How many elements are shown."""
        return sum(len(span.values) for span in self.spans)

    @property
    def whole(self) -> bool:
        """Whether no element before the last that is shown lacks."""
        return len(self.spans) == 1 and self.spans[0].start == 0


@dataclass(frozen=True)
class LoggedFailure:
    """A line that reports a failure; `line` counts from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class UpstreamLog:
    """What a log says. `facts`, `sizes` in bytes and `cpu_cycles` are by name; `pools` are (name, used, size).

    `grammars` are the years of the prefixes that occur, `recognised` counts the lines that were understood.
    """

    facts: dict[str, int | str]
    reports: tuple[PmuReport, ...]
    cpu_cycles: dict[str, int]
    pools: tuple[tuple[str, int, int], ...]
    sizes: dict[str, int]
    outputs: tuple[LoggedOutput, ...]
    no_tensors: tuple[int, ...]
    failures: tuple[LoggedFailure, ...]
    finished: bool
    grammars: tuple[str, ...]
    recognised: int


class _Reader:
    """Collects what the lines of one log say."""

    def __init__(self) -> None:
        self.facts: dict[str, int | str] = {}
        self.cpu_cycles: dict[str, int] = {}
        self.pools: list[tuple[str, int, int]] = []
        self.sizes: dict[str, int] = {}
        self.cycles: list[int | None] = []
        self.counters: list[dict[int, int]] = []
        self.events: list[tuple[str, ...]] = []
        self.values: dict[int, dict[int, float]] = {}
        self.kinds: dict[int, str] = {}
        self.no_tensors: list[int] = []
        self.failures: list[LoggedFailure] = []
        self.grammars: dict[str, None] = {}
        self.finished = False
        self.recognised = 0
        # Most frequent first: an output may have a hundred thousand elements.
        self._takers = {
            "output": self._output,
            "counter": self._counter,
            "npu_cycles": self._npu_cycles,
            "report_begins": self._report_begins,
            "events": self._events,
            "pool": self._pool,
            "planned_buffer": self._planned_buffer,
            "size": self._size,
            "output_is_no_tensor": self._no_tensor,
            "finished": self._finished,
            "facts": self._fact,
            "cpu_cycles": self._cpu_cycles,
        }

    def take(self, number: int, line: str) -> None:
        """Read line `number` of the log."""
        prefix = _PREFIX.match(line)
        message = prefix["message"] if prefix else line
        if prefix:
            self.grammars["2025" if prefix["function"] else "2024" if prefix["open"] else "2023"] = None
        if prefix and prefix["level"] in "EF":
            self.failures.append(LoggedFailure(number, line))
        elif not is_understood(__file__, self._takers, message):
            known = [error for error in error_catalogue.in_line(line) if not error.harmless]
            if not known and not error_catalogue.has_failure_form(line):
                return
            if not (self.finished and known and all(error.limit for error in known)):
                self.failures.append(LoggedFailure(number, line))
        self.recognised += 1

    def _fact(self, match: re.Match[str]) -> None:
        self.facts.update(matched_facts(match))

    def _cpu_cycles(self, match: re.Match[str]) -> None:
        self.cpu_cycles.update((name, int(text)) for name, text in match.groupdict().items())

    def _report_begins(self, _match: re.Match[str]) -> None:
        self._begin_report()

    def _begin_report(self) -> None:
        self.cycles.append(None)
        self.counters.append({})
        self.events.append(())

    def _report(self) -> None:
        """Counters without a heading begin a report of their own."""
        if not self.counters:
            self._begin_report()

    def _npu_cycles(self, match: re.Match[str]) -> None:
        self._report()
        self.cycles[-1] = int(match["value"])

    def _counter(self, match: re.Match[str]) -> None:
        self._report()
        self.counters[-1][int(match["index"])] = int(match["value"])

    def _events(self, match: re.Match[str]) -> None:
        self._report()
        self.events[-1] = tuple(
            name.strip().removeprefix(_EVENT_PREFIX) for name in match["names"].split(",") if name.strip()
        )

    def _pool(self, match: re.Match[str]) -> None:
        self.pools.append((match["name"], int(match["used"]), int(match["size"])))

    def _size(self, match: re.Match[str]) -> None:
        self.sizes[match["name"]] = int(match["bytes"])

    def _planned_buffer(self, match: re.Match[str]) -> None:
        self.sizes[f"planned_buffer_{int(match['id'])}"] = int(match["bytes"])

    def _no_tensor(self, match: re.Match[str]) -> None:
        self.no_tensors.append(int(match["index"]))

    def _finished(self, _match: re.Match[str]) -> None:
        self.finished = True

    def _output(self, match: re.Match[str]) -> None:
        index, element = int(match["index"]), int(match["element"])
        text = match["value"]
        try:
            value = float(_BOOLEANS[text]) if text in _BOOLEANS else float(text)
        except ValueError:
            return
        if element < _MAX_ELEMENTS:
            self.values.setdefault(index, {})[element] = value
            self.kinds[index] = match["tag"] or self.kinds.get(index, "")


def parse_upstream_log(lines: Sequence[str]) -> UpstreamLog:
    """Read the `lines` of a log. Lines that are not understood are skipped: much of a log is for people. InputError
    when a number is impossible."""
    reader = _Reader()
    feed_lines(reader.take, (line.rstrip("\r\n\x04 ") for line in lines))
    return UpstreamLog(
        facts=reader.facts,
        reports=tuple(
            PmuReport(cycles, _named(counters, events))
            for cycles, counters, events in zip(reader.cycles, reader.counters, reader.events, strict=True)
        ),
        cpu_cycles=reader.cpu_cycles,
        pools=tuple(reader.pools),
        sizes=reader.sizes,
        outputs=tuple(
            LoggedOutput(index, reader.kinds[index], _spans(values))
            for index, values in sorted(reader.values.items())
        ),
        no_tensors=tuple(reader.no_tensors),
        failures=tuple(reader.failures),
        finished=reader.finished,
        grammars=tuple(reader.grammars),
        recognised=reader.recognised,
    )


def _named(counters: dict[int, int], events: Sequence[str]) -> tuple[LogCounter, ...]:
    return tuple(
        LogCounter(index, value, events[index] if index < len(events) else "")
        for index, value in sorted(counters.items())
    )


def _spans(values: dict[int, float]) -> tuple[ValueSpan, ...]:
    spans: list[tuple[int, list[float]]] = []
    for element in sorted(values):
        if not spans or element != spans[-1][0] + len(spans[-1][1]):
            spans.append((element, []))
        spans[-1][1].append(values[element])
    return tuple(ValueSpan(start, tuple(row)) for start, row in spans)
