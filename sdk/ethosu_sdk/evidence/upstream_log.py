"""Parses logs of ExecuTorch's executor_runner for Arm, in the old and new grammar. The log is not trusted.

Prefixes of a line: ``I [executorch:FILE:LINE FUNCTION()] …`` (2025 and later), ``I [executorch:FILE:LINE] …`` (2024),
``I executorch:FILE:LINE] …`` (2023), or none, as other runners print their PMU reports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk import error_catalogue
from ethosu_sdk.evidence.lines import facts, feed, understood

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
class Span:
    """Values of consecutive elements of an output, from element `start` on."""

    start: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class LoggedOutput:
    """One output tensor as far as the log shows it, flat. `kind` is the log's word for its type, or empty."""

    index: int
    kind: str
    spans: tuple[Span, ...]

    @property
    def elements(self) -> int:
        """How many elements are shown."""
        return sum(len(span.values) for span in self.spans)

    @property
    def whole(self) -> bool:
        """Whether no element before the last that is shown lacks."""
        return len(self.spans) == 1 and self.spans[0].start == 0


@dataclass(frozen=True)
class Failure:
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
    failures: tuple[Failure, ...]
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
        self.failures: list[Failure] = []
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
            self.failures.append(Failure(number, line))
        elif not understood(__file__, self._takers, message):
            known = [error for error in error_catalogue.in_line(line) if not error.harmless]
            if not known and not error_catalogue.has_failure_form(line):
                return
            if not (self.finished and known and all(error.limit for error in known)):
                self.failures.append(Failure(number, line))
        self.recognised += 1

    def _fact(self, match: re.Match[str]) -> None:
        self.facts.update(facts(match))

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


def parse(lines: Sequence[str]) -> UpstreamLog:
    """Read the `lines` of a log. Lines that are not understood are skipped: much of a log is for people. InputError
    when a number is impossible."""
    reader = _Reader()
    feed(reader.take, (line.rstrip("\r\n\x04 ") for line in lines))
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


def _spans(values: dict[int, float]) -> tuple[Span, ...]:
    spans: list[tuple[int, list[float]]] = []
    for element in sorted(values):
        if not spans or element != spans[-1][0] + len(spans[-1][1]):
            spans.append((element, []))
        spans[-1][1].append(values[element])
    return tuple(Span(start, tuple(row)) for start, row in spans)
