"""``log-result/1``, from which schemas/log-result.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind


class LoggedModel(Part):
    address: Annotated[str, Meta(pattern="^0x[0-9a-fA-F]+$")] | None = None
    bytes: c.Count | None = None
    sha256: c.Sha256 | None = None
    entry: c.Text | None = None


class LoggedSimulator(Part):
    lines: tuple[str, ...]


LoggedSource = Annotated[
    Literal["measured", "modelled", "reported"],
    Meta(
        description="measured: an FVP says that the log is its own; modelled: the SDK's launchers do; "
        "reported: the log does not say what it ran on"
    ),
]


class Cycles(Part):
    value: c.Count
    unit: c.Text
    source: LoggedSource


class ReportCounter(Part):
    index: c.Count
    event: c.Text | None = None
    id: c.Count | None = None
    value: c.Count
    source: LoggedSource


class Report(Part):
    inference: c.Count | None = None
    instruction: c.Count | None = None
    cycles: Cycles | None = None
    counters: tuple[ReportCounter, ...]


class Npu(Part):
    id: c.Count | None = None
    config: c.Count | None = None
    delegate_calls: c.Count | None = None
    reports: tuple[Report, ...]


class Size(Part):
    name: c.Text
    bytes: c.Count


class Memory(Part):
    pools: tuple[c.Use, ...]
    sizes: tuple[Size, ...]


class Span(Part):
    start: c.Count
    values: c.Some[c.Number | Literal["nan", "inf", "-inf"]]


class Output(Part):
    index: c.Count
    inference: c.Count | None = None
    kind: c.Text | None = None
    dtype: c.Text | None = None
    shape: tuple[c.Count, ...] | None = None
    elements: c.Count
    sha256: c.Sha256 | None = None
    spans: tuple[Span, ...] | None = None


class Failure(Part):
    line: c.PositiveCount
    text: c.Text
    known: tuple[c.Text, ...]


class Log(Derived[Literal["pass", "fail", "incomplete"]], tag_field="schema", tag="log-result/1"):
    """What the log of a run tells of it."""

    grammars: c.Some[c.Text]
    complete: bool
    model: LoggedModel
    board: c.Text | None = None
    simulator: LoggedSimulator
    inferences: c.Count | None = None
    npu: Npu
    memory: Memory
    outputs: tuple[Output, ...]
    failures: tuple[Failure, ...]
    unavailable: c.UnavailableMembers


def status_follows_the_log(record: Log) -> Iterator[str]:
    """A failure in the log fails the record; a log that breaks off is incomplete."""
    expected = "fail" if record.failures else "pass" if record.complete else "incomplete"
    yield from rules.wrong_status(record, expected, "the log says")


KIND = RecordKind(Log, (status_follows_the_log, rules.unavailable_is_absent))
