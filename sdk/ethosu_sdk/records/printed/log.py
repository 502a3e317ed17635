"""``log-result/1``: schemas/log-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, Number, Unavailable, Use
from ethosu_sdk.records.kind import Part, RecordKind


class LoggedModel(Part):
    address: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    entry: str | None = None


class LoggedSimulator(Part):
    lines: tuple[str, ...]


class Cycles(Part):
    value: int
    unit: str
    source: Literal["measured", "modelled", "reported"]


class ReportCounter(Part):
    index: int
    event: str | None = None
    id: int | None = None
    value: int
    source: Literal["measured", "modelled", "reported"]


class Report(Part):
    inference: int | None = None
    instruction: int | None = None
    cycles: Cycles | None = None
    counters: tuple[ReportCounter, ...]


class Npu(Part):
    id: int | None = None
    config: int | None = None
    delegate_calls: int | None = None
    reports: tuple[Report, ...]


class Size(Part):
    name: str
    bytes: int


class Memory(Part):
    pools: tuple[Use, ...]
    sizes: tuple[Size, ...]


class Span(Part):
    start: int
    values: tuple[Number | Literal["nan", "inf", "-inf"], ...]


class Output(Part):
    index: int
    inference: int | None = None
    kind: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    elements: int
    sha256: str | None = None
    spans: tuple[Span, ...] | None = None


class Failure(Part):
    line: int
    text: str
    known: tuple[str, ...]


class Log(Derived[Literal["pass", "fail", "incomplete"]], tag_field="schema", tag="log-result/1"):
    """What the log of a run tells of it."""

    grammars: tuple[str, ...]
    complete: bool
    model: LoggedModel
    board: str | None = None
    simulator: LoggedSimulator
    inferences: int | None = None
    npu: Npu
    memory: Memory
    outputs: tuple[Output, ...]
    failures: tuple[Failure, ...]
    unavailable: tuple[Unavailable, ...]


def status_follows_the_log(record: Log) -> list[str]:
    """A failure in the log fails the record; a log that breaks off is incomplete."""
    expected = "fail" if record.failures else "pass" if record.complete else "incomplete"
    if record.status != expected:
        return [f"the log says '{expected}', the record says '{record.status}'"]
    return []


KIND = RecordKind(Log, (status_follows_the_log, rules.unavailable_is_absent))
