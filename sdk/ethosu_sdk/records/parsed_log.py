"""``log-result/1``, from which schemas/log-result.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Count,
    Derived,
    Number,
    Part,
    PositiveCount,
    RecordKind,
    Sha256,
    Some,
    Text,
    UnavailableMembers,
    Use,
)


class LoggedModel(Part):
    address: Annotated[str, Meta(pattern="^0x[0-9a-fA-F]+$")] | None = None
    bytes: Count | None = None
    sha256: Sha256 | None = None
    entry: Text | None = None


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
    value: Count
    unit: Text
    source: LoggedSource


class ReportCounter(Part):
    index: Count
    event: Text | None = None
    id: Count | None = None
    value: Count
    source: LoggedSource


class Report(Part):
    inference: Count | None = None
    instruction: Count | None = None
    cycles: Cycles | None = None
    counters: tuple[ReportCounter, ...]


class Npu(Part):
    id: Count | None = None
    config: Count | None = None
    delegate_calls: Count | None = None
    reports: tuple[Report, ...]


class Size(Part):
    name: Text
    bytes: Count


class Memory(Part):
    pools: tuple[Use, ...]
    sizes: tuple[Size, ...]


class Span(Part):
    start: Count
    values: Some[Number | Literal["nan", "inf", "-inf"]]


class Output(Part):
    index: Count
    inference: Count | None = None
    kind: Text | None = None
    dtype: Text | None = None
    shape: tuple[Count, ...] | None = None
    elements: Count
    sha256: Sha256 | None = None
    spans: tuple[Span, ...] | None = None


class Failure(Part):
    line: PositiveCount
    text: Text
    known: tuple[Text, ...]


class Log(Derived[Literal["pass", "fail", "incomplete"]], tag_field="schema", tag="log-result/1"):
    """What the log of a run tells of it."""

    grammars: Some[Text]
    complete: bool
    model: LoggedModel
    board: Text | None = None
    simulator: LoggedSimulator
    inferences: Count | None = None
    npu: Npu
    memory: Memory
    outputs: tuple[Output, ...]
    failures: tuple[Failure, ...]
    unavailable: UnavailableMembers


def status_follows_the_log(record: Log) -> Iterator[str]:
    """A failure in the log fails the record; a log that breaks off is incomplete."""
    expected = "fail" if record.failures else "pass" if record.complete else "incomplete"
    yield from rules.wrong_status(record, expected, "the log says")


KIND = RecordKind(Log, (status_follows_the_log, rules.unavailable_is_absent))
